"""Stores what an agent streams over the HTTP API of pgagui serve, and reads it. Python 3.9 and newer with the standard
library; copy this file and pgagui_http.py.

    PGAGUI_URL=http://localhost:8080 PGAGUI_TOKEN=… python append_http.py
"""

from __future__ import annotations

import os
import time
import uuid
from http.client import HTTPException
from itertools import islice
from typing import Any, Iterable, Iterator, Mapping

from pgagui_http import Client, Refused

AgentEvent = Mapping[str, Any]


def record(client: Client, thread_id: str, run_id: str, events: Iterable[AgentEvent], batch: int = 20) -> int:
    """Appends the events of a run as they come, in batches, and returns the seq of the last one.

    The iterable ends when the run has ended. To store a slow agent's words at once, use a batch of 1.
    """
    rest, seq = iter(events), 0
    while chunk := list(islice(rest, batch)):
        seq = append(client, thread_id, run_id, chunk, after_seq=seq)
    return seq


def append(client: Client, thread_id: str, run_id: str, events: list[AgentEvent], *, after_seq: int, attempts: int = 5) -> int:
    """Appends events behind the seq that the call before returned; 0 begins the run.

    If the connection breaks, or the server is busy, nobody knows whether they are stored. With after_seq the call is
    repeated: the log compares, and stores nothing twice.
    """
    for attempt in range(attempts):
        try:
            return client.append(thread_id, run_id, events, after_seq=after_seq)
        except Refused as refusal:
            if refusal.status not in (429, 502, 503, 504) or attempt == attempts - 1:
                raise
        except (OSError, HTTPException):
            if attempt == attempts - 1:
                raise
        time.sleep(0.1 * 2**attempt)
    raise ValueError("attempts must be 1 or more")


def agent(thread_id: str, run_id: str) -> Iterator[AgentEvent]:
    """Stands for your agent: it yields events of AG-UI."""
    yield {"type": "RUN_STARTED", "threadId": thread_id, "runId": run_id}
    yield {"type": "TEXT_MESSAGE_START", "messageId": "answer", "role": "assistant"}
    for word in ["Three days", " in Lisbon"]:
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": "answer", "delta": word}
    yield {"type": "TEXT_MESSAGE_END", "messageId": "answer"}
    yield {"type": "RUN_FINISHED", "threadId": thread_id, "runId": run_id}


if __name__ == "__main__":
    client = Client(os.environ["PGAGUI_URL"], os.environ.get("PGAGUI_TOKEN"))
    thread = str(uuid.uuid4())
    last = record(client, thread, "run-1", agent(thread, "run-1"), batch=2)
    print(f"seq {last}: {client.conversation(thread)['messages'][0]['content']}")
