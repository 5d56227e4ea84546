"""What the store returns. docs/reference/sql.md describes the columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from .errors import InvalidArgument

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def columns_of(kind: Any, prefix: str = "") -> str:
    """The columns of what a class is made of. Events stay text."""
    names = (field.name for field in fields(kind))
    return ", ".join(
        prefix + ("events::text as json" if name == "json" else name) for name in names
    )


def aware(time: datetime | None, name: str) -> datetime | None:
    """Refuses a time without a time zone: PostgreSQL would take that of the session."""
    if time is not None and time.utcoffset() is None:
        raise InvalidArgument(
            f"{name} is {time.isoformat()}, which has no time zone",
            hint="Use datetime.now(timezone.utc), or give it a tzinfo.",
        )
    return time


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the log of a thread: that of the last event seen, 0 before the first one.

    Its text is the id of a server-sent event, which comes back in the header Last-Event-ID.
    """

    seq: int = 0
    recorded_at: datetime | None = None
    """When that event was recorded. With it a follower notices that a failover replaced the log."""

    def __str__(self) -> str:
        if self.recorded_at is None:
            return str(self.seq)
        # Not timestamp(): a float has no microseconds of this century.
        return f"{self.seq}-{(self.recorded_at - _EPOCH) // timedelta(microseconds=1)}"

    @classmethod
    def of(cls, place: Position | str | int | None) -> Position:
        """Reads what a caller gives: a position, its text, a seq, or None for the beginning."""
        if isinstance(place, Position):
            aware(place.recorded_at, "the time of a position")
            return place
        seq, dash, micros = str(place or 0).partition("-")
        if not (
            seq.isascii()
            and seq.isdigit()
            and (not dash or (micros.isascii() and micros.isdigit()))
        ):
            raise InvalidArgument(
                f"{place!r} is no position",
                hint="A position is a seq, for example 17, or the id of a frame that sse() wrote.",
            )
        try:
            time = _EPOCH + timedelta(microseconds=int(micros)) if dash else None
        except OverflowError:
            raise InvalidArgument(f"{place!r} is no position: its time is out of range") from None
        return cls(int(seq), time)


@dataclass(frozen=True, slots=True)
class Event:
    """An event of the log, or of a history."""

    seq: int | None
    """Its place in the thread. None: in a history, whose last event alone has one."""
    run_id: str
    type: str
    json: str
    """The event as its writer spelled it."""
    recorded_at: datetime | None = None
    """When it was recorded. None: not known."""

    @property
    def data(self) -> dict[str, Any]:
        """The event, parsed. Each read is a new value."""
        parsed: dict[str, Any] = json.loads(self.json)
        return parsed

    @property
    def position(self) -> Position | None:
        """Where a follower that has seen the event resumes."""
        return None if self.seq is None else Position(self.seq, self.recorded_at)


# Numbers stay text: Python refuses to parse some that PostgreSQL takes, and they are not read here.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


def split(array: str) -> Iterator[tuple[str, str]]:
    """Yields the text and the type of each event of a JSON array, byte for byte."""
    at = array.index("[") + 1
    while True:
        while array[at] in " \t\r\n,":
            at += 1
        if array[at] == "]":
            return
        event, end = _DECODER.raw_decode(array, at)
        yield array[at:end], str(event.get("type", ""))
        at = end


@dataclass(frozen=True, slots=True)
class Batch:
    """Events of one run, with consecutive seqs: a row of agui.poll."""

    thread_no: int
    """The place of the thread in the call, from 1."""
    run_id: str
    status: str
    first_seq: int
    recorded_at: datetime
    earlier_us: list[int] | None
    json: str | None
    """A JSON array. None: the thread has more events than fit, or a problem."""
    problem: str | None
    """The SQLSTATE why the thread cannot be followed from there."""

    def events(self) -> list[Event]:
        """The events of the batch."""
        earlier = self.earlier_us or []
        return [
            Event(
                self.first_seq + i, self.run_id, type, text,
                self.recorded_at - timedelta(microseconds=earlier[i] if earlier else 0),
            )
            for i, (text, type) in enumerate(split(self.json or "[]"))
        ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Conversation:
    """All that a page needs to show a conversation."""

    thread_id: str
    run_id: str
    seq: int
    status: str
    messages: list[dict[str, Any]]
    state: Any
    interrupts: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Attachment:
    """The history of a conversation, and the position to follow it from."""

    run_id: str | None
    """None: the thread does not exist yet."""
    status: str | None
    running: list[str]
    """The runs of the thread that are in progress."""
    seq: int
    recorded_at: datetime | None
    json: str

    @property
    def position(self) -> Position:
        """Where to follow the thread from."""
        return Position(self.seq, self.recorded_at)

    def events(self) -> list[Event]:
        """The history. Its last event has the position."""
        texts = list(split(self.json))
        last = len(texts) - 1
        return [
            Event(
                self.seq if i == last else None, self.run_id or "", type, text,
                self.recorded_at if i == last else None,
            )
            for i, (text, type) in enumerate(texts)
        ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class AttachmentPart:
    """One part of a history that is larger than clients take at once."""

    attachment: Attachment
    next_part: int | None
    """None: this is the last part."""

    def events(self) -> list[Event]:
        """The events of this part. The last one of the last part has the position."""
        events = self.attachment.events()
        if self.next_part is None:
            return events
        return [replace(event, seq=None, recorded_at=None) for event in events]


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a thread's tree, as agui.runs returns it."""

    depth: int
    run_id: str
    parent_run_id: str | None
    status: str
    first_seq: int
    last_seq: int | None
    started_at: datetime
    ended_at: datetime | None
    run_no: int
    error_code: str | None
    error_message: str | None
    stop_reason: str | None
    cut_off_reason: str | None


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The status of a run, as agui.status returns it."""

    run_id: str
    parent_run_id: str | None
    status: str
    first_seq: int
    last_seq: int
    started_at: datetime
    ended_at: datetime | None
    alive_at: datetime | None
    is_stale: bool
    has_heartbeat: bool
    stop_requested_at: datetime | None
    stop_reason: str | None
    cut_off_reason: str | None
    error_code: str | None
    error_message: str | None


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread in a list, as agui.threads returns it."""

    thread_id: str
    title: str | None
    agent: str | None
    metadata: dict[str, Any]
    archived: bool
    created_at: datetime
    active_at: datetime
    head_run_id: str | None
    status: str | None
    is_stale: bool
    runs: int
    branches: int
    cursor: str
    """Give it to the next call to continue behind this thread."""
    error_code: str | None
    error_message: str | None
    stop_reason: str | None
    cut_off_reason: str | None


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A question of an agent that waits for its answer."""

    interrupt_id: str | None
    reason: str | None
    message: str | None
    tool_call_id: str | None
    expires_at: datetime | None
    expired: bool
    interrupt: dict[str, Any]
    """The question as the agent sent it."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A question that waits, in the list of those of all conversations."""

    scope: str
    thread_id: str
    run_id: str
    agent: str | None
    interrupt_id: str | None
    reason: str | None
    message: str | None
    tool_call_id: str | None
    asked_at: datetime
    expires_at: datetime | None
    status: str
    kind: str
    tool: str | None
    arguments: str | None


@dataclass(frozen=True, slots=True)
class Claim:
    """The place of a run that will begin."""

    run_id: str
    parent_run_id: str | None
    parallel: bool
    claimed_at: datetime
    alive_until: datetime


@dataclass(frozen=True, slots=True)
class BranchPoint:
    """Where a run continues whose client names no parent, as agui.branch_point finds it."""

    parent_run_id: str | None
    point: str
    """head: its messages continue the conversation; before: an edit; start; elsewhere: trimmed."""
    is_filled: bool
    """The agent needs agent_messages in place of what the client sent."""
    lacks_history: bool
    history_bytes: int


@dataclass(frozen=True, slots=True)
class Signal:
    """What a heartbeat returns for a run that should stop or has ended."""

    call_no: int
    """The place of the run in the call, from 1."""
    status: str
    stop_requested_at: datetime | None
    stop_reason: str | None
    cut_off_reason: str | None


@dataclass(frozen=True, slots=True)
class Erasure:
    """What is left of an erased thread."""

    erased_at: datetime
    erased_by: str
    reason: str | None
    runs: int
    events: int
