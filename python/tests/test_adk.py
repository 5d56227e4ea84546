"""PgaguiSessionService does what ADK's own services do, with the same calls."""

import asyncio
import os
import sys
from contextlib import asynccontextmanager
from datetime import datetime, timezone
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.models import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import DatabaseSessionService, InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from pgagui import AsyncStore, errors
from pgagui.adk import PgaguiSessionService

from .conftest import over_asyncpg
from .survives import survives

pytestmark = pytest.mark.filterwarnings("ignore")  # of google-adk and its packages

IDS: Any = {"app_name": "trips", "user_id": "ada"}


@asynccontextmanager
async def services(kind, address, path):
    """A function that returns a service, each time as another process would have it."""
    if kind == "memory":
        memory = InMemorySessionService()
        yield lambda: memory
    elif kind == "database":
        services = []

        def another():
            services.append(DatabaseSessionService(f"sqlite+aiosqlite:///{path}/sessions.db"))
            return services[-1]

        yield another
        for service in services:
            await service.close()
    else:
        opened = over_asyncpg if kind == "asyncpg" else AsyncStore
        async with opened(address) as store:
            yield lambda: PgaguiSessionService(store)


@pytest.fixture(params=["pgagui", "asyncpg", "database", "memory"])
async def service(request, address, tmp_path):
    async with services(request.param, address, tmp_path) as another:
        service = another()
        service.kind, service.another = request.param, another
        yield service


def event(text="hello", at=100.0, author="user", **more):
    delta = more.pop("delta", {})
    content = types.Content(role=author, parts=[types.Part(text=text)])
    return Event(
        author=author, invocation_id="i", timestamp=at, content=content,
        actions=EventActions(state_delta=delta), **more,
    )  # fmt: skip


def texts(session):
    return [part.text for one in session.events for part in one.content.parts]


@survives("ADK", "state")
async def test_states_of_app_user_and_session(service):
    given = {"title": "Rome", "user:name": "Ada", "app:model": "m", "temp:draft": 1, "n": None}
    session = await service.create_session(**IDS, session_id=" one ", state=given)
    shared = {"user:name": "Ada", "app:model": "m"}
    assert session.id.strip() == "one"
    assert session.state == {"title": "Rome", "n": None} | shared and session.events == []
    assert (await service.create_session(**IDS, session_id="two")).state == shared
    other = await service.create_session(app_name="trips", user_id="bob")
    assert other.state == {"app:model": "m"} and other.id
    elsewhere = await service.create_session(app_name="cooking", user_id="ada")
    assert elsewhere.state == {}
    assert await service.get_user_state(**IDS) == {"name": "Ada"}
    assert await service.get_user_state(app_name="trips", user_id="eve") == {}

    delta = {
        "title": "Oslo",
        "user:name": "Lovelace",
        "app:model": "n",
        "temp:x": [1],
        "d": {"e": 2},
    }
    appended = await service.append_event(other, event(delta=delta))
    assert appended.actions.state_delta == {k: v for k, v in delta.items() if k != "temp:x"}
    assert other.state == delta and other.last_update_time == 100.0
    two = await service.another().get_session(**IDS, session_id="two")
    assert two.state == {"user:name": "Ada", "app:model": "n"}
    again = await service.get_session(app_name="trips", user_id="bob", session_id=other.id)
    assert again.state == {k: v for k, v in delta.items() if k != "temp:x"}
    again.state["title"] = "not stored"
    again = await service.get_session(app_name="trips", user_id="bob", session_id=other.id)
    assert again.state["title"] == "Oslo"


async def test_events_come_back_as_they_were(service):
    session = await service.create_session(**IDS, session_id="s")
    call = types.FunctionCall(id="c1", name="look", args={"at": "Zürich 🚆", "deep": [{"a": None}]})
    answer = types.FunctionResponse(id="c1", name="look", response={"result": 'a "b" \\ \n'})
    sent = [
        event("Où?", at=1796000000.123457),
        Event(
            author="agent", invocation_id="i", timestamp=1796000000.2,
            content=types.Content(role="model", parts=[types.Part(function_call=call)]),
            branch="a.b", long_running_tool_ids={"c1"},
        ),
        Event(
            author="agent", invocation_id="i", timestamp=1796000000.3, error_code="X",
            content=types.Content(role="user", parts=[types.Part(function_response=answer)]),
            actions=EventActions(transfer_to_agent="other", escalate=True),
            custom_metadata={"k": 1},
        ),
        Event(
            author="user", invocation_id="i", timestamp=1796000000.4,
            content=types.Content(
                role="user",
                parts=[types.Part(inline_data=types.Blob(data=b"\x00\xff", mime_type="image/png"))],
            ),
        ),
    ]  # fmt: skip
    for one in sent:
        assert await service.append_event(session, one) is one
    assert session.events == sent
    partial = event("par", at=1796000001.0, partial=True)
    assert await service.append_event(session, partial) is partial and session.events == sent
    stored = await service.another().get_session(**IDS, session_id="s")
    assert stored.events == sent and stored.last_update_time == session.last_update_time
    # The session that was read takes more.
    await service.append_event(stored, event("more", at=1796000002.0))
    assert len((await service.get_session(**IDS, session_id="s")).events) == 5


async def test_a_part_of_the_events(service):
    session = await service.create_session(**IDS, session_id="s", state={"a": 1})
    for i in range(5):
        await service.append_event(session, event(str(i), at=100.0 + i))

    async def read(**config):
        found = await service.get_session(**IDS, session_id="s", config=GetSessionConfig(**config))
        assert found.state == {"a": 1} and found.last_update_time == 104.0
        return texts(found)

    assert await read() == list("01234")
    assert await read(num_recent_events=2) == list("34")
    assert await read(num_recent_events=0) == []
    assert await read(num_recent_events=9) == list("01234")
    assert await read(after_timestamp=102.0) == list("234")
    assert await read(after_timestamp=102.5, num_recent_events=4) == list("34")
    assert await read(after_timestamp=102.5, num_recent_events=1) == list("4")
    assert await read(after_timestamp=200.0) == []
    # A session of which a part was read takes more.
    config = GetSessionConfig(num_recent_events=1)
    part = await service.get_session(**IDS, session_id="s", config=config)
    await service.append_event(part, event("5", at=105.0))
    stored = await service.get_session(**IDS, session_id="s")
    assert texts(part) == list("45") and texts(stored) == list("012345")


async def test_lists(service):
    assert (await service.list_sessions(app_name="trips")).sessions == []
    assert (await service.list_sessions(**IDS)).sessions == []
    for user, id in ("ada", "a/1"), ("ada", "b %"), ("bob", "a/1"):
        state = {"id": id, f"user:{user}": [1], "app:all": {}}
        session = await service.create_session(
            app_name="trips", user_id=user, session_id=id, state=state
        )
        await service.append_event(session, event(at=2e9 if id == "a/1" else 1e9))
    await service.create_session(app_name="trips/ada", user_id="a", session_id="x")

    async def listed(**ids):
        sessions = (await service.list_sessions(**ids)).sessions
        assert all(session.events == [] for session in sessions)
        return [(session.user_id, session.id, session.state) for session in sessions]

    ada = {"user:ada": [1], "app:all": {}}
    of_ada = [("ada", "b %", {"id": "b %"} | ada), ("ada", "a/1", {"id": "a/1"} | ada)]
    bob = [("bob", "a/1", {"id": "a/1", "user:bob": [1], "app:all": {}})]
    assert await listed(**IDS) == of_ada
    assert await listed(app_name="trips") == of_ada + bob
    assert await listed(app_name="trips", user_id="eve") == []
    # What is listed takes events.
    [session] = (await service.list_sessions(app_name="trips", user_id="bob")).sessions
    await service.append_event(session, event("more", at=3e9))
    found = await service.get_session(app_name="trips", user_id="bob", session_id="a/1")
    assert texts(found) == ["hello", "more"]


async def test_deleted_and_created_a_second_time(service):
    given = {"secret": 1, "user:kept": 2}
    session = await service.create_session(**IDS, session_id="s", state=given)
    await service.append_event(session, event("secret"))
    for _ in range(2):
        await service.delete_session(**IDS, session_id="s")
        assert await service.get_session(**IDS, session_id="s") is None
        assert (await service.list_sessions(**IDS)).sessions == []
    with pytest.raises(SessionNotFoundError):
        await service.append_event(session, event(at=101.0))
    new = await service.create_session(**IDS, session_id="s")
    assert new.state == {"user:kept": 2} and new.events == []
    await service.append_event(new, event("first", at=2e9))
    config = GetSessionConfig(num_recent_events=1)
    found = await service.get_session(**IDS, session_id="s", config=config)
    assert texts(found) == ["first"]
    with pytest.raises(AlreadyExistsError):
        await service.create_session(**IDS, session_id="s")


async def test_what_is_not_there(service):
    assert await service.get_session(**IDS, session_id="s") is None
    await service.delete_session(**IDS, session_id="s")
    with pytest.raises(SessionNotFoundError):
        await service.append_event(Session(**IDS, id="s"), event())
    with pytest.raises(ValueError):
        GetSessionConfig(num_recent_events=-1)


async def test_values_that_are_no_json(address):
    async with AsyncStore(address) as store:
        service = PgaguiSessionService(store)
        time, text = datetime(2026, 1, 1, tzinfo=timezone.utc), "\ud800"
        state = {"time": time, "set": {1}, "function": len, "text": text, "nul": "\0"}
        session = await service.create_session(**IDS, session_id="s", state=state)
        assert session.state.pop("function") == repr(len)
        assert session.state == {
            "time": "2026-01-01T00:00:00Z", "set": [1], "text": text, "nul": "\0"
        }  # fmt: skip
        for wrong in float("nan"), {"a": float("inf")}:
            with pytest.raises(errors.InvalidEvents, match="no JSON"):
                await service.append_event(session, event(delta={"n": wrong}))
        assert session.events == []


async def test_a_stale_session_is_refused(service):
    if service.kind == "memory":
        pytest.skip("it has one process, and takes what comes")
    session = await service.create_session(**IDS, session_id="s")
    other = await service.another().get_session(**IDS, session_id="s")
    await service.append_event(other, event("first", at=2e9))
    with pytest.raises(StaleSessionError):
        await service.append_event(session, event("late", delta={"x": 1}, at=2e9 + 1))
    assert session.events == [] and session.state == {}
    stored = await service.get_session(**IDS, session_id="s")
    assert texts(stored) == ["first"] and stored.state == {}
    # One that no service has made, as that of a page: as new as what is stored, or not.
    await service.append_event(Session(**IDS, id="s", events=stored.events), event("2", at=2e9 + 2))
    with pytest.raises(StaleSessionError):
        await service.append_event(Session(**IDS, id="s", events=stored.events), event("3"))
    stored = await service.get_session(**IDS, session_id="s")
    assert texts(stored) == ["first", "2"]


async def test_branches_append_to_one_session(service):
    session = await service.create_session(**IDS, session_id="s")
    sent = [event(str(i), at=100.0 + i, delta={f"k{i}": i, "app:n": i}) for i in range(10)]
    await asyncio.gather(*(service.append_event(session, one) for one in sent))
    stored = await service.get_session(**IDS, session_id="s")
    assert texts(stored) == list("0123456789")
    assert stored.state == {f"k{i}": i for i in range(10)} | {"app:n": 9} == session.state


async def test_writers_of_shared_states_do_not_deadlock(address):
    async with AsyncStore(address) as store:

        async def work(i):
            service = PgaguiSessionService(store)
            session = await service.create_session(app_name="a", user_id=f"u{i % 3}")
            for n in range(5):
                keys = [f"app:{n}", f"app:{i}", f"user:{i}", f"user:{n}", "x"]
                delta = dict.fromkeys(keys if i % 2 else reversed(keys), i)
                await service.append_event(session, event(delta=delta))

        await asyncio.gather(*(work(i) for i in range(12)))
        service = PgaguiSessionService(store)
        assert len((await service.list_sessions(app_name="a")).sessions) == 12


async def test_what_is_deleted_is_deleted_and_no_list_shows_sessions(address):
    async with AsyncStore(address) as store:
        service = PgaguiSessionService(store)
        session = await service.create_session(**IDS, session_id="s", state={"a": "secret"})
        for i in range(3):
            await service.append_event(session, event("secret", delta={"a": f"secret {i}"}))
        assert await store.threads() == []
        assert (
            await PgaguiSessionService(store.in_scope("x")).get_session(**IDS, session_id="s")
            is None
        )
        text = (
            "select (select count(*) from agui.session_state where document::text ~ 'secret')"
            " + (select count(*) from agui.checkpoint) as n"
        )
        # The state without its earlier versions, and three events.
        assert await store._database.rows(text, {}, "") == [{"n": 4}]
        await service.delete_session(**IDS, session_id="s")
        assert await store._database.rows(text, {}, "") == [{"n": 0}]


class Scripted(BaseLlm):
    """Calls a tool, and says its result. Says how many turns it has seen."""

    async def generate_content_async(self, llm_request, stream=False):
        last = llm_request.contents[-1].parts[-1]
        if last.function_response:
            text = f"{last.function_response.response['result']}, turn {self.turns(llm_request)}"
            part = types.Part(text=text)
        else:
            call = types.FunctionCall(name="look", args={"at": last.text})
            part = types.Part(function_call=call)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))

    def turns(self, llm_request):
        return sum(1 for one in llm_request.contents for part in one.parts if part.text == "Rome?")


def look(at: str, tool_context: ToolContext) -> str:
    """Looks."""
    tool_context.state["user:looks"] = tool_context.state.get("user:looks", 0) + 1
    return f"seen {at}"


def runner(service, tool=look):
    agent = LlmAgent(name="guide", model=Scripted(model="scripted"), tools=[tool])
    return Runner(app_name="trips", agent=agent, session_service=service)


async def turn(runner, **part):
    content = types.Content(role="user", parts=[types.Part(**part or {"text": "Rome?"})])
    said = ""
    async for one in runner.run_async(user_id="ada", session_id="s", new_message=content):
        said = "".join(part.text or "" for part in one.content.parts) or said
    return said


@survives("ADK", "messages")
async def test_an_agent_with_a_tool(service):
    await service.create_session(**IDS, session_id="s")
    assert await turn(runner(service)) == "seen Rome?, turn 1"
    assert await turn(runner(service.another())) == "seen Rome?, turn 2"
    session = await service.get_session(**IDS, session_id="s")
    assert [one.author for one in session.events] == ["user", "guide", "guide", "guide"] * 2
    assert session.state == {"user:looks": 2}


@survives("ADK", "interrupts")
async def test_a_question_that_another_process_answers(service):
    def look(at: str) -> dict[str, str]:
        """Asks a person."""
        return {"result": "pending"}

    await service.create_session(**IDS, session_id="s")
    tool = LongRunningFunctionTool(look)
    assert await turn(runner(service, tool)) == "pending, turn 1"
    session = await service.another().get_session(**IDS, session_id="s")
    asked = next(one for one in session.events if one.long_running_tool_ids)
    [id] = asked.long_running_tool_ids
    answer = types.FunctionResponse(id=id, name="look", response={"result": "yes"})
    assert await turn(runner(service.another(), tool), function_response=answer) == "yes, turn 1"


async def test_a_turn_with_a_tool_is_five_statements(address, monkeypatch):
    async with AsyncStore(address) as store:
        service = PgaguiSessionService(store)
        await service.create_session(**IDS, session_id="s")
        statements = []
        execute = store._database._execute

        async def counted(connection, text, *rest):
            statements.append(text)
            return await execute(connection, text, *rest)

        monkeypatch.setattr(store._database, "_execute", counted)
        await turn(runner(service))
        # The session; the user's words, the call, its result, the answer.
        assert len(statements) == 5


async def hang(address):
    """A process that never ends its tool."""

    async def look(at: str) -> str:
        """Looks."""
        print("looking", flush=True)
        await asyncio.sleep(1e9)
        return "never"

    async with AsyncStore(address) as store:
        service = PgaguiSessionService(store)
        await service.create_session(**IDS, session_id="s", state={"title": "Rome"})
        await turn(runner(service, look))


@survives("ADK", "process killed")
async def test_a_killed_process_and_another_that_continues(address):
    code = f"import asyncio; from tests.test_adk import hang; asyncio.run(hang({address!r}))"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "ignore", "-c", code, stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert process.stdout is not None
    assert await process.stdout.readline() == b"looking\n"
    process.kill()
    await process.wait()
    async with AsyncStore(address) as store:
        service = PgaguiSessionService(store)
        session = await service.get_session(**IDS, session_id="s")
        assert session is not None and session.state == {"title": "Rome"}
        assert [one.author for one in session.events] == ["user", "guide"]
        [call] = session.events[-1].get_function_calls()
        answer = types.FunctionResponse(id=call.id, name="look", response={"result": "lost"})
        assert await turn(runner(service), function_response=answer) == "lost, turn 1"
