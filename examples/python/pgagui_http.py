"""The HTTP API of pgagui serve in Python 3.9 and newer, with the standard library alone. Copy this file.

    client = Client("http://localhost:8080", token="…")
    for event in client.run("assistant", "thread-1", [{"id": "u1", "role": "user", "content": "Hello"}]):
        print(event.seq, event.data["type"])

It blocks. In a program with asyncio call it through asyncio.to_thread, as Session below does.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from dataclasses import dataclass
from typing import Any, Iterator, Mapping, Sequence
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen


class Refused(Exception):
    """The server refused a request: a problem document (RFC 9457)."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(f"{status}: {problem.get('detail') or problem.get('title')}")
        self.status = status
        self.sqlstate: str | None = problem.get("sqlstate")  # UI006, for example
        self.problem = problem


@dataclass(frozen=True)
class Event:
    """An event as the server streams it."""

    position: str | None  # where to resume behind it; None: within a history that came as a whole
    data: dict[str, Any]

    @property
    def seq(self) -> int | None:
        return int(self.position.split("-")[0]) if self.position else None


class Client:
    """A server and a token."""

    def __init__(self, url: str, token: str | None = None, timeout: float = 60) -> None:
        self.url, self.token, self.timeout = url.rstrip("/"), token, timeout

    def run(self, agent: str, thread_id: str, messages: Sequence[Mapping[str, Any]], *, run_id: str | None = None, **more: Any) -> Iterator[Event]:
        """Runs an agent, and yields the events as they are stored. more are members of RunAgentInput: state, tools, parentRunId, resume."""
        body = {
            "threadId": thread_id, "runId": run_id or str(uuid.uuid4()), "messages": list(messages),
            "tools": [], "context": [], "state": {}, "forwardedProps": {}, **more,
        }
        yield from self._stream(f"/agent/{quote(agent, safe='')}/run", body)

    def follow(self, thread_id: str, *, after: str | None = None, stay: bool = False) -> Iterator[Event]:
        """Yields the history of a thread and what follows until its runs have ended. after is the position of the last event seen."""
        yield from self._stream(self._path(thread_id, "events", stay=str(stay).lower()), headers={"Last-Event-ID": after} if after else {})

    def append(self, thread_id: str, run_id: str, events: Sequence[Mapping[str, Any]], *, after_seq: int, input: Mapping[str, Any] | None = None) -> int:
        """Appends events to a run, 0 begins it. It may be repeated: what is stored is not stored twice. The result is the last seq."""
        body: dict[str, Any] = {"afterSeq": after_seq, "events": list(events)}
        if input is not None:
            body["input"] = input
        return self._call("POST", self._path(thread_id, f"runs/{quote(run_id, safe='')}/events"), body)["lastSeq"]

    def conversation(self, thread_id: str, *, run_id: str | None = None, at_seq: int | None = None) -> dict[str, Any]:
        """Messages, state and interrupts: of the head, or of a run, or as of an event."""
        return self._call("GET", self._path(thread_id, "conversation", run=run_id, at_seq=at_seq))

    def threads(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """All threads, the most recently active first. filters are those of GET /threads: title, status, agent."""
        cursor = None
        while True:
            page = self._call("GET", "/threads" + _query(cursor=cursor, **filters))
            yield from page["threads"]
            if not page["hasMore"]:
                return
            cursor = page["threads"][-1]["cursor"]

    def stop(self, thread_id: str, reason: str | None = None) -> None:
        """Asks the runs of a thread to stop, in whatever process they are."""
        self._call("POST", self._path(thread_id, "stop"), {"reason": reason} if reason else {})

    def erase(self, thread_id: str) -> None:
        """Removes a thread for good."""
        self._call("DELETE", self._path(thread_id))

    def history(self, thread_id: str, **filters: Any) -> Iterator[dict[str, Any]]:
        """The events of all branches, page by page. filters are those of GET /threads/{thread}/history: type, raw, since."""
        after = 0
        while True:
            page = self._call("GET", self._path(thread_id, "history", after_seq=after, **filters))
            yield from page["events"]
            if not page["hasMore"]:
                return
            after = page["afterSeq"]

    def _path(self, thread_id: str, rest: str = "", **query: Any) -> str:
        return f"/threads/{quote(thread_id, safe='')}" + (f"/{rest}" if rest else "") + _query(**query)

    def _open(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] = {}) -> Any:
        request = Request(self.url + path, method=method, headers=dict(headers))
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body, allow_nan=False).encode()
        try:
            return urlopen(request, timeout=self.timeout)
        except HTTPError as error:
            text = error.read()
            try:
                problem = json.loads(text)
            except ValueError:
                problem = {"title": text.decode(errors="replace")[:200]}
            raise Refused(error.code, problem) from None

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        with self._open(method, path, body) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def _stream(self, path: str, body: Any = None, headers: Mapping[str, str] = {}) -> Iterator[Event]:
        """Server-sent events. A connection that breaks raises an error: call follow with the last position."""
        with self._open("GET" if body is None else "POST", path, body, {"Accept": "text/event-stream", **headers}) as answer:
            position, data = None, []
            for line in answer:
                field, _, value = line.decode().rstrip("\r\n").partition(":")
                value = value[1:] if value.startswith(" ") else value
                if field == "id":
                    position = value
                elif field == "data":
                    data.append(value)
                elif not field and not value and data:
                    yield Event(position, json.loads("\n".join(data)))
                    position, data = None, []


def _query(**parameters: Any) -> str:
    given = {name: value for name, value in parameters.items() if value is not None}
    return "?" + urlencode(given, doseq=True) if given else ""


class Session:
    """The history that a framework gives to a model, in the log: the methods of a Session of the OpenAI Agents SDK.

    Each call of add_items appends one run with an event for each item, so it costs what is new, however long the session is. Nothing is
    removed: pop_item and clear_session append what they take away.
    """

    ITEM, POPPED, CLEARED = "session.item", "session.popped", "session.cleared"

    def __init__(self, session_id: str, client: Client) -> None:
        self.session_id, self._client = session_id, client

    async def get_items(self, limit: int | None = None) -> list[Any]:
        items = await asyncio.to_thread(self._items)
        return items if limit is None else items[max(0, len(items) - limit):]

    async def add_items(self, items: Sequence[Any]) -> None:
        if items:
            await asyncio.to_thread(self._append, [(self.ITEM, item) for item in items])

    async def pop_item(self) -> Any | None:
        items = await asyncio.to_thread(self._items)
        if not items:
            return None
        await asyncio.to_thread(self._append, [(self.POPPED, None)])
        return items[-1]

    async def clear_session(self) -> None:
        await asyncio.to_thread(self._append, [(self.CLEARED, None)])

    def _thread(self) -> str:
        return f"session/{self.session_id}"  # the stream of the agent may be stored under the id itself

    def _items(self) -> list[Any]:
        items: list[Any] = []
        try:
            rows = list(self._client.history(self._thread(), type="CUSTOM", raw="true", limit=1000))
        except Refused as refusal:
            if refusal.status == 404:  # nothing was added yet
                return []
            raise
        for row in rows:
            event = row["payload"]
            if event["name"] == self.ITEM:
                items.append(event["value"])
            elif event["name"] == self.POPPED:
                del items[-1:]
            elif event["name"] == self.CLEARED:
                items.clear()
        return items

    def _append(self, changes: Sequence[tuple[str, Any]]) -> None:
        run = str(uuid.uuid4())
        events = [{"type": "CUSTOM", "name": name, "value": value} for name, value in changes]
        self._client.append(self._thread(), run, [{"type": "RUN_STARTED"}, *events, {"type": "RUN_FINISHED"}], after_seq=0)
