import ast
from pathlib import Path

from .conftest import ROOT
from .survives import COLUMNS


def test_the_table_of_what_survives_is_what_the_tests_show():
    shown: dict[str, set[str]] = {}
    for path in Path(__file__).parent.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            for decorator in getattr(node, "decorator_list", ()):
                if getattr(getattr(decorator, "func", None), "id", "") == "survives":
                    framework, *columns = (argument.value for argument in decorator.args)
                    shown.setdefault(framework, set()).update(columns)
    head = "| framework | " + " | ".join(COLUMNS) + " |"
    rows = (ROOT / "docs" / "frameworks.md").read_text().split(head)[1].split("\n\n")[0]
    table = {}
    for row in rows.splitlines()[2:]:
        framework, *cells = (cell.strip() for cell in row.strip("|").split("|"))
        assert set(cells) <= {"yes", "no"} and len(cells) == len(COLUMNS), row
        table[framework.partition(",")[0]] = {
            column for column, cell in zip(COLUMNS, cells, strict=True) if cell == "yes"
        }
    assert table == shown
