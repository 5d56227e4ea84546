"""The class that docs/frameworks.md uses."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class AGUIThreadSnapshot:
    messages: list[dict[str, Any]] = field(default_factory=list)
    state: dict[str, Any] | None = None
    interrupt: list[dict[str, Any]] | None = None
    session_state: dict[str, Any] | None = None
