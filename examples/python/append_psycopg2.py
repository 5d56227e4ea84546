"""Stores what an agent streams with psycopg2, and reads it. Python 3.9 and newer; copy this file.

    DATABASE_URL=postgres://… python append_psycopg2.py

A role needs agui_writer for it (grant agui_writer to …).
"""

from __future__ import annotations

import json
import os
import time
import uuid
from itertools import islice
from typing import Any, Iterable, Iterator, Mapping, Optional

import psycopg2
from psycopg2.extensions import connection as Connection

AgentEvent = Mapping[str, Any]


class Recorder:
    """Appends the events of runs. It connects when it needs to, and after a connection broke."""

    def __init__(self, url: str, scope: str = "") -> None:
        self.url, self.scope = url, scope
        self._connection: Optional[Connection] = None

    def record(self, thread_id: str, run_id: str, events: Iterable[AgentEvent], batch: int = 20) -> int:
        """Appends the events of a run as they come, in batches, and returns the seq of the last one.

        The iterable ends when the run has ended. To store a slow agent's words at once, use a batch of 1.
        """
        rest, seq = iter(events), 0
        while chunk := list(islice(rest, batch)):
            seq = self.append(thread_id, run_id, chunk, after_seq=seq)
        return seq

    def append(self, thread_id: str, run_id: str, events: list[AgentEvent], *, after_seq: int, attempts: int = 5) -> int:
        """Appends events behind the seq that the call before returned; 0 begins the run.

        If the connection breaks, nobody knows whether they are stored. With after_seq the call is repeated: the log
        compares, and stores nothing twice.
        """
        for attempt in range(attempts):
            try:
                return self._append(thread_id, run_id, events, after_seq)
            except (psycopg2.OperationalError, psycopg2.InterfaceError):
                self.close()
                if attempt == attempts - 1:
                    raise
                time.sleep(0.1 * 2**attempt)
        raise ValueError("attempts must be 1 or more")

    def _append(self, thread_id: str, run_id: str, events: list[AgentEvent], after_seq: int) -> int:
        if self._connection is None:
            self._connection = psycopg2.connect(self.url)
        with self._connection, self._connection.cursor() as cursor:  # one transaction
            cursor.execute("select set_config('agui.scope', %s, true)", [self.scope])  # for row-level security
            cursor.execute(
                "select agui.append(%s, %s, %s::json, after_seq => %s, scope => %s)",
                [thread_id, run_id, json.dumps(events, allow_nan=False), after_seq, self.scope],
            )
            [(seq,)] = cursor.fetchall()
            return int(seq)

    def messages(self, thread_id: str) -> list[dict[str, Any]]:
        """The messages as they are now."""
        if self._connection is None:
            self._connection = psycopg2.connect(self.url)
        with self._connection, self._connection.cursor() as cursor:
            cursor.execute("select set_config('agui.scope', %s, true)", [self.scope])
            cursor.execute("select message from agui.messages(%s, scope => %s)", [thread_id, self.scope])
            return [message for (message,) in cursor]

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def agent(thread_id: str, run_id: str) -> Iterator[AgentEvent]:
    """Stands for your agent: it yields events of AG-UI."""
    yield {"type": "RUN_STARTED", "threadId": thread_id, "runId": run_id}
    yield {"type": "TEXT_MESSAGE_START", "messageId": "answer", "role": "assistant"}
    for word in ["Three days", " in Lisbon"]:
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": "answer", "delta": word}
    yield {"type": "TEXT_MESSAGE_END", "messageId": "answer"}
    yield {"type": "RUN_FINISHED", "threadId": thread_id, "runId": run_id}


if __name__ == "__main__":
    recorder = Recorder(os.environ["DATABASE_URL"])
    thread = str(uuid.uuid4())
    last = recorder.record(thread, "run-1", agent(thread, "run-1"), batch=2)
    print(f"seq {last}: {recorder.messages(thread)[0]['content']}")
    recorder.close()
