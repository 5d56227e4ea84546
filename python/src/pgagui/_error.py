"""The base of all errors of the package. errors.py has a class for each refusal of the database."""

from __future__ import annotations

from typing import ClassVar, Literal

Retry = Literal["permanent", "uncertain", "transient"]
NO_ANSWER = "the database did not answer in time"


class Error(Exception):
    """A call that failed: what failed, where, why, and what to do.

    `hint` says what to do, `sqlstate` is the code of PostgreSQL (None: it did not answer, or was
    not called), and `status` is the status of HTTP that a server answers with.
    """

    sqlstates: ClassVar[tuple[str, ...]] = ()
    status: ClassVar[int] = 500
    remedy: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        detail: str = "",
        sqlstate: str | None = None,
        retry: Retry = "permanent",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or self.remedy
        self.detail = detail
        self.sqlstate = sqlstate or (self.sqlstates[0] if self.sqlstates else None)
        self.retry: Retry = retry

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later."""
        return self.retry != "permanent"

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class Unavailable(Error):
    """The database cannot be reached, stops or starts, or did not answer in time."""

    status = 503


class Closed(Error):
    """The store, its pool or its connection is closed or not open, or the recording has ended."""


class WrongSchema(Error):
    """The schema of the database is older than the package, or too new for it."""


class NeedsPool(Error):
    """A recorder and a follower make calls at any time. They need a pool, not one connection."""

    remedy = "Give the store an address, a pool of psycopg or asyncpg, or an AsyncEngine."
