"""What the recordings and followers of a process share: retries, heartbeats, polls, their tasks."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from ._calls import AsyncCalls
from ._error import NO_ANSWER, Closed, Error, Unavailable
from .errors import OF_STATE
from .types import Batch, Position

if TYPE_CHECKING:
    from ._database import AsyncDatabase, Rows
    from ._recorder import Recording

log = logging.getLogger("pgagui")
Result = TypeVar("Result")

MAX_UNCERTAIN = 3  # failures in a row
POLL_TIMEOUT = HEARTBEAT_TIMEOUT = 10.0
CALL_TIMEOUT = 30.0


class Change:
    """Wakes all tasks that wait for the next change."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[bool]] = set()

    def notify(self) -> None:
        """Says that something has changed."""
        for waiting in self._waiting:
            _resolve(waiting, True)

    async def wait(self, timeout: float | None = None) -> bool:
        """Waits for the next change, and returns whether it came in time.

        Not by asyncio.wait_for: before Python 3.12 it may lose a cancellation.
        """
        loop = asyncio.get_running_loop()
        waiting = loop.create_future()
        timer = None if timeout is None else loop.call_later(timeout, _resolve, waiting, False)
        self._waiting.add(waiting)
        try:
            return bool(await waiting)
        finally:
            self._waiting.discard(waiting)
            if timer is not None:
                timer.cancel()


def _resolve(waiting: asyncio.Future[Result], result: Result) -> None:
    if not waiting.done():
        waiting.set_result(result)


async def retry(
    what: str,
    call: Callable[[], Awaitable[Result]],
    *,
    before_retry: Callable[[], Awaitable[object]] | None = None,
) -> Result:
    """Makes a call until it succeeds or fails permanently."""
    pause, uncertain, failed = 0.02, 0, False
    while True:
        try:
            if failed and before_retry is not None:
                await before_retry()
            result = await call()
        except Error as error:
            uncertain = uncertain + 1 if error.retry == "uncertain" else 0
            if not error.retryable or uncertain > MAX_UNCERTAIN:
                raise
            if not failed:
                log.warning("%s: the database did not answer, it is retried: %s", what, error)
            failed = True
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 2, 2)
            continue
        if failed:
            log.info("%s: the database answers again", what)
        return result


class _TimedCalls(AsyncCalls):
    """Calls that wait so many seconds for an answer, and less for a connection.

    A call that waits for a connection for longer than a pool tries to open one would wait in vain:
    the next call makes it try anew.
    """

    def __init__(self, database: AsyncDatabase, scope: str, timeout: float) -> None:
        super().__init__(database, scope)
        self._timeout = timeout

    async def _fetch(self, text: str, values: Mapping[str, Any]) -> Rows:
        try:
            call = self._database.rows(text, values, self.scope, patience=3)
            return await asyncio.wait_for(call, self._timeout)
        except asyncio.TimeoutError as error:
            raise Unavailable(NO_ANSWER, retry="transient") from error


class Live:
    """The tasks of a store. They end with the last recording or follower, or with close()."""

    def __init__(self, database: AsyncDatabase, check_every: float) -> None:
        self.check_every = check_every
        self.poller = Poller(self)
        self.recordings: set[Recording] = set()
        self.is_closed = False
        self._database = database
        self._tasks: set[asyncio.Task[Any]] = set()
        self._beating: asyncio.Task[None] | None = None
        self._beat: asyncio.Task[None] | None = None
        self._settling = asyncio.Lock()
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    def calls(self, scope: str, timeout: float) -> AsyncCalls:
        """The calls of a background task, which has no caller who would stop waiting."""
        return _TimedCalls(self._database, scope, timeout)

    def turn(self, scope: str, thread_id: str) -> asyncio.Lock:
        """The lock of a thread, which those who wait get in the order in which they came."""
        return self._turns.setdefault((scope, thread_id), asyncio.Lock())

    def spawn(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Starts a task that the store keeps until it ends."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, Error):
            log.error("a task of the store failed", exc_info=error)

    def add(self, recording: Recording) -> None:
        """Keeps a recording alive until remove."""
        self.recordings.add(recording)
        if self._beating is None or self._beating.done():
            self._beating = self.spawn(self._keep_beating())

    def remove(self, recording: Recording) -> None:
        """Ends the heartbeats of a recording."""
        self.recordings.discard(recording)
        if not self.recordings and self._beating is not None:
            self._beating.cancel()
            self._beating = None

    async def _keep_beating(self) -> None:
        while self._beating is asyncio.current_task():
            await asyncio.sleep(self.check_every)
            try:
                await retry("heartbeat", self.beat)
            except Error as error:
                log.error("the runs that are recorded cannot be kept alive: %s", error)

    async def beat(self) -> None:
        """Sends heartbeats for all runs. Callers at the same time share one."""
        if self._beat is None or self._beat.done():
            self._beat = self.spawn(self._send_heartbeats())
        await asyncio.shield(self._beat)

    async def _send_heartbeats(self) -> None:
        scopes: dict[str, list[Recording]] = {}
        for recording in self.recordings:
            if recording.is_in_progress:
                scopes.setdefault(recording.scope, []).append(recording)
        for scope, recordings in scopes.items():
            runs = [(recording.thread_id, recording.run_id) for recording in recordings]
            for signal in await self.calls(scope, HEARTBEAT_TIMEOUT).keep_alive(runs):
                recordings[signal.call_no - 1].told(signal)

    async def settle(self, calls: AsyncCalls, thread_id: str) -> None:
        """Compacts a thread in which a run has ended, so that a reload does not wait for a job."""
        async with self._settling:  # one connection of the pool at most
            try:
                await calls.settle(thread_id)
            except Error as error:
                log.debug('thread "%s" is left to the compaction job: %s', thread_id, error)

    async def close(self, timeout: float) -> None:
        """Ends all recordings and followers, and waits for their tasks, at most timeout seconds."""
        self.is_closed = True
        self.poller.stop()
        for recording in list(self.recordings):
            recording.shut_down()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while tasks := self._tasks - {asyncio.current_task()}:
            if loop.time() > deadline:
                log.error("%d tasks are cancelled: they did not end in %s s", len(tasks), timeout)
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks, timeout=timeout)
                return
            await asyncio.wait(tasks, timeout=1 if self.recordings else deadline - loop.time())
            for recording in list(self.recordings):
                recording.shut_down()  # an agent may have swallowed the cancellation before


@dataclass(eq=False)
class Follower:
    """A reader of a thread: a scope, a thread and a position."""

    scope: str
    thread_id: str
    position: Position
    waits: asyncio.Future[list[Batch]] | None = field(default=None, repr=False)

    def take(self, batches: list[Batch]) -> bool:
        """Moves behind batches. Returns whether the thread may have more."""
        rows = [batch for batch in batches if batch.json is not None]
        if rows and (events := rows[-1].events()):
            self.position = events[-1].position or self.position
        return len(rows) < len(batches) or len(rows) >= MAX_BATCHES


MAX_BATCHES = 100
MAX_THREADS = 500
SHORTEST_PAUSE, LONGEST_PAUSE = 0.02, 0.1


def problem_of(batches: list[Batch], follower: Follower) -> Error | None:
    """Returns why a thread cannot be followed."""
    for batch in batches:
        if batch.problem is not None:
            kind = OF_STATE.get(batch.problem, Error)
            return kind(
                f'thread "{follower.thread_id}" cannot be followed behind seq'
                f" {follower.position.seq}: {kind.__doc__}",
                sqlstate=batch.problem,
            )
    return None


class Poller:
    """Asks for the new events of all threads that followers wait for, many in one query."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._waiting: set[Follower] = set()
        self._task: asyncio.Task[None] | None = None
        self._woken = Change()

    async def next(self, follower: Follower, timeout: float | None = None) -> list[Batch]:
        """Waits for what follows behind a follower. Nothing: it did not come within timeout."""
        if self._live.is_closed:
            raise Closed("the store is closed")
        loop = asyncio.get_running_loop()
        waits: asyncio.Future[list[Batch]] = loop.create_future()
        follower.waits = waits
        nothing: list[Batch] = []
        timer = None if timeout is None else loop.call_later(timeout, _resolve, waits, nothing)
        self._waiting.add(follower)
        if self._task is None or self._task.done():
            self._task = self._live.spawn(self._run())
        try:
            return await waits
        finally:
            self._waiting.discard(follower)
            if timer is not None:
                timer.cancel()

    def wake(self) -> None:
        """Makes the next poll come soon: there are new events."""
        self._woken.notify()

    def stop(self) -> None:
        """Fails all followers."""
        self._fail(list(self._waiting), Closed("the store is closed"))
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        # It rests once more when all have left, so that a lone reader, who comes back after each
        # batch, does not make it poll without pause.
        pause, loop = SHORTEST_PAUSE, asyncio.get_running_loop()
        while self._waiting:
            began, is_new = loop.time(), False
            for items in list(self._items()):
                followers = [follower for item in items for follower in item]
                try:
                    is_new |= await retry("poll", lambda items=items: self._poll(items))  # type: ignore[misc]
                except Error as error:
                    self._fail(followers, error)
            pause = SHORTEST_PAUSE if is_new else min(pause * 1.25, LONGEST_PAUSE)
            # A slow server has time for others: then events arrive later.
            rest = min(max(4 * (loop.time() - began), 0.005), 1.0)
            await asyncio.sleep(rest)
            await self._woken.wait(max(pause - rest, 0))

    def _items(self) -> Iterator[list[list[Follower]]]:
        """The followers of each query. Those at the same place of a thread share an item."""
        scopes: dict[str, dict[tuple[str, Position], list[Follower]]] = {}
        for follower in self._waiting:
            items = scopes.setdefault(follower.scope, {})
            items.setdefault((follower.thread_id, follower.position), []).append(follower)
        for items in scopes.values():
            rest = iter(items.values())
            while some := list(islice(rest, MAX_THREADS)):
                yield some

    async def _poll(self, items: list[list[Follower]]) -> bool:
        calls = self._live.calls(items[0][0].scope, POLL_TIMEOUT)
        places = [(item[0].thread_id, item[0].position) for item in items]
        answers: dict[int, list[Batch]] = {}
        for batch in await calls.poll(places, limit=MAX_BATCHES):
            answers.setdefault(batch.thread_no, []).append(batch)
        for number, batches in answers.items():
            for follower in items[number - 1]:
                if follower.waits is None or follower.waits.done():
                    continue
                if problem := problem_of(batches, follower):
                    follower.waits.set_exception(problem)
                elif batches[0].json is not None:
                    follower.waits.set_result(batches)
        return bool(answers)

    @staticmethod
    def _fail(followers: list[Follower], error: Error) -> None:
        for follower in followers:
            if follower.waits is not None and not follower.waits.done():
                follower.waits.set_exception(error)
