"""What the modules of frameworks share that keep their rows in session state."""

from __future__ import annotations

import json
from typing import Any

from .errors import InvalidEvents


def last_only(columns: str) -> str:
    """A statement whose writes keep no earlier versions of their documents.

    Frameworks do not read them, and what is removed must be gone. The setting is the caller's again
    behind the statement, also in a transaction of the caller.
    """
    return f"""select
    set_config('agui.session_versions', '1', true),
    {columns},
    set_config('agui.session_versions', before.value, true)
from (
    select coalesce(current_setting('agui.session_versions', true), '') as value offset 0
) as before"""


def document(value: Any) -> str:
    """The text of what a framework saves."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidEvents(f"what is to be saved is no JSON: {error}") from error
