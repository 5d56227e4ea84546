"""The stores for Microsoft's Agent Framework do what its own do, with the same calls.

They run in an environment of their own: agent-framework-ag-ui excludes ag-ui-protocol 1.0.
"""

import asyncio
import json
import os
import sys
from typing import Any

import httpx
import pytest
from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FileHistoryProvider,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    tool,
)
from agent_framework_ag_ui import (
    AgentFrameworkAgent,
    AGUIThreadSnapshot,
    AGUIThreadSnapshotStore,
    InMemoryAGUIThreadSnapshotStore,
    add_agent_framework_fastapi_endpoint,
)
from fastapi import FastAPI

from pgagui import AsyncStore, errors
from pgagui.agent_framework import PgaguiHistoryProvider, PgaguiSnapshotStore

from .conftest import collect, over_asyncpg, run_input, shown, until
from .survives import survives

pytestmark = pytest.mark.filterwarnings("ignore")  # of the framework and its packages


class Scripted(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """Calls the tool that the user names, and says what it has seen."""

    def _inner_get_response(self, *, messages, stream, options, **kwargs):
        contents = [content for message in messages for content in message.contents]
        users = [one for one in messages if str(one.role) == "user" and one.text]
        if contents[-1].type == "text" and contents[-1].text in ("look", "erase", "hang"):
            said = Content.from_function_call("c1", contents[-1].text, arguments='{"at": "Rome"}')
        else:
            last = contents[-1]
            text = str(last.result) if last.type == "function_result" else last.text
            said = Content.from_text(f"{text}, turn {len(users)}")

        async def updates():
            yield ChatResponseUpdate(role="assistant", contents=[said])

        if stream:
            return ResponseStream(updates(), finalizer=ChatResponse.from_updates)

        async def whole():
            return ChatResponse(messages=[Message("assistant", [said])])

        return whole()


@tool
def look(at: str) -> str:
    """Looks."""
    return f"seen {at}"


@tool(approval_mode="always_require")
def erase(at: str) -> str:
    """Erases, if the user agrees."""
    return f"erased {at}"


@tool
async def hang(at: str) -> str:
    """Never ends."""
    print("hanging", flush=True)
    await asyncio.sleep(1e9)
    return "never"


def agent_with(*providers):
    return Agent(client=Scripted(), tools=[look, erase, hang], context_providers=providers)


@pytest.fixture(params=["pgagui", "asyncpg", "file"])
async def another(request, address, tmp_path):
    """Makes a provider, each time as another process would have it."""
    opened = over_asyncpg if request.param == "asyncpg" else AsyncStore
    async with opened(address) as store:
        if request.param == "file":
            yield lambda **options: FileHistoryProvider(tmp_path, **options)
        else:
            yield lambda **options: PgaguiHistoryProvider(store, **options)


def sent():
    return [
        Message(
            "user", ['Où? 🚆 "a" \\ \n'], message_id="u1", additional_properties={"k": [1, None]}
        ),
        Message(
            "assistant",
            [
                Content.from_text_reasoning(text="hm"),
                Content.from_function_call("c1", "look", arguments={"at": "Rome"}),
            ],
            author_name="guide",
        ),
        Message("tool", [Content.from_function_result("c1", result="seen")]),
        Message("user", [Content.from_data(b"\x00\xff", "image/png")]),
    ]


async def test_messages_come_back_as_they_were(another):
    provider = another()
    assert await provider.get_messages("s") == []
    messages = sent()
    await provider.save_messages("s", messages[:1])
    await provider.save_messages("s", [])
    await provider.save_messages("s", messages[1:])
    await provider.save_messages(None, messages[:1])
    found = await another().get_messages("s")
    assert [one.to_dict() for one in found] == [one.to_dict() for one in messages]
    assert [one.text for one in await provider.get_messages(None)] == [messages[0].text]
    assert await provider.get_messages("other") == []


@survives("Agent Framework", "messages")
async def test_an_agent_that_continues_in_another_process(another):
    session = AgentSession(session_id="s")
    assert (await agent_with(another()).run("Rome?", session=session)).text == "Rome?, turn 1"
    later = AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
    assert (await agent_with(another()).run("look", session=later)).text == "seen Rome, turn 2"
    stream = agent_with(another()).run("Oslo?", session=later, stream=True)
    assert "".join([update.text async for update in stream]) == "Oslo?, turn 3"
    roles = [str(one.role) for one in await another().get_messages("s")]
    assert roles == ["user", "assistant", "user", "assistant", "tool", "assistant", *roles[:2]]


async def test_providers_and_scopes_are_apart(address):
    async with AsyncStore(address) as store:
        await PgaguiHistoryProvider(store).save_messages("s", sent())
        assert len(await PgaguiHistoryProvider(store).get_messages("s")) == 4
        assert await PgaguiHistoryProvider(store, "audit").get_messages("s") == []
        assert await PgaguiHistoryProvider(store.in_scope("x")).get_messages("s") == []
        bad = Message("user", ["x"], additional_properties={"f": float("nan")})
        with pytest.raises(errors.InvalidEvents):
            await PgaguiHistoryProvider(store).save_messages("s", [bad])
        await store.erase("s")
        assert await PgaguiHistoryProvider(store).get_messages("s") == []


async def test_saves_at_the_same_time_are_all_there(address):
    async with AsyncStore(address) as store:
        provider = PgaguiHistoryProvider(store)
        await asyncio.gather(*(provider.save_messages("s", sent()) for _ in range(20)))
        assert len(await provider.get_messages("s")) == 80


@pytest.fixture(params=["pgagui", "asyncpg", "memory"])
async def snapshots(request, address):
    opened = over_asyncpg if request.param == "asyncpg" else AsyncStore
    async with opened(address) as store:
        memory = InMemoryAGUIThreadSnapshotStore()
        yield memory if request.param == "memory" else PgaguiSnapshotStore(store)


async def test_snapshots(snapshots):
    assert isinstance(snapshots, AGUIThreadSnapshotStore)
    message = {"id": "m", "role": "user", "content": "Où? 🚆"}
    whole = AGUIThreadSnapshot([message], {"a": [None, 1.5]}, [{"id": "i"}], {"private": {}})
    one, two = {"scope": "ada", "thread_id": "t"}, {"scope": "bob", "thread_id": "t"}
    assert await snapshots.get(**one) is None and not await snapshots.delete(**one)
    await snapshots.save(**one, snapshot=AGUIThreadSnapshot())
    assert await snapshots.get(**one) == AGUIThreadSnapshot()
    await snapshots.save(**one, snapshot=whole)
    await snapshots.save(**two, snapshot=AGUIThreadSnapshot([{"id": "other"}]))
    found = await snapshots.get(**one)
    assert found == whole
    found.messages.clear()
    assert await snapshots.get(**one) == whole
    assert await snapshots.delete(**one) and not await snapshots.delete(**one)
    assert await snapshots.get(**one) is None and await snapshots.get(**two)
    await snapshots.save(**one, snapshot=whole)
    await snapshots.clear(scope="bob")
    assert await snapshots.get(**two) is None and await snapshots.get(**one) == whole
    await snapshots.save(**two, snapshot=whole)
    await snapshots.clear()
    assert await snapshots.get(**two) is None and await snapshots.get(**one) is None
    for wrong in {"scope": "", "thread_id": "t"}, {"scope": "ada", "thread_id": ""}:
        with pytest.raises(ValueError, match="must be a non-empty string"):
            await snapshots.get(**wrong)
    number: Any = 1
    with pytest.raises(TypeError, match="must be a string"):
        await snapshots.clear(scope=number)


async def test_a_removed_snapshot_is_gone(address):
    async with AsyncStore(address) as store:
        snapshots = PgaguiSnapshotStore(store)
        ids = {"scope": "ada", "thread_id": "t"}
        for i in range(3):
            await snapshots.save(**ids, snapshot=AGUIThreadSnapshot([{"secret": i}]))
        text = "select count(*) as n from agui.session_state where document::text ~ 'secret'"
        assert await store._database.rows(text, {}, "") == [{"n": 1}]
        await snapshots.delete(**ids)
        assert await store._database.rows(text, {}, "") == [{"n": 0}]


def app_of(store):
    """The program behind the endpoint, as each process has it."""
    app = FastAPI()
    add_agent_framework_fastapi_endpoint(
        app, agent_with(), snapshot_store=PgaguiSnapshotStore(store),
        authorization_scope_resolver=lambda: "ada", state_schema={"days": {"type": "number"}},
    )  # fmt: skip
    return app


async def events_of(app, run, text=None, **more):
    given = run_input(run, text=text or "", **more)
    if text is None:
        given["messages"] = []
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        answer = await client.post("/", json=given)
    lines = answer.text.splitlines()
    return [json.loads(line.removeprefix("data:")) for line in lines if line.startswith("data:")]


def last(events, kind):
    return [event for event in events if event["type"] == kind][-1]


@survives("Agent Framework", "state")
async def test_an_endpoint_that_replays_a_snapshot_in_another_process(address):
    async with AsyncStore(address) as store:
        await events_of(app_of(store), "r1", "look", state={"days": 3})
        async with AsyncStore(address) as other:
            events = await events_of(app_of(other), "r2")
        messages = last(events, "MESSAGES_SNAPSHOT")["messages"]
        assert [one["role"] for one in messages] == ["user", "assistant", "tool", "assistant"]
        assert messages[-1]["content"].startswith("seen Rome")
        assert last(events, "STATE_SNAPSHOT")["snapshot"] == {"days": 3}


async def test_the_program_of_the_docs_gives_each_message_once(address):
    program = shown("frameworks.md", "Agent Framework in Python")
    for turn in (1, 2, 3):
        async with AsyncStore(address) as store:
            answer = await program["answer"](store, Scripted(), "private", "hello")
            assert answer.text == f"hello, turn {turn}"
            app = FastAPI()
            program["serve"](app, store, Scripted(), lambda: "ada")
            events = await events_of(app, f"r{turn}", "hello")
            snapshot = last(events, "MESSAGES_SNAPSHOT")
            assert snapshot["messages"][-1]["content"] == f"hello, turn {turn}"


async def test_an_approval_works_in_its_process_alone(address):
    """The framework keeps approvals that wait in memory, so the table says no."""
    async with AsyncStore(address) as store:
        apps = [app_of(store), app_of(store)]
        asked = last(await events_of(apps[0], "r1", "erase"), "RUN_FINISHED")
        [asked] = asked["outcome"]["interrupts"]
        answer = {"interruptId": asked["id"], "status": "resolved", "payload": {"accepted": True}}
        refused = last(await events_of(apps[1], "r2", resume=[answer]), "RUN_ERROR")
        assert refused["code"] == "APPROVAL_RESUME_NOT_FOUND"
        events = await events_of(apps[0], "r3", resume=[answer])
        assert last(events, "MESSAGES_SNAPSHOT")["messages"][-1]["content"].startswith("erased")


async def test_its_stream_is_recorded(address):
    async with AsyncStore(address) as store:
        given = run_input(text="look")
        agent = AgentFrameworkAgent(agent=agent_with())
        streamed = await collect(store.tee(given, agent.run(given)))
        assert streamed[-1].type == "RUN_FINISHED"
        assert [one["role"] for one in await store.messages("trip")] == [
            "user", "assistant", "tool", "assistant"
        ]  # fmt: skip


async def work(address):
    async with AsyncStore(address) as store:
        agent, session = agent_with(PgaguiHistoryProvider(store)), AgentSession(session_id="trip")
        await agent.run("Rome?", session=session)
        given = run_input(text="hang")
        recorded = AgentFrameworkAgent(agent=agent)
        await collect(store.tee(given, recorded.run(given)))


@survives("Agent Framework", "process killed")
async def test_a_killed_process_and_another_that_continues(address):
    code = "from tests.test_agent_framework import *; asyncio.run(work(sys.argv[1]))"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "ignore", "-c", code, address, stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert process.stdout is not None
    assert await process.stdout.readline() == b"hanging\n"
    async with AsyncStore(address) as store:
        # The log has the beginning of the run that is killed, the history the turns before.

        async def is_called():
            try:
                return "TOOL_CALL_START" in [event.type for event in await store.events("trip")]
            except errors.UnknownThread:
                return False

        await until(is_called)
        process.kill()
        await process.wait()
        session = AgentSession(session_id="trip")
        agent = agent_with(PgaguiHistoryProvider(store))
        assert (await agent.run("Oslo?", session=session)).text == "Oslo?, turn 2"
