"""python -m pgagui migrate up|status"""

from __future__ import annotations

import argparse
import os
import sys

from . import migrate
from ._error import Error


def main(arguments: list[str] | None = None) -> int:
    """Runs a command, and returns its exit code: 1 for an error, 5 for a schema to look at."""
    parser = argparse.ArgumentParser(prog="python -m pgagui")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("migrate", help="install or upgrade the schema agui")
    command.add_argument("action", choices=["up", "status"])
    command.add_argument(
        "--database-url",
        default=os.environ.get("DATABASE_URL", ""),
        help="address of the server, not of a pooler (default: $DATABASE_URL, then $PGHOST, …)",
    )
    given = parser.parse_args(arguments)
    try:
        return _up(given.database_url) if given.action == "up" else _status(given.database_url)
    except Error as error:
        print(f"pgagui: {error}", file=sys.stderr)
        return 1


def _up(address: str) -> int:
    before = migrate.up(address, notice=lambda text: print(f"pgagui: {text}", file=sys.stderr))
    if before.version == 0:
        print(f"installed the schema agui, version {before.latest}")
    elif before.version < before.latest:
        print(f"upgraded the schema agui from version {before.version} to {before.latest}")
    else:
        print(f"agui is at version {before.version} already")
    return 0


def _status(address: str) -> int:
    state = migrate.status(address)
    print(state.problem or f"version {state.version}, up to date")
    return 0 if state.problem is None or state.can_upgrade else 5


if __name__ == "__main__":
    sys.exit(main())
