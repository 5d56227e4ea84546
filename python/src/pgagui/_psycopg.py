"""What all connections share: the settings of those that the store opens, and their errors."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
from psycopg import conninfo
from psycopg_pool import PoolClosed

from ._error import NO_ANSWER, Closed, Error, Retry, Unavailable, WrongSchema
from .errors import OF_STATE, STATES, InvalidArgument

SCHEMA = 22  # the version of the schema that the package is made for

# What check_schema reads.
CHECK = "select version, serves from agui_internal.installed()"

# Of a pool that the store opens. Without prepared statements it works through any pooler. A lost
# network ends a call after some seconds: an operating system waits for a quarter of an hour.
_CONNECTION: dict[str, Any] = {
    "autocommit": True,
    "prepare_threshold": None,
    "client_encoding": "utf8",
    "connect_timeout": 10,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 12_000,
    "fallback_application_name": "pgagui-python",
}


def settings_for(address: str) -> dict[str, Any]:
    """What an address itself says counts."""
    given = conninfo.conninfo_to_dict(address)
    return {name: value for name, value in _CONNECTION.items() if name not in given}


def error_of(error: BaseException) -> Error:
    """Returns the error of the package for one of psycopg, its pool or asyncio."""
    message = " ".join(str(error).split()) or type(error).__name__  # one line; libpq writes two
    if isinstance(error, PoolClosed):
        return Closed("the pool of connections is closed", hint=message)
    if isinstance(error, (asyncio.TimeoutError, TimeoutError)):
        return Unavailable(NO_ANSWER, retry="transient")
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    if state is None:
        if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError, OSError)):
            return Unavailable(f"the database cannot be reached: {message}", retry="transient")
        return InvalidArgument(message)  # psycopg refuses a value, for example a text with NUL
    assert isinstance(error, psycopg.Error)
    said = error.diag
    hint, detail = said.message_hint or "", said.message_detail or ""
    return refusal(state, said.message_primary or message, hint=hint, detail=detail)


def refusal(state: str, message: str, *, hint: str, detail: str) -> Error:
    """Returns the error of the package for what a server says."""
    retry, advice = _repeat(state, message)
    is_away = retry != "permanent" and state.startswith(("08", "57P"))
    kind = OF_STATE.get(state, Unavailable if is_away else Error)
    hint = hint or (advice if kind is Error else "")
    return kind(message, hint=hint, detail=detail, sqlstate=state, retry=retry)


def check_schema(version: int, serves: int) -> None:
    """Refuses a schema that this package cannot work with."""
    if version < SCHEMA:
        what, hint = "is older than", "Run python -m pgagui migrate up, or pgagui migrate up."
    elif serves > SCHEMA:
        what, hint = "is newer than", "Install a newer pgagui."
    else:
        return
    raise WrongSchema(
        f"the schema agui has version {version}, which {what} {SCHEMA}, that of this package",
        hint=hint,
    )


def _repeat(state: str, message: str) -> tuple[Retry, str]:
    """Returns whether a retry may cure an error, and what to do."""
    for code, begin, retry, advice in STATES:
        if state.startswith(code) and message.startswith(begin):
            return retry, advice
    return "permanent", ""


FAILURES = (psycopg.Error, OSError, asyncio.TimeoutError, UnicodeError)

# The names of psycopg in SQLAlchemy.
DRIVERS = ("psycopg", "psycopg_async")


def of_engine(error: Exception) -> BaseException:
    """Returns the error of the driver in one of SQLAlchemy, which has no connection to give."""
    cause: object = getattr(error, "orig", None)
    if isinstance(cause, psycopg.Error):
        return cause
    if isinstance(cause, Exception) and cause.__cause__ is not None:  # of asyncpg
        return cause.__cause__
    if type(error).__name__ == "TimeoutError":  # all of its connections are in use
        return TimeoutError(str(error))
    return error
