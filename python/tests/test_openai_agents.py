import asyncio
import json
import os
import random
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import (
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    Session,
    SessionSettings,
    SQLiteSession,
    Usage,
    function_tool,
)
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from pgagui import AsyncStore, errors
from pgagui.openai_agents import PgaguiSession

from .conftest import pool_of_asyncpg
from .survives import survives

agents.set_tracing_disabled(True)
QUIET = RunConfig(tracing_disabled=True)


def said(text, n=0):
    part = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(
        id=f"m{n}", content=[part], role="assistant", status="completed", type="message"
    )


def called(name, call, **arguments):
    return ResponseFunctionToolCall(
        name=name, call_id=call, arguments=json.dumps(arguments), type="function_call"
    )


class Scripted(Model):
    """A model that answers what it is told to, and notes what it was given."""

    def __init__(self, *answers):
        self.answers, self.given = list(answers), []

    async def get_response(self, system_instructions, input, *_, **__):
        self.given.append(input)
        return ModelResponse([self.answers.pop(0)], Usage(), None)

    async def stream_response(self, *_, **__):
        raise NotImplementedError
        yield


def message(n: object, **more: Any) -> Any:
    return {"role": "user", "content": f"message {n}"} | more


def texts(items):
    return [item["content"] for item in items]


class Counted:
    """Counts the statements of a store."""

    def __init__(self, store):
        self.sent, self.rows = [], store._database.rows
        store._database.rows = self

    async def __call__(self, text: str, *values: Any) -> Any:
        self.sent.append(text)
        return await self.rows(text, *values)


@survives("OpenAI Agents SDK", "messages")
async def test_a_conversation_is_remembered_in_another_process(address):
    @function_tool
    def book(city: str) -> str:
        return f"booked {city}"

    async with AsyncStore(address) as store:
        session = PgaguiSession("trip", store)
        assert isinstance(session, Session)
        model = Scripted(called("book", "c1", city="Lisbon"), said("Done", 1), said("Yes", 2))
        agent = Agent("helper", model=model, tools=[book])
        counted = Counted(store)
        first = await Runner.run(agent, "Book Lisbon", session=session, run_config=QUIET)
        assert first.final_output == "Done" and len(counted.sent) <= 4, counted.sent
        counted.sent.clear()
        await Runner.run(agent, "Is it done?", session=session, run_config=QUIET)
        assert len(counted.sent) <= 3, counted.sent
    async with AsyncStore(address) as store:
        model = Scripted(said("Lisbon", 3))
        session = PgaguiSession("trip", store)
        await Runner.run(Agent("a", model=model), "Where?", session=session, run_config=QUIET)
        [given] = model.given
        kinds = [item.get("type") or item["role"] for item in given]
        assert kinds == [
            "user", "function_call", "function_call_output", "message", "user", "message", "user",
        ]  # fmt: skip
        assert given[2]["output"] == "booked Lisbon"
        # As the framework's own store has it.
        other = SQLiteSession("trip")
        await other.add_items(await session.get_items())
        assert await other.get_items() == await session.get_items()
        assert await PgaguiSession("other", store).get_items() == []
        # It is beside the log of the same thread, in the scope of the store.
        assert await PgaguiSession("trip", store.in_scope("alice")).get_items() == []


@survives("OpenAI Agents SDK", "state", "interrupts")
async def test_a_run_that_waits_for_an_approval_continues_in_another_process(address):
    paid = []

    @function_tool(needs_approval=True)
    def pay(amount: int) -> str:
        paid.append(amount)
        return f"paid {amount}"

    def agent(*answers):
        return Agent("payer", model=Scripted(*answers), tools=[pay])

    async with AsyncStore(address) as store:
        session = PgaguiSession("shop", store)
        assert await session.load_run_state(agent()) is None
        asks = agent(called("pay", "c1", amount=5))
        stopped = await Runner.run(
            asks, "Pay 5", session=session, run_config=QUIET, context={"user": "alice"}
        )
        assert len(stopped.interruptions) == 1 and not paid
        await session.save_run_state(stopped.to_state())
    async with AsyncStore(address) as store:
        session, continues = PgaguiSession("shop", store), agent(said("It is paid"))
        state = await session.load_run_state(continues)
        assert state is not None and state._context is not None
        assert state._context.context == {"user": "alice"}
        [question] = state.get_interruptions()
        state.approve(question)
        done = await Runner.run(continues, state, session=session, run_config=QUIET)
        assert done.final_output == "It is paid" and paid == [5]
        await session.save_run_state(None)
        assert await session.load_run_state(continues) is None
        kinds = [item.get("type") or item.get("role") for item in await session.get_items()]
        assert kinds == ["user", "function_call", "function_call_output", "message"]


KILLED = """
import asyncio, os, sys
sys.path.insert(0, sys.argv[2])
from tests.test_openai_agents import QUIET, Agent, PgaguiSession, Runner, Scripted, called, said
from tests.test_openai_agents import function_tool
from pgagui import AsyncStore

@function_tool
def fine() -> str:
    return "fine"

@function_tool
def die() -> str:
    os._exit(9)

async def main():
    async with AsyncStore(sys.argv[1]) as store:
        agent = Agent("a", model=Scripted(called("fine", "c1"), called("die", "c2")),
                      tools=[fine, die])
        await Runner.run(agent, "Go", session=PgaguiSession("t", store), run_config=QUIET)

asyncio.run(main())
"""


@survives("OpenAI Agents SDK", "process killed")
async def test_a_killed_process_leaves_what_it_had_saved(address, tmp_path):
    program = tmp_path / "killed.py"
    program.write_text(KILLED)
    root = Path(__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": str(root / "src")}
    command = [sys.executable, str(program), address, str(root)]
    done = await asyncio.to_thread(subprocess.run, command, env=environment)
    assert done.returncode == 9
    async with AsyncStore(address) as store:
        kinds = [item.get("type") for item in await PgaguiSession("t", store).get_items()]
        assert kinds == [None, "function_call", "function_call_output"]


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_a_session_is_that_of_the_framework_whatever_is_called(address, driver):
    chosen = random.Random(1)
    async with AsyncExitStack() as stack:
        source: Any = address
        if driver == "asyncpg":
            source = await stack.enter_async_context(pool_of_asyncpg(address))
        store = await stack.enter_async_context(AsyncStore(source))
        ours, theirs = PgaguiSession("t", store), SQLiteSession("t")
        for n in range(150):
            if chosen.random() < 0.1:
                ours = PgaguiSession("t", store)
            what = chosen.choice(["add", "add", "add", "pop", "get", "limit", "clear"])
            if what == "add":
                items = [message(f"{n} {k}") for k in range(chosen.randrange(4))]
                await ours.add_items(items)
                await theirs.add_items(items)
            elif what == "pop":
                assert await ours.pop_item() == await theirs.pop_item()
            elif what == "clear" and chosen.random() < 0.3:
                await ours.clear_session()
                await theirs.clear_session()
            limit = chosen.choice([0, 1, 3, 100]) if what == "limit" else None
            assert await ours.get_items(limit) == await theirs.get_items(limit), (n, what, limit)
        await ours.add_items([message(n) for n in range(9)])
        short = PgaguiSession("t", store, session_settings=SessionSettings(limit=2))
        assert texts(await short.get_items()) == ["message 7", "message 8"]
        assert texts(await short.get_items(limit=1)) == ["message 8"]


async def test_unusual_items_come_back(address):
    items: list[Any] = [
        message("é \U0001f600 \ud800 \0 \\ \" '"), message("x" * 100_000),
        message(1, content=[{"type": "input_text", "text": "a"}]),
        message(2, number=2**70, deep={"a": [None, 1.5e-9]}),
    ]  # fmt: skip
    async with AsyncStore(address) as store:
        session = PgaguiSession("t", store)
        await session.add_items(items)
        assert await PgaguiSession("t", store).get_items() == items
        assert [await session.pop_item() for _ in range(5)] == [*items[::-1], None]
        assert await session.get_items() == []
        with pytest.raises(errors.InvalidEvents):
            await PgaguiSession("", store).add_items(items)


async def test_processes_that_add_at_the_same_time_lose_nothing(address):
    async with AsyncStore(address) as store, AsyncStore(address) as other:

        async def add(writer, own):
            session = PgaguiSession("t", own)
            for n in range(10):
                await session.add_items([message(f"{writer} {n} {k}") for k in range(2)])

        await asyncio.gather(*(add(n, (store, other)[n % 2]) for n in range(6)))
        got = texts(await PgaguiSession("t", store).get_items())
        assert len(got) == len(set(got)) == 120
        for writer in range(6):
            own = [text for text in got if text.startswith(f"message {writer} ")]
            assert own == [f"message {writer} {n} {k}" for n in range(10) for k in range(2)]
        # One that clears does not hide what comes later.
        session = PgaguiSession("t", store)
        await session.get_items()
        await PgaguiSession("t", other).clear_session()
        await session.add_items([message("later")])
        assert texts(await session.get_items()) == ["message later"]
