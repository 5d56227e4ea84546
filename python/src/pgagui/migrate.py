"""Installs and upgrades the schema, with the text of `pgagui migrate up`.

python -m pgagui migrate up
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from typing import Any

import psycopg

from ._error import Error
from ._psycopg import FAILURES, SCHEMA, error_of

_LOCK = 0x61677569_6D696772  # that of pgagui migrate: one process at a time
_LOCK_PAUSE = 0.1
_TABLE_PAUSE, _LONGEST_PAUSE, _PATIENCE = 0.125, 4.0, 60.0  # seconds, for locks of tables

# What others have planted in a schema is not found, and no timeout of the role ends a migration. A
# table that is in use is waited for only briefly, because others wait behind that.
_SETTINGS = """
    set search_path = pg_catalog, pg_temp; set statement_timeout = 0; set lock_timeout = 500;
    set idle_session_timeout = 0; set idle_in_transaction_session_timeout = 0"""
_IS_INSTALLED = "select to_regprocedure('agui_internal.installed()') is not null"
_IS_UNKNOWN = "select to_regclass('agui.batch') is not null"
_OTHER_TOOL = "select to_regclass('agui.schema_migrations') is null"


@dataclass(frozen=True, slots=True)
class State:
    """What a database has of the schema."""

    version: int
    """0: nothing is installed."""
    problem: str | None = None
    """Why this package cannot work with the database, and what to do. None: it can."""
    can_upgrade: bool = False
    """Whether up() solves the problem."""

    @property
    def latest(self) -> int:
        """The version of this package."""
        return SCHEMA


def up(address: str = "", *, notice: Callable[[str], None] | None = None) -> State:
    """Installs the schema, or upgrades it to that of this package. Returns the state before.

    address: "" is what the variables of libpq say (PGHOST, …). It must be that of the server: a
    pooler in transaction mode cannot hold the lock. notice gets what the server says meanwhile.

    Errors: Error, with what to do; then nothing was changed by the migration that failed.
    """
    with _connect(address, notice) as connection:
        _lock(connection)
        state = _state_of(connection)
        if state.problem and not state.can_upgrade:
            raise Error(state.problem)
        if state.version == state.latest:
            _complete(connection)
        elif state.version < state.latest:
            _upgrade(connection, state.version)
        return state


def status(address: str = "") -> State:
    """Returns what a database has of the schema."""
    with _connect(address, None) as connection:
        return _state_of(connection)


@contextmanager
def _connect(address: str, notice: Callable[[str], None] | None) -> Generator[Any, None, None]:
    try:
        with psycopg.connect(
            address, autocommit=True, client_encoding="utf8",
            fallback_application_name="pgagui-python migrate",
        ) as connection:  # fmt: skip
            if notice is not None:
                connection.add_notice_handler(lambda said: notice(_line(said)))
            connection.execute(_SETTINGS)
            yield connection
    except FAILURES as error:
        raise error_of(error) from error


def _line(said: psycopg.errors.Diagnostic) -> str:
    parts = said.message_primary, said.message_detail, said.message_hint
    return ". ".join(part for part in parts if part)


def _one(connection: Any, text: str, *values: Any) -> Any:
    row = connection.execute(text, values or None).fetchone()
    return row[0] if len(row) == 1 else row


def _lock(connection: Any) -> None:
    """Takes the lock for migrations, which the end of the connection gives back."""
    process = _one(connection, "select pg_backend_pid()")
    if process != connection.info.backend_pid:  # a pooler: does it keep the session for us?
        with psycopg.connect(connection.info.dsn, password=connection.info.password) as other:
            if _one(other, "select pg_backend_pid()") == process:
                raise Error(
                    "this is the address of a pooler in transaction mode, which keeps no lock",
                    hint="Use the address of the server itself.",
                )
    # By polling: who waits for an advisory lock holds a snapshot.
    while not _one(connection, "select pg_try_advisory_lock(%s)", _LOCK):
        time.sleep(_LOCK_PAUSE)


def _state_of(connection: Any) -> State:
    if not _one(connection, _IS_INSTALLED):
        if _one(connection, _IS_UNKNOWN):
            return _of_other_build(0, "nothing says of which build it is")
        problem = "the database has no schema agui: run python -m pgagui migrate up"
        return State(0, problem, can_upgrade=True)
    version, fingerprint, serves = _one(
        connection, "select version, fingerprint, serves from agui_internal.installed()"
    )
    if version > SCHEMA:
        problem = f"the schema agui has version {version}, and this package works with {SCHEMA}"
        return State(version, None if serves <= SCHEMA else f"{problem}: install a newer pgagui")
    if fingerprint != _migrations()["migrations"][version - 1]["fingerprint"]:
        why = f"its version {version} has the fingerprint {fingerprint[:12]}"
        return _of_other_build(version, why)
    if changed := _changes(connection):
        problem = f"the schema agui was changed by hand: {', '.join(changed[:5])}"
        return State(version, f"{problem}: see pgagui migrate status")
    if version == SCHEMA:
        return State(version)
    if _one(connection, _OTHER_TOOL):
        problem = f"another tool installed version {version} of the schema agui: add what is new to"
        problem += f" its migrations: pgagui migrate sql --from {version}"
        return State(version, problem)
    problem = f"the schema agui has version {version}, and this package needs {SCHEMA}"
    return State(version, f"{problem}: run python -m pgagui migrate up", can_upgrade=True)


def _of_other_build(version: int, why: str) -> State:
    problem = f"the schema agui was installed by another build of pgagui ({why})"
    return State(version, f"{problem}: use pgagui migrate status and up of the program")


def _changes(connection: Any) -> list[str]:
    """Returns the objects that were changed by hand. Version 1 does not record what they were."""
    name = "routine agui_internal.changed_objects"
    if not _one(connection, "select %s = any ((agui_internal.installed()).objects)", name):
        return []
    rows = connection.execute("select object, change from agui_internal.changed_objects()")
    return [f"{name} ({change})" for name, change in rows]


def _upgrade(connection: Any, version: int) -> None:
    if version == 0:  # an empty database needs only one
        if _one(connection, "select to_regnamespace('agui') is null"):
            connection.execute("create schema agui")
        steps = [(SCHEMA, "install", _migrations()["install"])]
    else:
        later = _migrations()["migrations"][version:]
        steps = [(step["version"], step["name"], step["up"]) for step in later]
    for number, name, text in steps:
        _patiently(f"migration {name}", partial(_step, connection, text, number))


def _step(connection: Any, text: str, version: int) -> None:
    with connection.transaction():
        connection.execute(text)
        # The table of golang-migrate, which pgagui migrate uses.
        connection.execute("""
            create table if not exists agui.schema_migrations
                (version bigint not null primary key, dirty boolean not null);
            truncate agui.schema_migrations""")
        connection.execute("insert into agui.schema_migrations values (%s, false)", [version])


def _patiently(what: str, work: Callable[[], None]) -> None:
    """Repeats what fails because others hold locks of tables."""
    pause, deadline = _TABLE_PAUSE, time.monotonic() + _PATIENCE
    while True:
        try:
            return work()
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
            if time.monotonic() > deadline:
                raise Error(
                    f"tables of agui are in use: {error.diag.message_primary}",
                    hint="Repeat it when long transactions have ended.",
                ) from error
        except psycopg.Error as error:
            refusal = error_of(error)
            refusal.args = (f"{what}: {refusal.message}",)
            refusal.message = refusal.args[0]
            raise refusal from error
        time.sleep(pause * random.uniform(0.5, 1.5))
        pause = min(2 * pause, _LONGEST_PAUSE)


def _complete(connection: Any) -> None:
    """Makes the roles and privileges that are missing, of a restored database for example."""
    if _one(
        connection,
        "select pg_has_role(nspowner, 'usage') from pg_namespace where nspname = 'agui_internal'",
    ):
        _patiently(
            "complete the privileges", lambda: connection.execute("call agui.grant_access()")
        )


@cache
def _migrations() -> dict[str, Any]:
    """What `pgagui migrate sql --format json` prints, which the build of the package adds."""
    file = resources.files("pgagui").joinpath("migrations.json")
    if not file.is_file():
        raise Error(
            "this build of the package has no migrations",
            hint="In the repository: make python/src/pgagui/migrations.json",
        )
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf8"))
    return found
