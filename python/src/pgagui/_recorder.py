"""Stores what an agent sends while it runs, and the end of its run."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable
from itertools import islice
from types import TracebackType
from typing import Any, Literal, get_args

from ._error import Closed, Error
from ._events import ENDS, encode_event, encode_input, is_answer
from ._live import CALL_TIMEOUT, Change, Follower, Live, log, problem_of, retry
from .errors import (
    ConflictingRepeat,
    InvalidArgument,
    InvalidEvents,
    RunCutOff,
    RunEnded,
    RunInProgress,
    UnknownThread,
)
from .types import BranchPoint, Event, Position, Signal

MAX_BATCH_EVENTS, MAX_BATCH_BYTES = 500, 64 << 10
MAX_KEPT_BYTES = 1 << 20  # of a client that reads slowly: then it reads from the log
MAX_ERROR_TEXT = 4000
FIRST_TURN_PAUSE, LONGEST_TURN_PAUSE = 0.05, 0.5

Agent = Callable[[dict[str, Any]], AsyncIterable[Any]]
"""An agent: it gets a RunAgentInput, and yields events."""

History = Literal["full", "fill", "new"]
"""Which messages clients send with a run: all (one that sends none of the stored ones begins a new
conversation), all or only new ones, or only new ones."""

OnConcurrentRun = Literal["refuse", "supersede", "queue"]
"""What a run does while another one of its thread is in progress: it is refused (RunInProgress), it
requests the other one to stop and begins when that has ended, or it waits for its turn."""


class Recording:
    """A run that is being recorded: `async with store.record(run_input) as run`.

    The block is the agent. It is cancelled when the run is asked to stop, and when its events
    cannot be stored. When it ends without an end of the run, the recording writes one:

    - RUN_FINISHED, if the block ends;
    - RUN_ERROR with the text of the exception, if it raises one, which then goes on to the caller;
    - RUN_FINISHED with the outcome cancelled, if it was asked to stop. The code behind the block
      continues, and `stop_reason` is set;
    - the end of a run that was cut off, if its task is cancelled, or the store is closed.
    """

    def __init__(
        self,
        live: Live,
        scope: str,
        run_input: Any,
        *,
        parent: str | None,
        parallel: bool,
        history: History | None,
        on_concurrent_run: OnConcurrentRun,
        queue_timeout: float,
        linger: float,
        max_bytes: int,
    ) -> None:
        if on_concurrent_run not in get_args(OnConcurrentRun):
            raise InvalidArgument(
                f"on_concurrent_run is {on_concurrent_run!r}",
                hint='Use "refuse", "supersede" or "queue".',
            )
        self._input, members = encode_input(run_input)
        self._members: dict[str, Any] = members
        ids = members.get("threadId"), members.get("runId")
        if not all(isinstance(name, str) and name for name in ids):
            raise InvalidEvents(
                "the input of a run has no threadId or no runId",
                hint="Give the RunAgentInput that the client sent.",
            )
        self.thread_id, self.run_id = str(ids[0]), str(ids[1])
        self.scope = scope
        self.seq = 0
        """The seq of the last event that is stored; 0: none."""
        self.failure: Error | None = None
        """Why the events of the run cannot be stored any more."""
        self.parent_run_id: str | None = None
        """The run that it continues, once it has its place. None: none."""
        self.lacks_history = False
        """Whether the client lacks stored messages, or has them under other ids."""
        self.stop_reason: str | None = None
        """Set once the run is asked to stop: the reason, or "" without one."""

        self._live = live
        self._calls = live.calls(scope, CALL_TIMEOUT)
        self._parent = members.get("parentRunId") if parent is None else parent
        self._history, self._is_filled = history, False
        self._waited_from: str | None = None
        self._parallel = parallel
        self._on_concurrent_run, self._queue_timeout = on_concurrent_run, queue_timeout
        self._linger, self._max_bytes = linger, max_bytes
        self._claimant = str(uuid.uuid4())
        self._pending: deque[tuple[str, str]] = deque()
        self._bytes = self._taken = self._kept = 0
        self._has_ended = self._is_closing = self._is_urgent = self._is_shut_down = False
        self._has_left = False  # while it waited for its turn
        self._changed, self._news = Change(), Change()
        self._sending: asyncio.Task[None] | None = None
        self._body: asyncio.Task[Any] | None = None
        self._cancelled_body = False
        self._stored: Callable[[list[Event]], None] | None = None

    # --- for the agent ---

    async def send(self, *events: Any) -> None:
        """Takes events, in this order. They are stored soon; flush waits for that.

        An event is a str, bytes, a dict, or a model of ag_ui. send waits while 8 MiB are not stored
        yet. Errors: InvalidEvents, then it took none; Closed; and what ended the recording early.
        """
        encoded = [encode_event(event) for event in events]
        size, ends = 0, False
        for text, kind in encoded:
            size += len(text)
            ends = ends or kind in ENDS
        while self.failure is None and self._pending and self._bytes + size > self._max_bytes:
            self._hurry()
            await self._changed.wait()
        if self.failure is not None:
            raise self.failure
        if self._is_closing or self._sending is None:
            raise Closed(f"{self} takes no events: it is not open")
        self._pending.extend(encoded)
        self._bytes += size
        self._taken += len(encoded)
        self._has_ended = self._has_ended or ends
        is_full = len(self._pending) >= MAX_BATCH_EVENTS or self._bytes >= MAX_BATCH_BYTES
        if ends or is_full or self.seq == 0:
            self._hurry()
        else:
            self._news.notify()
        if is_full or self._taken <= len(encoded):
            await asyncio.sleep(0)  # an agent that never waits would leave no time to store them

    async def flush(self) -> None:
        """Stores at once what send took, and returns when that is done."""
        target = self._taken
        while self._kept < target:
            if self.failure is not None:
                raise self.failure
            self._hurry()
            await self._changed.wait()

    @property
    def unstored(self) -> list[str]:
        """The events that send took and that are not in the log."""
        return [text for text, _ in self._pending]

    async def begin(self) -> None:
        """Takes the place of the run in its thread. `async with` does it.

        If neither the caller nor the client names a parent, the messages of the client say where
        it continues: one that it edited, or an answer that it wants again, begins a branch.

        Errors: RunInProgress, RunIDInUse (a request that came twice: follow its run), and the
        others of agui.claim_run.
        """
        if self._sending is not None:
            return
        if self._live.is_closed:
            raise Closed("the store is closed")
        claiming = self._live.spawn(self._take_place())
        try:
            await asyncio.shield(claiming)
        except asyncio.CancelledError:
            self._has_left = True
            claiming.add_done_callback(lambda _: self._live.spawn(self._release()))
            raise
        self._sending = self._live.spawn(self._send_all())
        self._live.add(self)

    async def agent_input(self) -> dict[str, Any]:
        """Returns the RunAgentInput for the agent, once the run has its place.

        It has the stored messages before those of a client that sent only new ones, and the stored
        state if the client has none.
        """
        members = dict(self._members)
        if self._is_filled and self.parent_run_id is not None:
            at = self.thread_id, self.parent_run_id
            members["messages"] = await self._calls.agent_messages(
                at[0], members.get("messages") or [], at[1]
            )
            if not members.get("state"):
                members["state"] = await self._calls.state(*at)
        return members

    async def withdraw(self) -> None:
        """Gives up the place of the run, of which no event has been sent."""
        self._is_closing = True
        self._live.remove(self)
        self._hurry()
        if self._sending is not None:
            await self._sending
        await self._release()

    async def __aenter__(self) -> Recording:
        await self.begin()
        self._body = asyncio.current_task()
        if self._is_shut_down or self.stop_reason is not None or self.failure is not None:
            self._cancel_body()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        body, self._body = self._body, None  # from here on it is not cancelled
        closing = self._live.spawn(self._close(error))
        is_ours = isinstance(error, asyncio.CancelledError) and self._uncancel(body)
        while not closing.done():
            try:
                await asyncio.shield(closing)
            except asyncio.CancelledError:
                # The cancellation by this recording may arrive only here.
                if closing.done() or not self._uncancel(body):
                    raise
            except Error:
                break
        self._uncancel(body)  # the agent has swallowed it
        failure = closing.exception()
        if failure is not None and (error is None or is_ours):
            raise failure from error
        return is_ours and not self._is_shut_down

    # --- for Live ---

    @property
    def is_in_progress(self) -> bool:
        """Whether the run is claimed or in progress, as far as the recording knows."""
        return self.failure is None and not (self._has_ended and not self._pending)

    def told(self, signal: Signal) -> None:
        """Acts on the answer to a heartbeat."""
        if self._has_ended or self._is_closing or self.failure is not None:
            return
        if signal.cut_off_reason:
            self._fail(RunCutOff(f"{self} was cut off: {signal.cut_off_reason}"))
        elif signal.status not in ("running", "claimed"):
            self._fail(RunEnded(f"{self} was ended by another writer"))
        elif signal.stop_requested_at is not None and self.stop_reason is None:
            self.stop_reason = signal.stop_reason or ""
            self._cancel_body()

    def shut_down(self) -> None:
        """Cancels the agent, because the store is closed."""
        self._is_shut_down = True
        self._cancel_body()

    # --- inside ---

    def __str__(self) -> str:
        return f'run "{self.run_id}" of thread "{self.thread_id}"'

    def _cancel_body(self) -> None:
        if self._body is not None and not (self._cancelled_body and not self._is_shut_down):
            self._cancelled_body = True
            self._body.cancel()

    def _uncancel(self, body: asyncio.Task[Any] | None) -> bool:
        """Takes back its cancellation of the agent. False: there is none, or another one, too."""
        if not self._cancelled_body or body is None:
            return False
        self._cancelled_body = False
        return sys.version_info < (3, 11) or body.uncancel() == 0

    def _fail(self, error: Error) -> None:
        if self.failure is None:
            self.failure = error
            log.warning(
                "%s: its recording ended early, %d events are not stored: %s",
                self, len(self._pending), error,
            )  # fmt: skip
            self._cancel_body()
        self._changed.notify()

    def _hurry(self) -> None:
        self._is_urgent = True
        self._news.notify()

    async def _claim(self) -> str | None:
        [claim] = await self._calls._rows(
            "claim_run", "parent_run_id", thread_id=self.thread_id, run_id=self.run_id,
            claimant=self._claimant, input=self._input, parent_run_id=self._parent,
            parallel=self._parallel,
        )  # fmt: skip
        parent: str | None = claim["parent_run_id"]
        return parent

    async def _take_place(self) -> None:
        """Claims the run, and finds out where it continues."""
        self.parent_run_id = parent = await self._claim_in_turn()
        if parent is None or self._history is None:
            return

        async def find() -> BranchPoint:
            return await self._calls.branch_point(
                self.thread_id, self._members.get("messages") or [], parent,
                history=self._history or "fill", waited_from=self._waited_from,
                is_given=self._parent is not None or is_answer(self._members),
            )  # fmt: skip

        try:
            found = await retry(f"find the place of {self}", find)
        except Error:
            await self._release()
            raise
        self.lacks_history, self._is_filled = found.lacks_history, found.is_filled
        if found.parent_run_id != parent:
            self.parent_run_id = found.parent_run_id
            self._parent = found.parent_run_id or ""  # before the parent of the claim

    async def _claim_in_turn(self) -> str | None:
        if self._on_concurrent_run == "refuse":
            return await retry(f"claim {self}", self._claim)
        loop, pause = asyncio.get_running_loop(), FIRST_TURN_PAUSE
        until = loop.time() + self._queue_timeout
        turn = self._live.turn(self.scope, self.thread_id)
        noting = self._live.spawn(self._note_head()) if turn.locked() else None
        async with turn:  # before any await: else those that wait would come in another order
            if noting is not None:
                await noting
            while True:
                if self._has_left or self._live.is_closed:
                    raise Closed(f"{self} did not wait for its turn")
                try:
                    return await retry(f"claim {self}", self._claim)
                except RunInProgress:
                    await self._note_head()
                    left = until - loop.time()
                    if left <= 0:
                        raise
                if self._on_concurrent_run == "supersede":
                    reason = "superseded by another run"
                    await self._calls.request_stop(self.thread_id, reason=reason)
                await asyncio.sleep(min(pause, left))
                pause = min(2 * pause, LONGEST_TURN_PAUSE)

    async def _note_head(self) -> None:
        """Notes at the end of which run the thread was before what this run waits for."""
        if self._waited_from is None and self._history is not None:
            try:
                head = await self._calls.status(self.thread_id)
                before = head.parent_run_id if head.status == "running" else head.run_id
            except UnknownThread:
                before = None
            self._waited_from = before or ""

    async def _release(self) -> None:
        try:
            await self._calls.release_claim(self.thread_id, self.run_id, self._claimant)
        except Error as error:
            log.warning("the claim of %s could not be released, it expires: %s", self, error)

    async def _send_all(self) -> None:
        """Stores the pending events, one call after the other."""
        try:
            while self.failure is None:
                if not self._pending:
                    if self._is_closing:
                        return
                    await self._news.wait()
                elif self._is_urgent or self._is_closing or not self._linger:
                    self._is_urgent = False
                    await self._send_batch()
                else:
                    loop = asyncio.get_running_loop()
                    until = loop.time() + self._linger
                    while not self._is_urgent and (left := until - loop.time()) > 0:
                        await self._news.wait(left)
                    self._is_urgent = True
        except Error as error:
            self._fail(error)
        except Exception as error:
            self._fail(Error(f"{self}: its events cannot be stored: {error!r}"))

    async def _send_batch(self) -> None:
        batch, size = [self._pending[0]], len(self._pending[0][0])
        for item in islice(self._pending, 1, MAX_BATCH_EVENTS):
            size += len(item[0])
            if size > MAX_BATCH_BYTES:
                break
            batch.append(item)
        begin: dict[str, Any] = {}
        if self.seq == 0:
            begin = {"input": self._input, "parent_run_id": self._parent}
        events = "[" + ",".join(text for text, _ in batch) + "]"

        async def append() -> int:
            return await self._calls._append(
                self.thread_id, self.run_id, events, after_seq=self.seq, parallel=self._parallel,
                **begin,
            )  # fmt: skip

        # After an outage the heartbeats come first: another run could cut off this one.
        self.seq = await retry(f"append to {self}", append, before_retry=self._live.beat)
        first = self.seq - len(batch) + 1
        for text, _ in batch:
            self._pending.popleft()
            self._bytes -= len(text)
        self._kept += len(batch)
        self._input = "" if self.seq else self._input  # the log has it, and it may be large
        self._live.poller.wake()
        if self._stored is not None:
            run_id = self.run_id
            self._stored(
                [Event(first + i, run_id, kind, text) for i, (text, kind) in enumerate(batch)]
            )
        self._changed.notify()

    async def _close(self, error: BaseException | None) -> None:
        """Stores what is pending, and ends the run as Recording says."""
        cut_off = ""
        try:
            if self.failure is not None or self._has_ended:
                pass
            elif self._is_shut_down and isinstance(error, asyncio.CancelledError):
                cut_off = "its process was shut down"
            elif self.stop_reason is not None:
                pass  # behind the last events of the agent
            elif error is None:
                await self._end(type="RUN_FINISHED")
            elif isinstance(error, Exception):
                text = (str(error) or type(error).__name__)[:MAX_ERROR_TEXT]
                await self._end(type="RUN_ERROR", message=text.encode(errors="replace").decode())
            else:
                cut_off = "its task was cancelled"
            if (cut_off or self.stop_reason is not None) and not self._taken:
                await self._start()
            self._is_closing = True
            self._hurry()
            if self._sending is not None:
                await self._sending
            if self.failure is not None:
                cut_off = str(self.failure)
            if self.seq and not isinstance(self.failure, ConflictingRepeat):
                if cut_off:
                    await self._abandon(cut_off, cancelled=False)
                elif not self._has_ended:
                    await self._abandon(self.stop_reason or "it was asked to stop", cancelled=True)
            elif not self.seq:
                await self._release()
            if self.failure is not None:
                raise self.failure
        except Error as failure:
            self._fail(failure)
            raise self.failure or failure from failure.__cause__
        finally:
            self._is_closing = True
            self._live.remove(self)
            if self.seq:
                self._live.spawn(self._live.settle(self._calls, self.thread_id))

    async def _start(self) -> None:
        await self.send({"type": "RUN_STARTED", "threadId": self.thread_id, "runId": self.run_id})

    async def _end(self, **end: str) -> None:
        if not self._taken:
            await self._start()
        if end["type"] == "RUN_FINISHED":
            end |= {"threadId": self.thread_id, "runId": self.run_id}
        await self.send(json.dumps(end))

    async def _abandon(self, reason: str, cancelled: bool) -> None:
        """The database ends what is open, and then the run."""
        behind = self.seq

        async def abandon() -> int:
            return await self._calls.abandon(
                self.thread_id, self.run_id, reason, cancelled=cancelled
            )

        async def read() -> list[Event]:
            return await self._calls.events(
                self.thread_id, self.run_id, after_seq=behind, lineage=False
            )

        self.seq = await retry(f"end {self}", abandon, before_retry=self._live.beat)
        self._live.poller.wake()
        if self._stored is not None and self.failure is None:
            self._stored(await retry(f"read {self}", read))


class Tee:
    """The events of an agent as they are stored: `async for event in store.tee(run_input, events)`.

    The agent runs in a task of its own, which continues when the client leaves. It fails like the
    block of a Recording; then the last event is RUN_ERROR, and the log of the program has the
    traceback. A client that reads slowly does not delay the agent.

    Errors while iterating: those of begin, and what ended the recording early.
    """

    def __init__(self, live: Live, recording: Recording, agent: Agent | AsyncIterable[Any]) -> None:
        if not callable(agent) and not hasattr(agent, "__aiter__"):
            raise TypeError(
                f"pgagui: the events of an agent are a {type(agent).__name__}, and not an async"
                " iterable: give an async generator (a plain iterator would block the process)"
            )
        self.recording = recording
        self._live = live
        self._source = agent
        self._agent: asyncio.Task[None] | None = None
        self._kept: deque[Event] = deque()
        self._bytes = 0
        self._is_behind = False  # it reads from the log: it was too slow
        self._seen = 0  # the seq of the last event that the client has
        self._through = 0  # that of the last event that is stored
        self._place = Follower(recording.scope, recording.thread_id, Position())
        self._changed = Change()
        recording._stored = self._store

    async def begin(self) -> None:
        """Takes the place of the run and starts the agent. The first iteration does it otherwise.

        Call it before a response begins, so that RunInProgress can become its status 409.
        """
        if self._agent is None:
            await self.recording.begin()
            self._agent = self._live.spawn(self._run())

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        await self.begin()
        while True:
            if self._kept:
                event = self._kept.popleft()
                self._bytes -= len(event.json)
                self._seen = event.seq or self._seen
                return event
            if self._is_behind:
                await self._catch_up()
            elif self._agent is not None and self._agent.done():
                if self.recording.failure is not None:
                    raise self.recording.failure
                raise StopAsyncIteration
            else:
                await self._changed.wait()

    async def _run(self) -> None:
        run = self.recording
        try:
            async with run:
                source = self._source
                events = source(await run.agent_input()) if callable(source) else source
                try:
                    async for event in events:
                        await run.send(event)
                finally:
                    close = getattr(events, "aclose", None)
                    if close is not None:
                        await close()
        except asyncio.CancelledError:
            if not run._is_shut_down:
                raise
        except Exception as error:
            if error is not run.failure:
                log.exception("the agent of %s failed", run)
        finally:
            self._changed.notify()

    def _store(self, events: list[Event]) -> None:
        size = sum(len(event.json) for event in events)
        if self._is_behind or (self._kept and self._bytes + size > MAX_KEPT_BYTES):
            if not self._is_behind:
                self._is_behind, self._bytes = True, 0
                self._kept.clear()
                self._place.position = Position(self._seen)
        else:
            self._kept.extend(events)
            self._bytes += size
        if events:
            self._through = events[-1].seq or self._through
        self._changed.notify()

    async def _catch_up(self) -> None:
        """Reads a page of the log, of those events of the run that the client lacks."""
        place, calls = self._place, self._live.calls(self.recording.scope, CALL_TIMEOUT)

        async def read() -> Any:
            return await calls.poll([(place.thread_id, place.position)], limit=10)

        batches = await retry(f"read {self.recording}", read)
        if problem := problem_of(batches, place):
            raise problem
        page = [event for batch in batches for event in batch.events()]
        if page:
            place.position = page[-1].position or place.position
        if not page or place.position.seq >= self._through:
            self._is_behind = False  # what is stored from now on is kept, and comes by itself
        for event in page:
            if event.run_id == self.recording.run_id and (event.seq or 0) <= self._through:
                self._kept.append(event)
                self._bytes += len(event.json)
