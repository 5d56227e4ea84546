"""The functions of the schema agui as methods, without any rule of their own.

Made of _calls.py by generate.py. DO NOT EDIT.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from ._events import encode_events, encode_input
from .types import (
    Attachment,
    AttachmentPart,
    Batch,
    BranchPoint,
    Claim,
    Conversation,
    Erasure,
    Event,
    Interrupt,
    Position,
    Run,
    RunStatus,
    Signal,
    Thread,
    Waiting,
    aware,
    columns_of,
)

if TYPE_CHECKING:
    from ._database_sync import Database, Rows

Row = TypeVar("Row")


class Calls:
    """The calls of a store. docs/reference/sql.md says what each does, and which errors it has."""

    def __init__(self, database: Database, scope: str) -> None:
        self._database = database
        self.scope = scope

    def append(
        self,
        thread_id: str,
        run_id: str,
        events: Sequence[Any],
        *,
        after_seq: int | None = None,
        input: Any = None,
        parent: str | None = None,
        parallel: bool = False,
        strict: bool = False,
    ) -> int:
        """Appends events to a run, and returns the seq of the last one.

        With after_seq, the seq that the call before returned (0: the run begins), the call can be
        repeated: what is stored is not stored twice. input is the RunAgentInput of the run, with
        the call that begins it. parent: None is what RUN_STARTED names, else the head; "" is none.
        """
        return self._append(
            thread_id, run_id, encode_events(events), after_seq=after_seq,
            input=None if input is None else encode_input(input)[0],
            parent_run_id=parent, parallel=parallel, strict=strict,
        )  # fmt: skip

    def _append(self, thread_id: str, run_id: str, events: str, **more: Any) -> int:
        seq: int = self._value(
            "append", thread_id=thread_id, run_id=run_id, events=events, **more
        )
        return seq

    def restore(
        self,
        thread_id: str,
        run_id: str | None = None,
        *,
        at_seq: int | None = None,
        at_time: datetime | None = None,
    ) -> Conversation:
        """Returns messages, state and interrupts after a run (None: the head), or at a time."""
        found = self._value("restore", **_at(thread_id, run_id, at_seq, at_time))
        return Conversation(
            found["threadId"], found["runId"], found["seq"], found["status"],
            found["messages"], found["state"], found["interrupts"],
        )  # fmt: skip

    def messages(
        self,
        thread_id: str,
        run_id: str | None = None,
        *,
        at_seq: int | None = None,
        at_time: datetime | None = None,
    ) -> list[dict[str, Any]]:
        """Returns the messages after a run (None: the head), or at a time."""
        at = _at(thread_id, run_id, at_seq, at_time)
        return [row["message"] for row in self._rows("messages", "message", **at)]

    def state(
        self,
        thread_id: str,
        run_id: str | None = None,
        *,
        at_seq: int | None = None,
        at_time: datetime | None = None,
    ) -> Any:
        """Returns the state that agent and page share after a run (None: the head)."""
        return self._value("state", **_at(thread_id, run_id, at_seq, at_time))

    def interrupts(
        self,
        thread_id: str,
        run_id: str | None = None,
        *,
        at_seq: int | None = None,
        at_time: datetime | None = None,
    ) -> list[Interrupt]:
        """Returns the questions that wait after a run (None: the head), or at a time."""
        return self._all(Interrupt, "interrupts", **_at(thread_id, run_id, at_seq, at_time))

    def attach(
        self,
        thread_id: str,
        run_id: str | None = None,
        *,
        at_seq: int | None = None,
        at_time: datetime | None = None,
        after_seq: int | None = None,
        shape: str = "snapshot",
    ) -> Attachment:
        """Returns the history of a conversation, and where to follow it from, as of one moment.

        shape: "snapshot", "stream" (compacted) or "events", which alone takes after_seq.
        """
        at = _at(thread_id, run_id, at_seq, at_time)
        return self._one(Attachment, "attach", after_seq=after_seq, shape=shape, **at)

    def attach_part(
        self, thread_id: str, run_id: str | None = None, *, at_seq: int | None = None, part: int = 1
    ) -> AttachmentPart:
        """Returns one part, of 8 MiB, of what attach returns: a client takes no event of any size.

        For the parts behind the first one name the run and the seq that it returned. The last one
        ends with RUN_ERROR if the history lacks a message or a value that is too large.
        """
        columns = columns_of(Attachment, "(attachment).") + ", next_part"
        [row] = self._rows(
            "attach_part", columns, thread_id=thread_id, run_id=run_id, at_seq=at_seq, part=part
        )
        next_part: int | None = row.pop("next_part")
        return AttachmentPart(Attachment(**row), next_part)

    def replay(
        self,
        thread_id: str,
        run_id: str | None = None,
        *,
        at_seq: int | None = None,
        at_time: datetime | None = None,
        shape: str = "snapshot",
    ) -> list[dict[str, Any]]:
        """Returns a short stream of events that gives any client of AG-UI the conversation."""
        at = _at(thread_id, run_id, at_seq, at_time)
        rows = self._rows("replay", "replay as event", shape=shape, **at)
        return [row["event"] for row in rows]

    def events(
        self, thread_id: str, run_id: str | None = None, *, after_seq: int = 0, lineage: bool = True
    ) -> list[Event]:
        """Returns the events of the lineage of a run (None: the head), or of the run alone."""
        columns = "seq, run_id, type, payload::text as json, recorded_at"
        rows = self._rows(
            "events", columns, thread_id=thread_id, run_id=run_id, after_seq=after_seq,
            lineage=lineage,
        )  # fmt: skip
        return [Event(**row) for row in rows]

    def runs(self, thread_id: str) -> list[Run]:
        """Returns the runs of a thread, its tree, in the order in which they began."""
        return self._all(Run, "runs", thread_id=thread_id)

    def head(self, thread_id: str) -> str:
        """Returns the id of the run that began last."""
        run_id: str = self._value("head", thread_id=thread_id)
        return run_id

    def status(self, thread_id: str, run_id: str | None = None) -> RunStatus:
        """Returns the status of a run (None: the head), and whether its writer is alive."""
        return self._one(RunStatus, "status", thread_id=thread_id, run_id=run_id)

    def threads(
        self,
        *,
        agent: str | None = None,
        archived: bool = False,
        title: str | None = None,
        since: datetime | None = None,
        status: str | None = None,
        metadata: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> list[Thread]:
        """Returns a page of threads, the last active first. metadata: JSON that they contain."""
        return self._all(
            Thread, "threads", agent=agent, archived=archived, title=title,
            since=aware(since, "since"), status=status, metadata=metadata, max_rows=limit,
            cursor=cursor,
        )  # fmt: skip

    def thread(self, thread_id: str) -> Thread:
        """Returns a thread as lists have it."""
        return self._one(Thread, "get_thread", thread_id=thread_id)

    def set_thread(
        self,
        thread_id: str,
        *,
        title: str | None = None,
        agent: str | None = None,
        archived: bool | None = None,
        metadata: Mapping[str, Any] | None = None,
        create_if_missing: bool = False,
    ) -> Thread:
        """Sets what lists show of a thread. None changes nothing; an empty text clears.

        metadata is merged into what is stored, at the top level; None removes a member.
        """
        return self._one(
            Thread, "set_thread", thread_id=thread_id, title=title, agent=agent, archived=archived,
            metadata=None if metadata is None else json.dumps(metadata),
            create_if_missing=create_if_missing,
        )  # fmt: skip

    def waiting(self, *, limit: int = 100, agent: str | None = None) -> list[Waiting]:
        """Returns the questions that wait for an answer, in all threads of the scope."""
        return self._all(Waiting, "waiting", max_rows=limit, agent=agent)

    def request_stop(
        self, thread_id: str, run_id: str | None = None, reason: str | None = None
    ) -> int:
        """Asks the writer of a run to stop, in any process. None: all runs of the thread.

        Returns how many runs have a request now. A recorder stops within a second.
        """
        return int(
            self._value("request_stop", thread_id=thread_id, run_id=run_id, reason=reason)
        )

    def claim(
        self,
        thread_id: str,
        run_id: str,
        claimant: str,
        *,
        input: Any = None,
        parent: str | None = None,
        parallel: bool = False,
    ) -> Claim:
        """Takes the place of a run that will begin. claimant: a random text of the writer."""
        text = None if input is None else encode_input(input)[0]
        return self._one(
            Claim, "claim_run", thread_id=thread_id, run_id=run_id, claimant=claimant, input=text,
            parent_run_id=parent, parallel=parallel,
        )  # fmt: skip

    def branch_point(
        self,
        thread_id: str,
        messages: Any,
        run_id: str | None = None,
        *,
        history: str = "fill",
        is_given: bool = False,
        waited_from: str | None = None,
    ) -> BranchPoint:
        """Returns where a run continues whose client sent messages, and names no parent.

        run_id is the run that it continues otherwise (None: the head). A recording does it by
        itself. messages: the list of its RunAgentInput.
        """
        return self._one(
            BranchPoint, "branch_point", thread_id=thread_id, run_id=run_id,
            messages=json.dumps(messages), history=history, is_given=is_given,
            waited_from=waited_from,
        )  # fmt: skip

    def agent_messages(
        self, thread_id: str, messages: Any, run_id: str | None = None
    ) -> list[dict[str, Any]]:
        """Returns the messages of a run (None: the head), and behind them those that are new."""
        found: list[dict[str, Any]] = self._value(
            "agent_messages", thread_id=thread_id, run_id=run_id, messages=json.dumps(messages)
        )
        return found

    def claims(self, thread_id: str) -> list[Claim]:
        """Returns the runs of a thread that are claimed and have not begun."""
        return self._all(Claim, "claims", thread_id=thread_id)

    def release_claim(self, thread_id: str, run_id: str, claimant: str) -> bool:
        """Gives up a claim. Returns whether there was one."""
        return bool(
            self._value(
                "release_claim", thread_id=thread_id, run_id=run_id, claimant=claimant
            )
        )

    def abandon(
        self, thread_id: str, run_id: str, reason: str | None = None, *, cancelled: bool = False
    ) -> int:
        """Ends a run and what is open in it, on behalf of its writer. Returns its last seq."""
        return int(
            self._value(
                "abandon", thread_id=thread_id, run_id=run_id, reason=reason, cancelled=cancelled
            )
        )

    def settle(self, thread_id: str) -> bool:
        """Compacts what has ended in a thread, in one bounded step. A recording does it by itself.

        Returns whether nothing worth a step is left. Call it in a transaction of its own.
        """
        return bool(self._value("settle", thread_id=thread_id))

    def erase(self, thread_id: str, reason: str | None = None) -> Erasure:
        """Removes a thread permanently. Its role needs agui_maintainer."""
        return self._one(Erasure, "erase", thread_id=thread_id, reason=reason)

    def keep_alive(
        self, runs: Sequence[tuple[str, str]], *, detach: bool = False
    ) -> list[Signal]:
        """Sends heartbeats for runs, given as (thread_id, run_id). A recording does it by itself.

        Returns a signal for each run that should stop or has ended.
        """
        rows = self._fetch(
            f"select {columns_of(Signal)} from agui.keep_alive("
            "%(threads)s::text[], %(runs)s::text[], %(detach)s, %(scopes)s::text[])",
            {
                "threads": [thread_id for thread_id, _ in runs],
                "runs": [run_id for _, run_id in runs],
                "detach": detach,
                "scopes": [self.scope for _ in runs],
            },
        )
        return [Signal(**row) for row in rows]

    def poll(
        self,
        threads: Sequence[tuple[str, Position]],
        *,
        limit: int = 100,
        page_bytes: int = 4 << 20,
    ) -> list[Batch]:
        """Returns what follows in threads behind positions, at most limit batches for each.

        A batch without JSON and problem says that its thread has more than fits. follow() polls by
        itself.
        """
        rows = self._fetch(
            f"select {columns_of(Batch)} from agui.poll(%(threads)s::text[], %(seqs)s::bigint[],"
            " %(times)s::timestamptz[], %(limit)s, %(bytes)s, %(scopes)s::text[])",
            {
                "threads": [thread_id for thread_id, _ in threads],
                "seqs": [position.seq for _, position in threads],
                "times": [position.recorded_at for _, position in threads],
                "limit": limit,
                "bytes": page_bytes,
                "scopes": [self.scope for _ in threads],
            },
        )
        return [Batch(**row) for row in rows]

    def _rows(self, function: str, columns: str, /, **arguments: Any) -> Rows:
        """Calls a function. An argument that is None has its default there."""
        arguments["scope"] = self.scope
        given = {name: value for name, value in arguments.items() if value is not None}
        names = ", ".join(f"{name} => %({name})s" for name in given)
        text = f"select {columns} from agui.{function}({names})"
        return self._fetch(text, given)

    def _fetch(self, text: str, values: Mapping[str, Any]) -> Rows:
        return self._database.rows(text, values, self.scope)

    def _value(self, function: str, /, **arguments: Any) -> Any:
        [row] = self._rows(function, f"{function} as value", **arguments)
        return row["value"]

    def _one(self, kind: type[Row], function: str, /, **arguments: Any) -> Row:
        [row] = self._all(kind, function, **arguments)
        return row

    def _all(self, kind: type[Row], function: str, /, **arguments: Any) -> list[Row]:
        return [kind(**row) for row in self._rows(function, columns_of(kind), **arguments)]


def _at(
    thread_id: str, run_id: str | None, at_seq: int | None, at_time: datetime | None
) -> dict[str, Any]:
    return {
        "thread_id": thread_id,
        "run_id": run_id,
        "at_seq": at_seq,
        "at_time": aware(at_time, "at_time"),
    }
