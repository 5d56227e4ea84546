"""Sessions of Google's ADK in PostgreSQL: PgaguiSessionService. Needs pip install "pgagui[adk]".

    adk.app/APP               session state: what the app has, a document for each key
    adk.users/APP             session state: the users with sessions, and the names of their threads
    adk.user/APP/USER         session state: what the user has
    adk.sessions/APP/USER     session state: a document for each session; its version is the
                              revision that an append compares
    adk.session/APP/USER/ID   session state: what the session has; checkpoints: its events

These threads have no runs. They are archived, so that lists of conversations leave them out.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections import defaultdict
from copy import deepcopy
from typing import Any
from urllib.parse import quote
from weakref import WeakValueDictionary

from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.sessions import BaseSessionService, Session, State
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
from pydantic_core import to_jsonable_python

from ._sessions import document, last_only
from .errors import StaleVersion
from .store import AsyncStore

PREFIXES = {"app": State.APP_PREFIX, "user": State.USER_PREFIX, "session": ""}

# The users of a call: all of the app, or one.
ALL_USERS = "agui.session_states(%(users)s, scope => %(scope)s)"
ONE_USER = "agui.load_session_state(%(users)s, %(user_id)s, scope => %(scope)s)"

# The first session of a user brings the threads that others share. A thread that is set is locked
# until the end, so that comes first, in one order.
KNOWN = f"with known as materialized (select count(*) > 0 as yes from {ONE_USER})\n"
CREATE = """(
        select count(
            agui.set_thread(name, archived => true, create_if_missing => true, scope => %(scope)s)
        )
        from known
        cross join unnest(case when known.yes then %(own)s::text[] else %(all)s::text[] end) as name
    ),
    case when not (select yes from known) then
        agui.save_session_state(
            %(users)s, %(user_id)s, %(names)s::json, overwrite => true, scope => %(scope)s
        )
    end,
    agui.save_session_state(%(sessions)s, %(id)s, %(head)s::json, scope => %(scope)s)"""

APPEND = """agui.save_session_state(
        %(sessions)s, %(id)s, %(head)s::json, expected_version => %(version)s, scope => %(scope)s
    ) as version,
    agui.save_checkpoint(
        %(session)s, %(number)s, %(event)s::json, namespace => 'adk', scope => %(scope)s
    )"""

GET = """with head as materialized (
    select * from agui.load_session_state(%(sessions)s, %(id)s, scope => %(scope)s)
)
select 'head' as kind, null as key, version, document::text as json from head
union all
select kind.name, state.key, state.version, state.document::text
from head
cross join (
    values ('app', %(app)s), ('user', %(user)s), ('session', %(session)s)
) as kind (name, thread)
cross join lateral agui.session_states(kind.thread, scope => %(scope)s) as state
union all
select 'event', null, event.checkpoint_no, event.document::text
from head
cross join lateral agui.checkpoints(
    %(session)s, 'adk', scope => %(scope)s,
    after_no => (head.document ->> 'events')::bigint - %(recent)s
) as event
order by version"""

LIST = """with who as materialized (
    select key as user_id, document ->> 'user' as thread, document ->> 'sessions' as sessions
    from {0}
),
head as materialized (
    select who.user_id, head.*
    from who
    cross join lateral agui.session_states(who.sessions, scope => %(scope)s) as head
)
select 'head' as kind, user_id, key as id, null as key, version, document::text as json from head
union all
select 'app', null, null, state.key, state.version, state.document::text
from agui.session_states(%(app)s, scope => %(scope)s) as state
union all
select 'user', who.user_id, null, state.key, state.version, state.document::text
from who
cross join lateral agui.session_states(who.thread, scope => %(scope)s) as state
union all
select 'session', head.user_id, head.key, state.key, state.version, state.document::text
from head
cross join lateral agui.session_states(
    head.document ->> 'thread', scope => %(scope)s
) as state"""

DELETE = last_only(
    """agui.remove_session_state(%(sessions)s, %(id)s, overwrite => true, scope => %(scope)s),
    (
        select count(
            agui.remove_session_state(%(session)s, key, overwrite => true, scope => %(scope)s)
        )
        from agui.session_states(%(session)s, scope => %(scope)s)
    ),
    agui.remove_checkpoints(%(session)s, scope => %(scope)s)"""
)


class PgaguiSessionService(BaseSessionService):
    """The sessions of ADK in the database of a store. Each call is one statement, create two.

        runner = Runner(app_name="trips", agent=agent, session_service=PgaguiSessionService(store))

    State is JSON, as in ADK's DatabaseSessionService. An append to a session that another process
    has changed since it was read is refused (StaleSessionError). What belongs to a deleted session
    is deleted, and its id can be used again. A session is no conversation of the log: the stream
    of an agent can be recorded in a thread with the same id.
    """

    def __init__(self, store: AsyncStore) -> None:
        self._store = store
        # Branches of a run append to one Session, one after the other.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Creates a session. Errors: AlreadyExistsError."""
        session_id = (session_id or "").strip() or str(uuid.uuid4())
        names = _names(app_name, user_id, session_id)
        shared = {kind: names[kind] for kind in ("app", "users", "user", "sessions")}
        saves, values = _saves(state or {}, names)
        values |= {
            "own": [names["session"]],
            "all": [*shared.values(), names["session"]],
            "names": json.dumps(shared),
            "head": _head(names, time.time(), 0),
        }
        try:
            await self._rows(KNOWN + last_only(CREATE + saves), names, values)
        except StaleVersion:
            raise AlreadyExistsError(f"Session with id {session_id} already exists.") from None
        created = await self.get_session(
            app_name=app_name, user_id=user_id, session_id=session_id,
            config=GetSessionConfig(num_recent_events=0),
        )  # fmt: skip
        if created is None:
            raise SessionNotFoundError(f"Session {session_id} was deleted.")
        return created

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """Returns a session, with all of its events or those that config names, or None."""
        session_id = session_id.strip()
        config = config or GetSessionConfig()
        names = _names(app_name, user_id, session_id)
        rows = await self._rows(GET, names, {"recent": config.num_recent_events})
        session = None
        state: dict[str, Any] = {}
        events: list[Event] = []
        for row in rows:
            if row["kind"] == "head":
                session = _session(app_name, user_id, session_id, row)
            elif row["kind"] == "event":
                events.append(Event.model_validate_json(row["json"]))
            else:
                state[PREFIXES[row["kind"]] + row["key"]] = json.loads(row["json"])
        if session is None:
            return None
        after = config.after_timestamp
        session.state = state
        session.events = [event for event in events if after is None or event.timestamp >= after]
        return session

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """Returns the sessions of a user, or of all, with states and without events."""
        names = _names(app_name, user_id or "")
        users = ALL_USERS if user_id is None else ONE_USER
        rows = await self._rows(LIST.format(users), names, {})
        states: dict[tuple[str | None, str | None], dict[str, Any]] = defaultdict(dict)
        for row in rows:
            if row["kind"] != "head":
                key = PREFIXES[row["kind"]] + row["key"]
                states[row["user_id"], row["id"]][key] = json.loads(row["json"])
        sessions: list[Session] = []
        for row in rows:
            if row["kind"] == "head":
                user, id = row["user_id"], row["id"]
                session = _session(app_name, user, id, row)
                # Each has its own: what a caller changes in one is not in the others.
                session.state = deepcopy(states[user, id] | states[None, None] | states[user, None])
                sessions.append(session)
        sessions.sort(key=lambda one: (one.last_update_time, one.user_id, one.id))
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Deletes a session, its state and its events."""
        await self._rows(DELETE, _names(app_name, user_id, session_id.strip()), {})

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Returns the state of a user, without the prefix of its keys."""
        text = (
            "select key, document::text as json"
            " from agui.session_states(%(user)s, scope => %(scope)s)"
        )
        rows = await self._rows(text, _names(app_name, user_id), {})
        return {row["key"]: json.loads(row["json"]) for row in rows}

    async def append_event(self, session: Session, event: Event) -> Event:
        """Stores an event with its change of the states, and takes both into the session.

        Errors: StaleSessionError, SessionNotFoundError.
        """
        if event.partial:
            return event
        names = _names(session.app_name, session.user_id, session.id)
        lock = self._locks.setdefault(names["session"], asyncio.Lock())
        async with lock:
            if any(known.id == event.id and known == event for known in session.events):
                return event
            if session._storage_update_marker is None:
                await self._recognize(session)
            version, number = map(int, (session._storage_update_marker or "0/0").split("/"))
            delta = _lasting(event.actions.state_delta)
            actions = event.actions.model_copy(update={"state_delta": delta})
            stored = event.model_copy(update={"actions": actions})
            saves, values = _saves(delta, names)
            values |= {
                "version": version,
                "number": str(number + 1),
                "head": _head(names, event.timestamp, number + 1),
                "event": stored.model_dump_json(exclude_none=True),
            }
            try:
                [row] = await self._rows(last_only(APPEND + saves), names, values)
            except StaleVersion as error:
                if json.loads(error.detail)["currentVersion"] == 0:
                    raise SessionNotFoundError(f"Session {session.id} not found.") from None
                raise StaleSessionError(
                    f"Session {session.id} has changed since it was read: read it, and append then."
                ) from None
            session._storage_update_marker = f"{row['version']}/{number + 1}"
            session.last_update_time = event.timestamp
            return await super().append_event(session, event)

    async def _recognize(self, session: Session) -> None:
        """Finds the revision of a session that did not come from this service, as ADK's does."""
        stored = await self.get_session(
            app_name=session.app_name, user_id=session.user_id, session_id=session.id,
            config=GetSessionConfig(num_recent_events=1),
        )  # fmt: skip
        if stored is None:
            raise SessionNotFoundError(f"Session {session.id} not found.")
        last = [event.id for event in session.events[-1:]]
        is_newer = stored.last_update_time > session.last_update_time
        if is_newer and last != [event.id for event in stored.events]:
            raise StaleSessionError(f"Session {session.id} has changed: read it, and append then.")
        session._storage_update_marker = stored._storage_update_marker

    async def _rows(
        self, text: str, names: dict[str, str], values: dict[str, Any]
    ) -> list[dict[str, Any]]:
        scope = self._store.scope
        return await self._store._database.rows(text, names | values | {"scope": scope}, scope)


def _names(app_name: str, user_id: str, session_id: str = "") -> dict[str, str]:
    """The ids and the names of threads that statements use."""
    app = quote(app_name, safe="")
    user = f"{app}/{quote(user_id, safe='')}"
    return {
        "user_id": user_id,
        "id": session_id,
        "app": f"adk.app/{app}",
        "users": f"adk.users/{app}",
        "user": f"adk.user/{user}",
        "sessions": f"adk.sessions/{user}",
        "session": f"adk.session/{user}/{quote(session_id, safe='')}",
    }


def _head(names: dict[str, str], updated: float, events: int) -> str:
    return json.dumps({"thread": names["session"], "updated": updated, "events": events})


def _session(app_name: str, user_id: str, session_id: str, row: dict[str, Any]) -> Session:
    head = json.loads(row["json"])
    session = Session(
        app_name=app_name, user_id=user_id, id=session_id, last_update_time=head["updated"]
    )
    session._storage_update_marker = f"{row['version']}/{head['events']}"
    return session


def _lasting(delta: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in delta.items() if not key.startswith(State.TEMP_PREFIX)}


def _saves(delta: dict[str, Any], names: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """Returns columns of a statement that save a change of states, and their values.

    Those of one app or user are always saved in the same order, so writers cannot deadlock.
    """
    saves: list[tuple[str, str, str]] = []
    for key, value in _lasting(delta).items():
        kind = next(kind for kind, prefix in PREFIXES.items() if key.startswith(prefix))
        text = document(to_jsonable_python(value, serialize_unknown=True))
        saves.append((names[kind], key.removeprefix(PREFIXES[kind]), text))
    columns = ""
    values: dict[str, Any] = {}
    for i, save in enumerate(sorted(saves)):
        columns += (
            f", agui.save_session_state(%(thread{i})s, %(key{i})s, %(document{i})s::json,"
            " overwrite => true, scope => %(scope)s)"
        )
        values |= dict(zip((f"thread{i}", f"key{i}", f"document{i}"), save, strict=True))
    return columns, values
