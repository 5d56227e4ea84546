"""Writes the twins without async of files of src/pgagui: python generate.py"""

from pathlib import Path

SOURCE = Path(__file__).parent / "src" / "pgagui"
TWINS = {"_calls.py": "_calls_sync.py", "_database.py": "_database_sync.py"}
WORDS = {
    "(await held.get_raw_connection())": "held.connection",
    "async def ": "def ",
    "async with ": "with ",
    "await ": "",
    "AsyncCalls": "Calls",
    "AsyncDatabase": "Database",
    "AsyncConnection": "Connection",
    "AsyncGenerator": "Generator",
    "[Any, None]": "[Any, None, None]",
    "AsyncStore": "Store",
    "asynccontextmanager": "contextmanager",
    "from ._database ": "from ._database_sync ",
}


def twin(name: str) -> str:
    """Returns the text of the twin of a file."""
    head, _, rest = (SOURCE / name).read_text().partition(f"{TWINS[name]} is made of")
    rest = rest.partition("\n")[2]
    for word, replacement in WORDS.items():
        rest = rest.replace(word, replacement)
    return f"{head}Made of {name} by generate.py. DO NOT EDIT.\n{rest}"


if __name__ == "__main__":
    for name, path in TWINS.items():
        (SOURCE / path).write_text(twin(name))
