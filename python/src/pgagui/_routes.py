"""The routes of server/openapi.yaml that need no rule beside the schema, for programs of Starlette.

What a request means is in the schema: a route reads the request, calls, and writes the answer.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping
from datetime import datetime, timezone
from functools import partial
from typing import Any, cast
from urllib.parse import unquote_to_bytes

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ._error import Error
from ._events import member
from ._live import log
from ._recorder import Agent, History, OnConcurrentRun, Tee
from ._repair import repair_tool_calls
from .errors import RunIDInUse, RunInProgress, UnknownRun, UnknownThread
from .store import AsyncStore, sse
from .types import AttachmentPart, Event, Thread, columns_of

MAX_INPUT = 63 << 20  # bytes; what the schema takes in a call leaves room for the first event
STREAM_HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}

THREAD = [field.name for field in dataclasses.fields(Thread)]

Route = Callable[["Call"], Awaitable[Response]]


class Refused(Exception):
    """A request that is refused before it reaches the store."""

    def __init__(self, status: int, detail: str, hint: str = "") -> None:
        super().__init__(detail)
        self.status, self.detail, self.hint = status, detail, hint


@dataclasses.dataclass(frozen=True)
class Options:
    """What a router was made with."""

    agents: Mapping[str, Agent]
    history: History
    on_concurrent_run: OnConcurrentRun
    queue_timeout: float
    repair_tool_calls: bool


class Call:
    """A request: the ids of its path, its query and its body."""

    def __init__(
        self, request: Request, store: AsyncStore, options: Options, ids: dict[str, str]
    ) -> None:
        self.request, self.store, self.options, self.ids = request, store, options, ids
        self._query = dict(request.query_params.multi_items())
        if len(self._query) < len(request.query_params.multi_items()):
            raise Refused(400, "a parameter is given twice")

    def query(self, *names: str) -> dict[str, str | None]:
        """The parameters with these names. A misspelled one must not be ignored."""
        for name, value in self._query.items():
            if name not in names:
                expected = ", ".join(sorted(names)) or "no parameters"
                raise Refused(400, f'the parameter "{name}" is unknown here (expected {expected})')
            if "\0" in value:
                raise Refused(400, f"{name} has a NUL")
        return {name: self._query.get(name) for name in names}

    def at(self, *more: str) -> dict[str, Any]:
        """The point in a thread that a request names."""
        given = self.query("run", "at_seq", "at_time", *more)
        return {
            "thread_id": self.ids["thread"],
            "run_id": given["run"] or None,
            "at_seq": number(given["at_seq"], "at_seq") or None,
            "at_time": time(given["at_time"], "at_time"),
        }

    async def body(self) -> bytes:
        """The body of the request."""
        body = bytearray()
        async for piece in self.request.stream():
            body += piece
            if len(body) > MAX_INPUT:
                raise Refused(413, f"the body has more than {MAX_INPUT} bytes")
        return bytes(body)

    async def members(self, *names: str) -> dict[str, Any]:
        """The members of a body that is an object, or empty. Without names: of a RunAgentInput."""
        text = await self.body()
        body = read_object(text) if text or not names else {}
        for name in body if names else ():
            if name not in names:
                raise Refused(400, f'the member "{name}" of the body is unknown here')
        return body

    def agent(self) -> Agent:
        """The agent that the path names."""
        name = self.ids["agent"]
        if name not in self.options.agents:
            known = ", ".join(sorted(self.options.agents))
            raise Refused(404, f'there is no agent "{name}"', f"There are: {known}.")
        return self.options.agents[name]

    async def text(self, function: str, columns: str, **arguments: Any) -> str:
        """The JSON text that a function of the schema returns, byte for byte."""
        [row] = await self.store._rows(function, f"({columns})::text as text", **arguments)
        text: str = row["text"]
        return text


def read_object(text: bytes) -> dict[str, Any]:
    """Reads a body that is a JSON object."""
    try:
        body: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise Refused(400, "the body is no JSON object")
    return cast("dict[str, Any]", body)


def number(value: str | None, name: str) -> int | None:
    """Reads a parameter that is a number from 0 on."""
    if value is None:
        return None
    if not (value.isascii() and value.isdigit()) or int(value) >= 1 << 63:
        raise Refused(400, f'{name} is "{value}" (expected a number from 0 on)')
    return int(value)


def limit(value: str | None) -> int | None:
    """Reads the size of a page."""
    size = number(value, "limit")
    if size is not None and not 1 <= size <= 1000:
        raise Refused(400, f'limit is "{value}" (expected a number from 1 to 1000)')
    return size


def time(value: str | None, name: str) -> datetime | None:
    """Reads a parameter that is a time with its zone."""
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value.replace("Z", "+00:00"))
        if at.tzinfo is not None:
            return at
    except ValueError:
        pass
    raise Refused(400, f'{name} is "{value}" (expected a time such as 2026-01-31T12:00:00Z)')


def flag(value: str | None, name: str) -> bool:
    """Reads a parameter that is true or false; without it false."""
    if value not in (None, "true", "false"):
        raise Refused(400, f'{name} is "{value}" (expected true or false)')
    return value == "true"


def answer(body: Any, status: int = 200, media_type: str = "application/json") -> Response:
    """Writes a value, or a text that is JSON already."""
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=_time)
    headers = {"Cache-Control": "no-store"}
    return Response(text.encode(errors="replace"), status, headers, media_type)


def _time(value: datetime) -> str:
    text = value.astimezone(timezone.utc).isoformat().replace("+00:00", "")
    return (text.rstrip("0") if "." in text else text) + "Z"


NAMES = {"is_stale": "stale", "run_no": "number"}


def shown(row: Any, *without: str) -> dict[str, Any]:
    """A row with the names of the API. What is null or false is absent."""
    members: dict[str, Any] = {}
    for field in dataclasses.fields(row):
        value = getattr(row, field.name)
        optional = field.name in ("is_stale", "has_heartbeat", "expired")
        if value is None or field.name in without or (optional and not value):
            continue
        first, *rest = NAMES.get(field.name, field.name).split("_")
        members[first + "".join(word.capitalize() for word in rest)] = value
    return members


def problem(error: Error | Refused) -> Response:
    """Says why a request was refused or failed (RFC 9457)."""
    body: dict[str, Any] = {"title": TITLES.get(error.status, "Error"), "status": error.status}
    headers = {}
    if isinstance(error, Refused):
        body["detail"] = error.detail
    elif error.status >= 500:
        body["detail"] = "the request failed, see the log of the program"
        headers = {"Retry-After": "1"} if error.retryable else {}
    else:
        body |= {"detail": error.message, "sqlstate": error.sqlstate}
    if error.hint and (error.status < 500 or isinstance(error, Refused)):
        body["hint"] = error.hint
    if run := getattr(error, "run_id", None):
        body["runId"] = run
    response = answer(body, error.status, "application/problem+json")
    response.headers.update(headers)
    return response


# Those of http.HTTPStatus change with the version of Python.
TITLES = {
    400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
    409: "Conflict", 410: "Gone", 412: "Precondition Failed", 413: "Request Entity Too Large",
    422: "Unprocessable Entity", 429: "Too Many Requests", 500: "Internal Server Error",
    501: "Not Implemented", 503: "Service Unavailable",
}  # fmt: skip


# --- streams ---


def stream(events: AsyncIterable[Event], parent: str | None = None) -> Response:
    """Streams events. One that fails aborts the connection: a clean end says that the run ended."""
    response = StreamingResponse(sse(events), headers=STREAM_HEADERS)
    if parent is not None:  # in UTF-8: Starlette would write Latin-1
        response.raw_headers.append((b"pgagui-parent-run", parent.encode()))
    return response


async def run(call: Call) -> Response:
    """Begins a run and streams its events. The same request a second time attaches to the run."""
    call.query()
    agent, text = call.agent(), await call.body()
    options = call.options
    members = read_object(text)
    for name in ("threadId", "runId"):
        if not isinstance(members.get(name), str) or not members[name]:
            raise Refused(400, f'the body has no "{name}"')
    given: Any = members.get("messages", [])
    said: list[Any] = given if isinstance(given, list) else [None]  # pyright: ignore[reportUnknownVariableType]
    if not all(isinstance(message, dict) for message in said):
        raise Refused(400, 'the member "messages" of the body: expected a list of objects')
    props = member(members.get("forwardedProps"), "pgagui")
    history = member(props, "history") or options.history
    if history not in ("full", "fill", "new"):
        raise Refused(400, 'forwardedProps.pgagui.history: expected "new" or "full"')
    parent = member(props, "parentRunId")
    if not (parent is None or isinstance(parent, str)):
        raise Refused(400, "forwardedProps.pgagui.parentRunId: expected a string")

    def repaired(run_input: dict[str, Any]) -> AsyncIterable[Any]:
        if options.repair_tool_calls:
            run_input = run_input | {"messages": repair_tool_calls(run_input)}
        return agent(run_input)

    tee = call.store.tee(
        text, repaired, parent=parent, history=history,
        on_concurrent_run=options.on_concurrent_run, queue_timeout=options.queue_timeout,
    )  # fmt: skip
    thread_id, run_id = tee.recording.thread_id, tee.recording.run_id
    try:
        await tee.begin()
    except RunIDInUse:
        again = _of_run(call.store, thread_id, run_id)
        return stream(_shown(call.store, thread_id, again, members.get("protocolVersion"), False))
    except RunInProgress as error:
        error.run_id = await _in_progress(call.store, thread_id)  # type: ignore[attr-defined]
        raise
    parent = tee.recording.parent_run_id
    protocol, lacks_history = members.get("protocolVersion"), tee.recording.lacks_history
    events = _shown(call.store, thread_id, _ended(tee), protocol, lacks_history)
    return stream(_named(call, tee, events), parent)


async def _ended(events: AsyncIterable[Event]) -> AsyncGenerator[Event, None]:
    """Puts the end of a run last: agents of some frameworks finish with each call of a tool."""
    end: Event | None = None
    async for event in events:
        if event.type == "RUN_FINISHED":
            end = end or event
        else:
            end = None
            yield event
    if end is not None:
        yield end


async def _named(call: Call, tee: Tee, events: AsyncIterable[Event]) -> AsyncGenerator[Event, None]:
    """Notes which agent began a thread, once it exists."""
    is_new = tee.recording.parent_run_id is None
    async for event in events:
        if is_new:
            is_new = False
            await call.store.set_thread(tee.recording.thread_id, agent=call.ids["agent"])
        yield event


async def _shown(
    store: AsyncStore,
    thread_id: str,
    events: AsyncIterable[Event],
    protocol: str | None,
    lacks_history: bool = True,
) -> AsyncGenerator[Event, None]:
    """Writes events for a client.

    The history, which has the messages of the input, stands in place of the event that begins a
    run, unless the client has sent it. Clients before AG-UI 1.0, which name no protocol, refuse the
    outcome cancelled; they read the result. Clients take nothing behind an error of a run, and
    folds skip it.
    """
    failed: str | None = None
    async for event in events:
        if event.run_id == failed:
            continue
        if event.type == "RUN_ERROR":
            failed = event.run_id
        if lacks_history and event.type == "RUN_STARTED" and event.seq is not None:
            async for part in store._history(thread_id, event.run_id, event.seq):
                for past in _replacing(part.events(), protocol):
                    if past.type != "RUN_ERROR":  # the run continues without what is too large
                        yield past
        elif not protocol and event.type == "RUN_FINISHED" and "cancelled" in event.json:
            members = event.data
            if member(members.get("outcome"), "type") == "cancelled":
                del members["outcome"]
            yield _changed(event, members)
        else:
            yield event


def _replacing(events: list[Event], protocol: str | None) -> list[Event]:
    """A history after which a client has nothing else, and what it has in the stored order.

    A list of messages removes what it does not name, and puts what is new behind the rest. So one
    comes first that has the first message alone. It replaces the thoughts and activities of a
    client only if it has some itself. So clients of AG-UI 1.0 get two, in which a thought, then an
    activity, has the id of that message.
    """
    for i, event in enumerate(events):
        if event.type == "MESSAGES_SNAPSHOT" and (said := event.data["messages"]):
            first = {"id": said[0]["id"], "content": ""}
            lists: list[Any] = [said[0]]
            if protocol:
                activity: dict[str, Any] = {"activityType": "none", "content": {}}
                thought = first | {"role": "reasoning"}
                lists = [thought, first | {"role": "activity"} | activity]
            before = [_changed(event, {"type": event.type, "messages": [each]}) for each in lists]
            return events[:i] + before + events[i:]
    return events


def _connected(part: AttachmentPart, protocol: str | None) -> list[Event]:
    """A part for a client that connects. The list of a first part lacks kinds of messages."""
    is_last = part.next_part is None
    return part.events() if is_last or not protocol else _replacing(part.events(), protocol)


def _changed(event: Event, members: dict[str, Any]) -> Event:
    return dataclasses.replace(event, json=json.dumps(members))


async def _of_run(store: AsyncStore, thread_id: str, run_id: str) -> AsyncGenerator[Event, None]:
    try:
        after = (await store.status(thread_id, run_id)).first_seq - 1
    except (UnknownRun, UnknownThread):  # it is claimed, and has not begun
        after = (await store.attach(thread_id)).seq
    async for event in store.follow(thread_id, after=after, run_id=run_id):
        yield event


async def _in_progress(store: AsyncStore, thread_id: str) -> str | None:
    """The run of a thread that is in progress, or about to begin."""
    try:
        head = await store.status(thread_id)
        if head.status == "running":
            return head.run_id
    except UnknownThread:
        pass
    for claim in await store.claims(thread_id):
        return claim.run_id
    return None


async def connect(call: Call) -> Response:
    """Streams the history of the head as a snapshot, then what follows."""
    call.query()
    call.agent()
    members = await call.members()
    thread_id = members.get("threadId")
    if not isinstance(thread_id, str) or not thread_id:
        raise Refused(400, 'the body has no "threadId"')
    last = call.request.headers.get("Last-Event-ID") or members.get("lastSeenEventId")
    protocol = members.get("protocolVersion")
    return _follow(call.store, thread_id, last, None, False, protocol)


def _follow(
    store: AsyncStore,
    thread_id: str,
    last: str | None,
    run_id: str | None,
    stay: bool,
    protocol: str | None,
) -> Response:
    shown = partial(_connected, protocol=protocol)
    followed = store._conversation(thread_id, last, run_id, stay, shown)
    return stream(_shown(store, thread_id, followed, protocol))


async def events(call: Call) -> Response:
    """Streams the history of a run as a snapshot, then its events as they are stored."""
    given = call.query("run", "stay", "last_event_id", "protocol_version", "custom")
    if given["custom"] not in (None, "head"):
        raise Refused(501, "custom is not an option of this router", ELSEWHERE)
    stay, run_id = flag(given["stay"], "stay"), given["run"] or None
    thread_id = call.ids["thread"]
    if run_id is not None:  # what is unknown is said before the stream begins
        await call.store.status(thread_id, run_id)
    elif not stay:
        await call.store.thread(thread_id)
    last = call.request.headers.get("Last-Event-ID") or given["last_event_id"]
    return _follow(call.store, thread_id, last, run_id, stay, given["protocol_version"])


async def stop(call: Call) -> Response:
    """Asks the runs of a thread that are in progress to stop, or one of them."""
    call.query()
    body = await call.members("runId", "reason")
    stopped = await call.store.request_stop(
        call.ids["thread"], body.get("runId") or None, body.get("reason") or None
    )
    return answer({"stopped": stopped})


# --- threads ---


async def threads(call: Call) -> Response:
    """Lists the threads of the scope, those with the latest activity first."""
    names = ("agent", "archived", "title", "since", "status", "head_only", "stale", "metadata")
    given = call.query(*names, "cursor", "limit")
    status = "stale" if flag(given["stale"], "stale") else given["status"]
    archived = {None: False, "only": True, "with": None}.get(given["archived"], "")
    if archived == "":
        raise Refused(400, f'archived is "{given["archived"]}" (expected only or with)')
    rows = await call.store._database.rows(
        f"select {columns_of(Thread, 'thread.')}, page.next_cursor, page.searched_to"
        " from agui.thread_page(%(agent)s, %(archived)s, %(title)s, %(since)s, %(status)s,"
        " %(head_only)s, %(metadata)s, %(limit)s, %(cursor)s, %(scope)s) as page"
        " left join lateral unnest(page.threads) as thread on true",
        {
            "agent": given["agent"] or None,
            "archived": archived,
            "title": given["title"] or None,
            "since": time(given["since"], "since"),
            "status": status or None,
            "head_only": flag(given["head_only"], "head_only"),
            "metadata": given["metadata"],
            "limit": limit(given["limit"]) or 50,
            "cursor": given["cursor"] or None,
            "scope": call.store.scope,
        },
        call.store.scope,
    )
    cursor, searched_to = rows[0].pop("next_cursor"), rows[0].pop("searched_to")
    listed = [
        shown(Thread(**{name: row[name] for name in THREAD})) for row in rows if row["thread_id"]
    ]
    body = {"threads": listed, "hasMore": cursor is not None}
    more = {"cursor": cursor, "searchedTo": searched_to}
    return answer(body | {name: value for name, value in more.items() if value is not None})


async def thread(call: Call) -> Response:
    """A thread as lists have it."""
    call.query()
    return answer(shown(await call.store.thread(call.ids["thread"])))


async def set_thread(call: Call) -> Response:
    """Sets what lists show of a thread."""
    call.query()
    body = await call.members("title", "agent", "archived", "metadata", "createIfMissing")
    changed = await call.store.set_thread(
        call.ids["thread"], title=body.get("title"), agent=body.get("agent"),
        archived=body.get("archived"), metadata=body.get("metadata"),
        create_if_missing=bool(body.get("createIfMissing")),
    )  # fmt: skip
    return answer(shown(changed))


async def runs(call: Call) -> Response:
    """The tree of a thread, in the order in which the runs began."""
    call.query()
    return answer({"runs": [shown(run) for run in await call.store.runs(call.ids["thread"])]})


async def run_status(call: Call) -> Response:
    """The state of a run (without one: of the head) and of its writer."""
    call.query()
    return answer(await _status(call, call.ids.get("run")))


async def _status(call: Call, run_id: str | None) -> dict[str, Any]:
    thread_id = call.ids["thread"]
    status = await call.store.status(thread_id, run_id)
    body = shown(status)
    if status.status == "finished":
        pending = await call.store._value(
            "pending_tool_calls", thread_id=thread_id, run_id=status.run_id
        )
        if pending:
            body["pendingToolCallIds"] = pending
    return body


async def fork(call: Call) -> Response:
    """Makes an empty run, which is the head from then on. A repeated request changes nothing."""
    call.query()
    thread_id = call.ids["thread"]
    body = await call.members("runId", "parentRunId", "beforeMessageId")
    run_id, parent, message = (
        body.get(name) for name in ("runId", "parentRunId", "beforeMessageId")
    )
    if not isinstance(run_id, str) or not run_id:
        raise Refused(400, 'the body has no "runId"')
    if (parent is None) == (message is None):
        raise Refused(422, "the body needs one of parentRunId and beforeMessageId")
    await call.store.thread(thread_id)  # a fork makes no thread
    if message is not None:
        parent = await _before(call.store, thread_id, run_id, message)
    start = {"type": "RUN_STARTED", "threadId": thread_id, "runId": run_id}
    if parent:
        start["parentRunId"] = parent
    end = {"type": "RUN_FINISHED", "threadId": thread_id, "runId": run_id}
    await call.store.append(thread_id, run_id, [start, end], after_seq=0, parent=parent or "")
    return answer(await _status(call, run_id))


async def _before(store: AsyncStore, thread_id: str, run_id: str, message_id: str) -> str:
    """The parent of a fork before a message: that of the run that brought it."""
    try:  # a repeated request: the head may be on the new branch, which lacks the message
        return (await store.status(thread_id, run_id)).parent_run_id or ""
    except UnknownRun:
        origins = await store._rows(
            "message_origin", "parent_run_id", thread_id=thread_id, message_id=message_id
        )
    for origin in origins:
        return origin["parent_run_id"] or ""
    raise Refused(404, f'no run of the lineage brought a message "{message_id}"')


async def waiting(call: Call) -> Response:
    """The questions that wait for an answer, in all threads."""
    given = call.query("agent", "limit")
    rows = await call.store.waiting(
        limit=limit(given["limit"]) or 100, agent=given["agent"] or None
    )
    return answer({"waiting": [shown(row, "status") for row in rows]})


# --- conversations ---


async def conversation(call: Call) -> Response:
    """Messages, state and interrupts."""
    return answer(await call.text("restore", "restore", **call.at()))


async def messages(call: Call) -> Response:
    """The messages."""
    given = call.query("last", "before", "run", "at_seq", "at_time")
    if given["last"] is not None or given["before"] is not None:
        raise Refused(501, "pages of messages are not in this router", ELSEWHERE)
    columns = "coalesce(json_agg(message order by position), '[]')"
    listed = await call.text("messages", columns, **call.at("last", "before"))
    return answer(f'{{"messages":{listed}}}')


async def state(call: Call) -> Response:
    """The state that agent and page share."""
    return answer(f'{{"state":{await call.text("state", "state", **call.at())}}}')


async def interrupts(call: Call) -> Response:
    """The interrupts that wait for an answer."""
    at = call.at()
    columns = (
        "json_build_object('interrupts', coalesce(json_agg(interrupt), '[]'), 'expired',"
        " coalesce(json_agg(interrupt_id) filter (where expired), '[]'))"
    )
    return answer(await call.text("interrupts", columns, **at))


ELSEWHERE = "pgagui serve has it, over the same database."

ROUTES: dict[str, Route] = {
    "POST /agent/{agent}/run": run,
    "POST /agent/{agent}/connect": connect,
    "GET /threads/{thread}/events": events,
    "POST /threads/{thread}/stop": stop,
    "GET /threads": threads,
    "GET /waiting": waiting,
    "GET /threads/{thread}": thread,
    "PATCH /threads/{thread}": set_thread,
    "GET /threads/{thread}/runs": runs,
    "GET /threads/{thread}/runs/{run}": run_status,
    "GET /threads/{thread}/head": run_status,
    "POST /threads/{thread}/fork": fork,
    "GET /threads/{thread}/conversation": conversation,
    "GET /threads/{thread}/messages": messages,
    "GET /threads/{thread}/state": state,
    "GET /threads/{thread}/interrupts": interrupts,
}

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


async def serve(
    request: Request, path: str, store: AsyncStore, scope: str, options: Options
) -> Response:
    """Answers a request whose path behind the prefix is path, as the framework decoded it."""
    try:
        ids, route = _find(request, path)
        call = Call(request, store.in_scope(scope) if scope else store, options, ids)
        return await route(call)
    except Refused as refused:
        return problem(refused)
    except Error as error:
        if error.status >= 500:
            log.error("%s %s failed: %s", request.method, path, error)
        return problem(error)


def _find(request: Request, path: str) -> tuple[dict[str, str], Route]:
    # Frameworks decode %2F before they look for a route, so an id with a slash is read anew.
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    skipped = request.scope["path"].removesuffix(path).count("/")
    try:
        given = [
            unquote_to_bytes(part).decode() for part in raw.split(b"?")[0].split(b"/")[skipped:]
        ]
    except UnicodeDecodeError:
        raise Refused(400, "the path has an id that is not UTF-8") from None
    if any("\0" in part for part in given):
        raise Refused(400, "the path has an id with a NUL")
    is_known = False
    for name, route in ROUTES.items():
        method, _, pattern = name.partition(" /")
        parts = pattern.split("/")
        if len(parts) == len(given) and all(
            value if part[0] == "{" else part == value
            for part, value in zip(parts, given, strict=True)
        ):
            if method == request.method:
                return {
                    part[1:-1]: value
                    for part, value in zip(parts, given, strict=True)
                    if part[0] == "{"
                }, route
            is_known = True
    if is_known:
        raise Refused(405, f"{request.method} is not a method of this path", ELSEWHERE)
    raise Refused(501, f"{request.method} /{path} is not a route of this router", ELSEWHERE)
