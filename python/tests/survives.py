"""What the tests of a framework show that survives, for the table in docs/frameworks.md."""

from typing import Any

import pytest

COLUMNS = ("messages", "state", "interrupts", "branches", "process killed")


def survives(framework: str, *columns: str) -> Any:
    """Marks a test that shows it: test_frameworks.py compares all marks with the table."""
    assert set(columns) <= set(COLUMNS), columns
    return pytest.mark.survives(framework, *columns)
