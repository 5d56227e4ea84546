"""The store: what is in the database, and the recordings and followers of this process."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._calls import AsyncCalls
from ._calls_sync import Calls
from ._error import NeedsPool
from ._live import CALL_TIMEOUT, Follower, Live, problem_of, retry
from ._recorder import Agent, History, OnConcurrentRun, Recording, Tee
from .errors import LogRewound, UnknownThread
from .types import Attachment, AttachmentPart, Batch, Claim, Event, Position

if TYPE_CHECKING:
    from ._database import AsyncDatabase

EventsOf = Callable[[AttachmentPart], list[Event]]

CLAIM_INTERVAL = 0.5  # seconds after which a follower looks if a claimed run still will begin
LINE_END = re.compile("\r\n|\r|\n")


class AsyncStore(AsyncCalls):
    """Conversations in PostgreSQL, for programs with asyncio.

        async with AsyncStore("postgresql://…") as store:
            print(await store.messages("thread-1"))

    source is an address, a psycopg_pool.AsyncConnectionPool, asyncpg.Pool or sqlalchemy AsyncEngine
    (postgresql+psycopg, postgresql+asyncpg) of the caller, or one connection of psycopg or asyncpg:
    then each call is a part of the caller's transaction, and there is no recording and no follower.
    The schema is that of `pgagui migrate up`.

    scope is the tenant or user whose threads these are. linger is how long an event waits for
    others to share a commit, in seconds; max_bytes is how much of a run may wait for the database;
    check_every is the interval of heartbeats in seconds, less than a third of heartbeat_lease.
    """

    def __init__(
        self,
        source: Any,
        *,
        scope: str = "",
        linger: float = 0.02,
        max_bytes: int = 8 << 20,
        check_every: float = 1.0,
    ) -> None:
        super().__init__(_database_of(source), scope)
        self._linger, self._max_bytes = linger, max_bytes
        self._live = Live(self._database, check_every)

    def in_scope(self, scope: str) -> AsyncStore:
        """Returns the store of another tenant or user, with the same connections and tasks."""
        other: AsyncStore = object.__new__(type(self))
        other.__dict__.update(self.__dict__, scope=scope)
        return other

    async def open(self) -> AsyncStore:
        """Opens the pool of an address, and says at once what is wrong with it or its schema."""
        await self._database.open()
        return self

    async def close(self, timeout: float = 10.0) -> None:
        """Ends all recordings and followers, their tasks, and the pool of an address.

        Agents are cancelled; their events are stored, and their runs end as cut off. What cannot be
        stored within timeout seconds is lost.
        """
        await self._live.close(timeout)
        await self._database.close()

    async def __aenter__(self) -> AsyncStore:
        return await self.open()

    async def __aexit__(
        self, _: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()

    def record(
        self,
        run_input: Any,
        *,
        parent: str | None = None,
        parallel: bool = False,
        history: History | None = "fill",
        on_concurrent_run: OnConcurrentRun = "refuse",
        queue_timeout: float = 60.0,
    ) -> Recording:
        """Returns a recording of a run: `async with store.record(run_input) as run`.

        run_input is the RunAgentInput that the client sent, with threadId, runId and the user's
        words. parent: None is its parentRunId, or else what its messages say (history: which ones
        clients send; None: the head, whatever they send); "" makes a root. parallel lets the run
        begin while others are in progress in the thread; else on_concurrent_run says what it does
        then, for at most queue_timeout seconds. Those of one store have their turns in the order in
        which they came, and continue from the run before.
        """
        self._need_pool("a recording")
        return Recording(
            self._live, self.scope, run_input, parent=parent, parallel=parallel, history=history,
            on_concurrent_run=on_concurrent_run, queue_timeout=queue_timeout,
            linger=self._linger, max_bytes=self._max_bytes,
        )  # fmt: skip

    def tee(
        self,
        run_input: Any,
        agent: Agent | AsyncIterable[Any],
        *,
        parent: str | None = None,
        parallel: bool = False,
        history: History | None = "fill",
        on_concurrent_run: OnConcurrentRun = "refuse",
        queue_timeout: float = 60.0,
    ) -> Tee:
        """Records the events of an agent, and yields each once it is stored.

        agent is a function of the RunAgentInput, which has the stored messages before those of a
        client that sent only new ones; or the events themselves, an async iterable. It runs in a
        task of its own: a client that leaves does not end the run.
        """
        recording = self.record(
            run_input, parent=parent, parallel=parallel, history=history,
            on_concurrent_run=on_concurrent_run, queue_timeout=queue_timeout,
        )  # fmt: skip
        return Tee(self._live, recording, agent)

    def follow(
        self,
        thread_id: str,
        *,
        after: Position | str | int | None = None,
        run_id: str | None = None,
        stay: bool = False,
    ) -> AsyncGenerator[Event, None]:
        """Yields the events of a thread, those in the log and then those that are appended.

        It works in any process, on a standby, and through any pooler. after is the last event that
        the caller has: a position, its text (Last-Event-ID), or a seq. It ends when no run is in
        progress or claimed (with run_id: when that run is not), or with stay=True never. While the
        database is away, it waits.

        Errors: InvalidArgument and NeedsPool at once, by the call. While iterating: UnknownThread,
        unless stay; LogRewound, ThreadErased; Closed.
        """
        self._need_pool("a follower")
        return self._follow(Follower(self.scope, thread_id, Position.of(after)), run_id, stay)

    async def _follow(
        self, place: Follower, run_id: str | None, stay: bool
    ) -> AsyncGenerator[Event, None]:
        running: set[str] = set()
        is_more, is_claimed = True, False
        while True:
            if is_more:
                batches = await self._page(place)
            elif stay or running:
                batches = await self._live.poller.next(place)
            elif is_claimed:
                batches = await self._live.poller.next(place, CLAIM_INTERVAL)
                is_claimed = False
            else:
                end, claims = await self._end(place)
                running = {run for run in end.running if run_id in (None, run)}
                is_claimed = any(run_id in (None, claim.run_id) for claim in claims)
                is_more = end.seq > place.position.seq
                if not (running or is_claimed or is_more):
                    if end.run_id is None:
                        raise UnknownThread(f'thread "{place.thread_id}" is unknown')
                    return
                continue
            if problem := problem_of(batches, place):
                raise problem
            for batch in batches:
                for event in batch.events():
                    if run_id in (None, event.run_id):
                        yield event
                if batch.status == "running" and run_id in (None, batch.run_id):
                    running.add(batch.run_id)
                elif batch.json is not None:
                    running.discard(batch.run_id)
            is_more = place.take(batches)

    def connect(
        self,
        thread_id: str,
        *,
        after: Position | str | int | None = None,
        run_id: str | None = None,
        stay: bool = False,
    ) -> AsyncGenerator[Event, None]:
        """Yields a conversation for a page that loads, and then what follows until no run runs.

        Without after it begins with the history as a snapshot, whose last event has a position.
        after is what the page saw last: then it is follow, unless the log does not have that event
        any more, after a failover. With run_id it is that run, and ends with it; a page that saw a
        run before it in its lineage gets the rest of that first, and one that saw another branch
        the history. stay is as in follow. A thread without runs is no error.
        """
        return self._conversation(thread_id, after, run_id, stay)

    def _conversation(
        self,
        thread_id: str,
        after: Position | str | int | None,
        run_id: str | None,
        stay: bool,
        events_of: EventsOf = AttachmentPart.events,
    ) -> AsyncGenerator[Event, None]:
        self._need_pool("a follower")
        place = Position.of(after)
        if not place.seq:
            return self._connect(thread_id, run_id, stay, events_of)
        return self._resume(thread_id, place, run_id, stay, events_of)

    async def _resume(
        self, thread_id: str, place: Position, run_id: str | None, stay: bool, events_of: EventsOf
    ) -> AsyncGenerator[Event, None]:
        seen = run_id and await self._continued(thread_id, place, run_id)
        if seen or run_id is None:
            begun, stays = False, stay and seen == run_id
            try:
                async for event in self.follow(thread_id, after=place, run_id=seen, stay=stays):
                    begun = True
                    yield event
                if seen == run_id:
                    return
            except LogRewound:
                if begun:  # a page cannot take a history in the middle: it comes back
                    raise
        async for event in self._connect(thread_id, run_id, stay, events_of):
            yield event

    async def _continued(self, thread_id: str, place: Position, run_id: str) -> str | None:
        """The run of the event at a place, if a run is it or continues from it."""
        calls = self._live.calls(self.scope, CALL_TIMEOUT)
        read = partial(
            calls._rows, "history", "run_id, seq, created_at", thread_id=thread_id,
            after_seq=place.seq - 1, max_rows=1, compressed=False,
        )  # fmt: skip
        for seen in await retry(f'follow thread "{thread_id}"', read):
            if seen["seq"] != place.seq or place.recorded_at not in (None, seen["created_at"]):
                break
            if seen["run_id"] == run_id:
                return run_id
            share = partial(
                calls._value, "merge_base", thread_id=thread_id, run_a=seen["run_id"], run_b=run_id
            )
            if await retry(f'follow thread "{thread_id}"', share) == seen["run_id"]:
                shared: str = seen["run_id"]
                return shared
        return None

    async def _connect(
        self, thread_id: str, run_id: str | None, stay: bool, events_of: EventsOf
    ) -> AsyncGenerator[Event, None]:
        history = Attachment(None, None, [], 0, None, "[]")
        event: Event | None = None
        async for part in self._history(thread_id, run_id):
            history = part.attachment
            for event in events_of(part):
                yield event
        if event and event.type == "RUN_ERROR" and history.status == "running":
            return  # the history lacks what is too large, so the page cannot continue
        try:
            async for event in self.follow(
                thread_id, after=history.position, run_id=run_id, stay=stay
            ):
                yield event
        except UnknownThread:
            if history.run_id is not None:
                raise

    async def _history(
        self, thread_id: str, run_id: str | None, at_seq: int | None = None
    ) -> AsyncGenerator[AttachmentPart, None]:
        """Yields the parts of a history, as of one moment."""
        calls = self._live.calls(self.scope, CALL_TIMEOUT)
        number: int | None = 1
        while number is not None:
            read = partial(calls.attach_part, thread_id, run_id, at_seq=at_seq, part=number)
            part = await retry(f'attach to thread "{thread_id}"', read)
            yield part
            run_id, at_seq = part.attachment.run_id, part.attachment.seq
            number = part.next_part

    async def _page(self, place: Follower) -> list[Batch]:
        calls = self._live.calls(self.scope, CALL_TIMEOUT)

        async def read() -> list[Batch]:
            return await calls.poll([(place.thread_id, place.position)])

        return await retry(f'follow thread "{place.thread_id}"', read)

    async def _end(self, place: Follower) -> tuple[Attachment, list[Claim]]:
        """Returns the end of a thread with what is in progress, and the runs that will begin."""
        calls = self._live.calls(self.scope, CALL_TIMEOUT)

        async def read() -> tuple[Attachment, list[Claim]]:
            claims = await calls.claims(place.thread_id)  # first: a claim ends when its run begins
            seq = place.position.seq
            return await calls.attach(place.thread_id, after_seq=seq, shape="events"), claims

        return await retry(f'follow thread "{place.thread_id}"', read)

    def _need_pool(self, what: str) -> None:
        if not self._database.has_pool:
            raise NeedsPool(f"{what} cannot use the one connection of the store")


def _database_of(source: Any) -> AsyncDatabase:
    driver = sys.modules.get("asyncpg")  # it is imported if the source is made of it
    is_engine = hasattr(source, "dialect") and source.dialect.driver == "asyncpg"
    if driver and (is_engine or isinstance(source, (driver.Pool, driver.Connection))):
        from ._asyncpg import AsyncpgDatabase

        return AsyncpgDatabase(source)
    from ._database import AsyncDatabase

    return AsyncDatabase(source)


class Store(Calls):
    """The same without asyncio, and without recordings and followers.

        with Store("postgresql://…") as store:
            print(store.messages("thread-1"))

    source is an address, a psycopg_pool.ConnectionPool, a sqlalchemy Engine (postgresql+psycopg),
    or one psycopg.Connection, whose transaction the calls are a part of.
    """

    def __init__(self, source: Any, *, scope: str = "") -> None:
        from ._database_sync import Database

        super().__init__(Database(source), scope)

    def in_scope(self, scope: str) -> Store:
        """Returns the store of another tenant or user, with the same connections."""
        other: Store = object.__new__(type(self))
        other.__dict__.update(self.__dict__, scope=scope)
        return other

    def open(self) -> Store:
        """Opens the pool of an address, and says at once what is wrong with it or its schema."""
        self._database.open()
        return self

    def close(self) -> None:
        """Closes the pool of an address."""
        self._database.close()

    def __enter__(self) -> Store:
        return self.open()

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


async def sse(events: AsyncIterable[Event], *, ping: float = 15.0) -> AsyncGenerator[bytes, None]:
    """Writes events as server-sent events, each with the id that comes back as Last-Event-ID.

    After each pause of ping seconds it writes a comment, so that proxies keep the connection open.
    """
    iterator = events.__aiter__()
    coming: asyncio.Future[Event] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(_next(iterator))
            await asyncio.wait({coming}, timeout=ping)
            if not coming.done():
                yield b": ping\n\n"
                continue
            try:
                event = coming.result()
            except StopAsyncIteration:
                return
            coming = None
            place = f"id: {event.position}\n" if event.position else ""
            # A line of its own for each: the writer of an event may have put line ends between its
            # members. Not splitlines, which splits strings with U+2028.
            lines = "".join(f"data: {line}\n" for line in LINE_END.split(event.json))
            yield f"{place}{lines}\n".encode()
    finally:
        if coming is not None:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
        if close := getattr(iterator, "aclose", None):
            await close()


async def _next(iterator: AsyncIterator[Event]) -> Event:
    return await iterator.__anext__()
