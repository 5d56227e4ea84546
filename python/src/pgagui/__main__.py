"""python -m pgagui demo|dev|migrate"""

from __future__ import annotations

import argparse
import os
import sys

from . import _demo, migrate
from ._error import Error


def main(arguments: list[str] | None = None) -> int:
    """Runs a command, and returns its exit code: 1 for an error, 5 for a schema to look at."""
    given = _parser().parse_args(arguments)
    try:
        return int(given.run(given))
    except Error as error:
        print(f"pgagui: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pgagui")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="demonstrate pgagui on a private PostgreSQL server")
    demo.set_defaults(run=_run_demo)
    demo.add_argument("--keep", action="store_true", help="keep the server until you press Enter")
    _add_address(demo, "address of a database to use instead (default: $DATABASE_URL)")

    dev = commands.add_parser("dev", help="start a database for development, until Ctrl-C")
    dev.set_defaults(run=_run_dev)
    folder = str(_demo.data_folder()).replace("%", "%%")
    dev.add_argument("--folder", help=f"folder of its data (default: {folder})")

    command = commands.add_parser("migrate", help="install or upgrade the schema agui")
    command.set_defaults(run=_run_migrate)
    command.add_argument("action", choices=["up", "status"])
    _add_address(
        command, "address of the server, not of a pooler (default: $DATABASE_URL, then $PGHOST, …)"
    )
    return parser


def _add_address(command: argparse.ArgumentParser, text: str) -> None:
    default = os.environ.get("DATABASE_URL", "")
    command.add_argument("--database-url", metavar="ADDRESS", default=default, help=text)


def _run_demo(given: argparse.Namespace) -> int:
    return _demo.demo(given.database_url, given.keep)


def _run_dev(given: argparse.Namespace) -> int:
    return _demo.dev(given.folder)


def _run_migrate(given: argparse.Namespace) -> int:
    address: str = given.database_url
    return _up(address) if given.action == "up" else _status(address)


def _up(address: str) -> int:
    before = migrate.up(address, notice=_demo.notice)
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
