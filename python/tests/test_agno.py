"""Agno, recorded as docs/frameworks.md shows it: the log is the agent's memory."""

import asyncio
import os
import sys

import pytest
from agno.agent import Agent
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.run.base import RunContext
from agno.tools import tool

from pgagui import AsyncStore

from .conftest import collect, run_input, shown, until
from .survives import survives

pytestmark = pytest.mark.filterwarnings("ignore")  # of agno

answer = shown("frameworks.md", "Agno in Python")["answer"]


class Scripted(Model):
    """Calls the tool that the user names, and says what it has seen."""

    async def ainvoke_stream(self, messages, **kwargs):
        last, users = messages[-1], [one for one in messages if one.role == "user"]
        if last.content in ("look", "pick", "hang"):
            function = {"name": last.content, "arguments": '{"at": "Rome"}'}
            call = {"id": f"c{len(messages)}", "type": "function", "function": function}
            yield ModelResponse(role="assistant", tool_calls=[call])
        else:
            for piece in f"{last.content}, turn {len(users)}".partition(" "):
                yield ModelResponse(role="assistant", content=piece)

    def invoke(self, *args, **kwargs):
        raise NotImplementedError

    ainvoke = invoke_stream = _parse_provider_response = invoke

    def _parse_provider_response_delta(self, response):
        return response


@tool
def look(at: str, run_context: RunContext) -> str:
    """Looks."""
    state = run_context.session_state
    assert state is not None
    state["looks"] = state.get("looks", 0) + 1
    return f"seen {at}"


@tool(external_execution=True)
def pick(at: str) -> str:
    """Picks, on the page."""
    return ""


@tool
async def hang(at: str) -> str:
    """Never ends."""
    print("hanging", flush=True)
    await asyncio.sleep(1e9)
    return ""


async def turn(store, run, text, *, parent=None, **more):
    """What a page does that was reloaded: its messages and its state are those of the store."""
    messages, state = [], {}
    if parent is not None:
        messages, state = await store.messages("trip", parent), await store.state("trip", parent)
    given = run_input(run, text=text, state=state, **more)
    given["messages"] = messages + given["messages"]
    if parent is not None:
        given["parentRunId"] = parent
    agent = Agent(model=Scripted(id="scripted"), tools=[look, pick, hang], telemetry=False)
    events = await collect(await answer(store, agent, given))
    assert events[-1].type == "RUN_FINISHED", events[-1]
    return (await store.messages("trip", run))[-1].get("content")


@survives("Agno", "messages", "state", "branches")
async def test_a_conversation_over_several_processes(address):
    async with AsyncStore(address) as store:
        assert await turn(store, "r1", "look") == "seen Rome, turn 1"
    async with AsyncStore(address) as store:
        assert await turn(store, "r2", "look", parent="r1") == "seen Rome, turn 2"
        roles = [message["role"] for message in await store.messages("trip")]
        assert roles == ["user", "assistant", "tool", "assistant"] * 2
        assert (await store.state("trip"))["looks"] == 2
        # Another continuation of the first turn.
        assert await turn(store, "r3", "Oslo?", parent="r1") == "Oslo?, turn 2"
        assert (await store.state("trip"))["looks"] == 1
        assert await turn(store, "r4", "Bergen?", parent="r2") == "Bergen?, turn 3"


@survives("Agno", "interrupts")
async def test_a_tool_that_the_page_executes(address):
    async with AsyncStore(address) as store:
        await turn(store, "r1", "pick")
        *_, asked = await store.messages("trip")
    async with AsyncStore(address) as store:
        result = {"id": "t1", "role": "tool", "toolCallId": asked["toolCalls"][0]["id"]}
        said = await turn(store, "r2", "", parent="r1", messages=[result | {"content": "Oslo"}])
        assert said == "Oslo, turn 1"


async def work(address):
    async with AsyncStore(address) as store:
        await turn(store, "r1", "Rome?")
        await turn(store, "r2", "hang", parent="r1")


@survives("Agno", "process killed")
async def test_a_killed_process_and_another_that_continues(address):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "ignore", "-c",
        "from tests.test_agno import *; asyncio.run(work(sys.argv[1]))", address,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert process.stdout is not None
    assert await process.stdout.readline() == b"hanging\n"
    async with AsyncStore(address) as store:

        async def is_called():
            events = await store.events("trip")
            return ("r2", "TOOL_CALL_START") in [(event.run_id, event.type) for event in events]

        await until(is_called)
        process.kill()
        await process.wait()
        # What a worker does when the lease ends.
        await store.abandon("trip", "r2", "its process was killed")
        assert await turn(store, "r3", "Oslo?", parent="r2") == "Oslo?, turn 3"
        tools = [one["content"] for one in await store.messages("trip") if one["role"] == "tool"]
        assert tools == []
