"""Connections of asyncpg: a pool, a connection or an engine of the caller."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg

from ._database import AsyncDatabase, Rows
from ._error import Closed, Error, Unavailable
from ._psycopg import FAILURES, error_of, refusal
from .errors import InvalidArgument, PreparedStatement

_FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
_PARAMETER = re.compile(r"%\((\w+)\)s")
_SET_SCOPE = "select set_config('agui.scope', $1, true)"
_POOLER_HINT = (
    "Open the pool of asyncpg with statement_cache_size=0: a pooler in transaction mode, such as"
    " PgBouncer, loses prepared statements."
)


@dataclass(frozen=True, slots=True)
class _Statement:
    text: str
    names: list[str]  # of its parameters, $1 first
    documents: list[str]  # its columns with JSON


class AsyncpgDatabase(AsyncDatabase):
    """The calls of an AsyncStore over asyncpg. Each is one statement, like those over psycopg."""

    def __init__(self, source: Any) -> None:
        self._address = None
        self._engine = source if hasattr(source, "dialect") else None
        self._pool = source if isinstance(source, asyncpg.Pool) else None
        self._connection = source if isinstance(source, asyncpg.Connection) else None
        self._statements: dict[str, _Statement] = {}

    async def rows(
        self, text: str, values: Mapping[str, Any], scope: str, patience: float | None = None
    ) -> Rows:
        """Runs a statement and returns its rows. patience: for a connection, in seconds."""
        try:
            async with self._connect(patience) as connection:
                if scope and not connection.is_in_transaction():
                    async with connection.transaction():
                        return await self._fetch(connection, text, values, scope)
                return await self._fetch(connection, text, values, scope)
        except (*FAILURES, *_FAILURES) as error:
            raise self._failure(error) from error

    @asynccontextmanager
    async def _connect(self, patience: float | None) -> AsyncGenerator[Any, None]:
        if self._connection is not None:
            yield self._connection  # in the transaction of the caller, if there is one
            return
        held = self._of_engine() if self._pool is None else self._pool.acquire(timeout=patience)
        async with AsyncExitStack() as stack:
            try:
                connection = await stack.enter_async_context(held)
            except asyncpg.PostgresError as error:
                failure = _refusal(error)
                if failure.retry == "uncertain":  # the database takes no connection for the moment
                    failure.retry = "transient"
                raise failure from error
            yield connection

    async def _fetch(
        self, connection: Any, text: str, values: Mapping[str, Any], scope: str
    ) -> Rows:
        if scope:  # for row-level security
            await connection.fetch(_SET_SCOPE, scope)
        statement = self._statements.get(text)
        if statement is None:
            statement = self._statements[text] = await _describe(connection, text)
        given = [values[name] for name in statement.names]
        rows = [dict(record) for record in await connection.fetch(statement.text, *given)]
        for name in statement.documents:
            for row in rows:
                row[name] = None if row[name] is None else json.loads(row[name])
        return rows

    def _failure(self, error: BaseException) -> Error:
        if isinstance(error, asyncpg.PostgresError):
            failure = _refusal(error)
        elif isinstance(error, asyncpg.InternalClientError) or "connection is closed" in str(error):
            # The first is of a connection that is lost in the middle of a call.
            failure = Unavailable(f"the database cannot be reached: {error}", retry="transient")
        elif isinstance(error, asyncpg.InterfaceError):
            failure = Error(f"asyncpg: {error}")
        else:
            failure = error_of(error)
        if (failure.retryable or failure.sqlstate is None) and self._is_closed():
            return Closed(f"the pool or connection of the store is closed: {failure.message}")
        return failure

    def _is_closed(self) -> bool:
        if self._pool is not None:
            return bool(self._pool.is_closing())
        try:
            return self._connection is not None and self._is_lost(self._connection)
        except asyncpg.InterfaceError:  # it was given back to its pool
            return True

    @staticmethod
    def _is_lost(connection: Any) -> bool:
        return bool(connection.is_closed())


async def _describe(connection: Any, text: str) -> _Statement:
    """Returns a statement in the words of asyncpg.

    JSON travels as text: a codec that the caller has set for it would be applied otherwise.
    """
    names = list(dict.fromkeys(_PARAMETER.findall(text)))
    places = {name: f"${number}" for number, name in enumerate(names, 1)}
    # Without a name: a pooler would lose it. The call follows on the same connection.
    prepared = await connection.prepare(_with(places, text), name="")
    for name, type in zip(names, prepared.get_parameters(), strict=True):
        if type.name in ("json", "jsonb"):
            places[name] += f"::text::{type.name}"
    text = _with(places, text)
    columns = prepared.get_attributes()
    documents = [column.name for column in columns if column.type.name in ("json", "jsonb")]
    if documents:
        shown = (
            f'"{column.name}"{"::text" if column.name in documents else ""}' for column in columns
        )
        text = f"select {', '.join(shown)} from ({text}) as answer"
    return _Statement(text, names, documents)


def _with(places: Mapping[str, str], text: str) -> str:
    return _PARAMETER.sub(lambda match: places[match[1]], text)


def _refusal(error: asyncpg.PostgresError) -> Error:
    state, message = error.sqlstate or "", " ".join(str(error.args[0]).split())
    if state == asyncpg.DataError.sqlstate:  # asyncpg itself refuses a value
        return InvalidArgument(message)
    if isinstance(error, asyncpg.InvalidCachedStatementError):
        message = f"cached plan: {message}"  # as the table of errors knows it
    found = refusal(state, message, hint=error.hint or "", detail=error.detail or "")
    if isinstance(found, PreparedStatement):
        found.hint = _POOLER_HINT
    return found
