"""Connections: an address, a connection, a pool or an engine of SQLAlchemy.

Made of _database.py by generate.py. DO NOT EDIT.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from ._error import Closed
from ._psycopg import CHECK, DRIVERS, FAILURES, check_schema, error_of, of_engine, settings_for

Rows = list[dict[str, Any]]


class Database:
    """The calls of an Store. Each is one statement, in a transaction of its own."""

    def __init__(self, source: Any) -> None:
        self._address = source if isinstance(source, str) else None
        self._engine: Any = source if hasattr(source, "dialect") else None
        self._pool: Any = source if hasattr(source, "getconn") else None
        others = (self._address, self._engine, self._pool)
        self._connection: Any = source if others == (None, None, None) else None
        if self._connection is not None and not isinstance(source, Connection):
            raise TypeError(
                f"pgagui: {type(source).__name__} is no address, psycopg.Connection,"
                " psycopg_pool.ConnectionPool or engine of SQLAlchemy for them"
            )
        if self._engine is not None and self._engine.dialect.driver not in DRIVERS:
            raise TypeError(
                f"pgagui: the engine has the driver {self._engine.dialect.driver}: create it with"
                " postgresql+psycopg"
            )

    @property
    def has_pool(self) -> bool:
        """Whether calls can be made at any time, beside those of the caller."""
        return self._connection is None

    def open(self) -> None:
        """Opens the pool of an address. A first connection says what is wrong with it."""
        if self._address is None or self._pool is not None:
            return
        settings = settings_for(self._address)
        try:
            with Connection.connect(self._address, **settings) as first:
                answer = first.execute(CHECK)
                check_schema(*(answer.fetchone() or (0, 0)))
            self._pool = ConnectionPool(
                self._address, kwargs=settings, min_size=1, max_size=10, open=False, timeout=10,
                # It gives up soon, and each call that waits begins anew: with the default it tries
                # after 1, 2, 4, 8, … seconds, long after the database is back.
                reconnect_timeout=2,
            )  # fmt: skip
            self._pool.open()
        except FAILURES as error:
            raise error_of(error) from error

    def close(self) -> None:
        """Closes the pool of an address."""
        if self._address is not None and self._pool is not None:
            self._pool.close()

    def rows(
        self, text: str, values: Mapping[str, Any], scope: str, patience: float | None = None
    ) -> Rows:
        """Runs a statement and returns its rows. patience: for a connection, in seconds."""
        try:
            with self._connect(patience) as connection:
                if scope and connection.autocommit:
                    with connection.transaction():
                        return self._execute(connection, text, values, scope)
                return self._execute(connection, text, values, scope)
        except FAILURES as error:
            failure = error_of(error)
            if failure.retryable and self._connection is not None and self._connection.closed:
                failure = Closed(f"the connection of the store is closed: {failure.message}")
            raise failure from error

    @contextmanager
    def _connect(self, patience: float | None) -> Generator[Any, None, None]:
        if self._connection is not None:
            yield self._connection  # in the transaction of the caller
            return
        if self._engine is not None:
            held: Any = self._of_engine()
        elif self._pool is not None:
            held = self._pool.connection(patience)
        else:
            raise Closed("the store is not open", hint="Use it in: with Store(…)")
        with held as connection:
            before = connection.autocommit
            connection.set_autocommit(True)  # no message: one round trip, not three
            try:
                yield connection
            finally:
                if not connection.closed and not before:
                    connection.set_autocommit(False)

    @contextmanager
    def _of_engine(self) -> Generator[Any, None, None]:
        try:
            held = self._engine.connect()
        except Exception as error:
            raise of_engine(error) from error
        try:
            connection: Any = held.connection.driver_connection
            try:
                yield connection
            finally:
                if self._is_lost(connection):  # its pool does not see that by itself
                    held.invalidate()
        finally:
            held.close()

    @staticmethod
    def _is_lost(connection: Any) -> bool:
        return bool(connection.closed)

    @staticmethod
    def _execute(connection: Any, text: str, values: Mapping[str, Any], scope: str) -> Rows:
        with connection.cursor(row_factory=dict_row) as cursor:
            if scope:  # for row-level security
                set_scope = "select set_config('agui.scope', %s, true)"
                cursor.execute(set_scope, [scope], prepare=False)
            cursor.execute(text, values, prepare=False)
            rows: Rows = cursor.fetchall()
            return rows
