import asyncio
import os
import random
import subprocess
import sys
from contextlib import AsyncExitStack
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import RunAgentInput
from pydantic_ai import Agent, DeferredToolRequests, UserError
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, InMemoryConversationStore
from pydantic_ai.messages import (
    BinaryContent,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.ui.ag_ui import AGUIAdapter

from pgagui import AsyncStore
from pgagui.pydantic_ai import PgaguiConversationStore

from .conftest import collect, pool_of_asyncpg, run_input
from .survives import survives


def scripted(*answers):
    """A model that says texts, and calls tools, given as (name, arguments)."""
    left = list(answers)

    async def stream(messages, _):
        answer = left.pop(0)
        if isinstance(answer, tuple):
            yield {0: DeltaToolCall(answer[0], answer[1], tool_call_id=f"call-{len(left)}")}
        else:
            for word in answer.split():
                yield word + " "

    return FunctionModel(stream_function=stream)


async def answer(store, agent, run, text, **more):
    """Records a run of an agent behind AGUIAdapter, as a backend does, and returns its events."""
    given = RunAgentInput.model_validate(run_input(run, text=text) | more)
    conversations = PgaguiConversationStore(store)
    adapter = AGUIAdapter(agent, given, conversation_store=conversations)
    return await collect(store.tee(given, adapter.run_stream()))


@survives("Pydantic AI", "messages", "state")
async def test_a_conversation_continues_in_another_process(address):
    async with AsyncStore(address) as store:
        events = await answer(store, Agent(scripted("It is sunny")), "r1", "How is Lisbon?")
        assert [event.type for event in events][-1] == "RUN_FINISHED"
        assert "pydantic_ai_conversation_saved" in "".join(event.json for event in events)
    async with AsyncStore(address) as store:
        seen = []

        async def stream(messages, _):
            seen.extend(messages)
            yield "Yes"

        # The client sends its new message alone.
        await answer(store, Agent(FunctionModel(stream_function=stream)), "r2", "Tomorrow, too?")
        assert [type(message) for message in seen] == [ModelRequest, ModelResponse, ModelRequest]
        assert seen[1].parts[0].content == "It is sunny "
        # What a page shows is in the log, what the agent reads in the conversation.
        shown = [message["content"] for message in await store.messages("trip")]
        assert shown == ["How is Lisbon?", "It is sunny ", "Tomorrow, too?", "Yes"]
        conversation = await PgaguiConversationStore(store).load("trip")
        assert conversation is not None and len(conversation.messages) == 4
        assert conversation.usage.requests == 2
        other = PgaguiConversationStore(store.in_scope("alice"))
        assert await other.load("trip") is None and await other.list_conversations() == []


@survives("Pydantic AI", "interrupts")
async def test_an_approval_is_given_in_another_process(address):
    booked = []

    def asking(*answers):
        agent = Agent(scripted(*answers), output_type=[str, DeferredToolRequests])

        @agent.tool_plain(requires_approval=True)
        def book(city: str) -> str:
            booked.append(city)
            return "booked"

        return agent

    async with AsyncStore(address) as store:
        await answer(store, asking(("book", '{"city": "Lisbon"}')), "r1", "Book Lisbon")
        [question] = await store.interrupts("trip")
        assert not booked
    async with AsyncStore(address) as store:
        conversation = await PgaguiConversationStore(store).load("trip")
        assert conversation is not None and conversation.deferred_tool_requests is not None
        resume = [
            {
                "interruptId": question.interrupt_id,
                "status": "resolved",
                "payload": {"approved": True},
            }
        ]
        await answer(store, asking("It is booked"), "r2", "", messages=[], resume=resume)
        assert booked == ["Lisbon"] and await store.interrupts("trip") == []
        assert (await store.messages("trip"))[-1]["content"] == "It is booked "


KILLED = """
import asyncio, os, sys
sys.path.insert(0, sys.argv[2])
from tests.test_pydantic_ai import Agent, AsyncStore, answer, scripted
from pydantic_ai.models.function import FunctionModel

async def dies(messages, _):
    yield "half"
    await asyncio.sleep(0.3)
    yield " an answer"
    await asyncio.sleep(0.3)
    os._exit(9)

async def main():
    async with AsyncStore(sys.argv[1]) as store:
        await answer(store, Agent(scripted("It is sunny")), "r1", "How is Lisbon?")
        await answer(store, Agent(FunctionModel(stream_function=dies)), "r2", "Porto?")

asyncio.run(main())
"""


@survives("Pydantic AI", "process killed")
async def test_a_killed_process_leaves_the_turns_before_and_what_was_streamed(address, tmp_path):
    program = tmp_path / "killed.py"
    program.write_text(KILLED)
    root = Path(__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": str(root / "src")}
    command = [sys.executable, str(program), address, str(root)]
    done = await asyncio.to_thread(subprocess.run, command, env=environment)
    assert done.returncode == 9
    async with AsyncStore(address) as store:
        conversation = await PgaguiConversationStore(store).load("trip")
        assert conversation is not None and len(conversation.messages) == 2
        shown = [message["content"] for message in await store.messages("trip")]
        assert shown[:3] == ["How is Lisbon?", "It is sunny ", "Porto?"]
        assert shown[3].startswith("half")


@survives("Pydantic AI", "branches")
async def test_a_conversation_is_branched_and_forked(address):
    async with AsyncStore(address) as store:
        conversations, agent = PgaguiConversationStore(store), Agent(TestModel())
        for text in ("one", "two", "three"):
            before = await conversations.load("c") or Conversation(conversation_id="c")
            await conversations.save(await agent.run(text, conversation=before))
        conversation = await conversations.load("c")
        assert conversation is not None
        [*_, last] = await conversations.load_entries("c") or []
        branched = await conversations.branch("c", at=2, expected_revision=conversation.revision)
        await conversations.save(await agent.run("other", conversation=branched))
        found = await PgaguiConversationStore(store).load("c")
        assert found is not None and asked(found.messages) == ["one", "other"]
        forked = await PgaguiConversationStore(store).fork(
            "c", from_entry=last.id, new_conversation_id="fork"
        )
        assert asked(forked.messages) == ["one", "two", "three"]
        await conversations.delete("c")
        # The fork has its own entries, and nothing is left of the other.
        kept = await conversations.load("fork")
        assert kept is not None and asked(kept.messages) == ["one", "two", "three"]
        assert (await conversations.read_entry(last.id)).message == last.message
        await conversations.save(await agent.run("four", conversation=kept))
        assert await conversations.load("c") is None
        await conversations.delete("fork")
        with pytest.raises(LookupError):
            await conversations.read_entry(last.id)


def asked(messages):
    return [
        part.content
        for message in messages
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]


def turn(text: str, n: int) -> list[Any]:
    call = ToolCallPart("look", {"at": text}, tool_call_id=f"c{n}")
    file = BinaryContent(bytes(range(256)), media_type="application/pdf")
    return [
        ModelRequest([UserPromptPart([f"{text} é \0 \ud83d", file])]),
        ModelResponse([TextPart("I look"), call], model_name="m"),
        ModelRequest([ToolReturnPart("look", {"seen": [1, None, 2.5]}, tool_call_id=f"c{n}")]),
    ][: 1 + n % 3]


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_the_store_is_that_of_the_framework_whatever_is_called(address, driver):
    """Makes the same random calls to Pydantic AI's own store in memory."""
    chosen = random.Random(1)
    async with AsyncExitStack() as stack:
        source: Any = address
        if driver == "asyncpg":
            source = await stack.enter_async_context(pool_of_asyncpg(address))
        store = await stack.enter_async_context(AsyncStore(source))
        both: list[Any] = [PgaguiConversationStore(store), InMemoryConversationStore()]
        loaded: dict[str, list[Any]] = {}
        for n in range(200):
            if chosen.random() < 0.1:  # another process
                both[0] = PgaguiConversationStore(store)
            name = f"c{chosen.randrange(3)}"
            what = chosen.choice(
                ["load", "load", "save", "save", "rewrite", "branch", "fork", "delete"]
            )
            at, limit, scope = (
                chosen.randrange(4),
                chosen.choice([None, 2]),
                chosen.choice([None, "a"]),
            )
            said = turn(f"{n}", n)
            new = [said, deepcopy(said)]
            results = []
            for k, conversations in enumerate(both):
                held = loaded.get(name, [Conversation(conversation_id=name) for _ in both])
                try:
                    if what == "load":
                        found = await conversations.load(name, limit=limit, scope=scope)
                        held[k] = found or Conversation(conversation_id=name)
                        loaded[name] = held
                        results.append(found and replace(found, revision=None))
                    elif what == "save":
                        held[k] = replace(held[k], messages=[*held[k].messages, *new[k]])
                        loaded[name] = held
                        results.append(len(await conversations.save(held[k], scope=scope)))
                    elif what == "rewrite":
                        kept = held[k].messages[:at]
                        held[k] = replace(
                            held[k], messages=[*kept, *new[k]], new_message_index=None
                        )
                        loaded[name] = held
                        results.append(len(await conversations.save(held[k])))
                    elif what == "branch":
                        revision = held[k].revision
                        held[k] = await conversations.branch(
                            name, at=at, expected_revision=revision
                        )
                        loaded[name] = held
                        results.append(replace(held[k], revision=None))
                    elif what == "fork":
                        fork = await conversations.fork(name, new_conversation_id=f"c{n % 3}")
                        results.append(replace(fork, revision=None))
                    else:
                        await conversations.delete(name, scope=scope)
                except (ConversationConflict, UserError) as error:
                    results.append(str(error))
            assert not results or results[0] == results[1], (n, what)
            lists = [
                [
                    (record.conversation_id, record.scope, record.forked_from, len(record.branches))
                    for record in await conversations.list_conversations(scope=scope, limit=limit)
                ]
                for conversations in both
            ]
            assert lists[0] == lists[1], (n, what)


async def test_one_of_two_writers_is_refused_and_a_turn_is_few_statements(address):
    async with AsyncStore(address) as store:
        conversations, agent = PgaguiConversationStore(store), Agent(TestModel())
        await conversations.save(
            await agent.run("one", conversation=Conversation(conversation_id="c"))
        )
        sent, rows = [], store._database.rows

        async def counted(text, *values):
            sent.append(text)
            return await rows(text, *values)

        store._database.rows = counted  # type: ignore[method-assign]
        conversation = await conversations.load("c")
        assert conversation is not None
        stale = replace(conversation)
        results = [await agent.run("a", conversation=conversation)]
        await conversations.save(results[0])
        assert len(sent) <= 4, sent
        del store._database.rows
        results.append(await agent.run("b", conversation=stale))
        others = [conversations.save(results[1]), PgaguiConversationStore(store).save(results[1])]
        for refused in await asyncio.gather(*others, return_exceptions=True):
            assert isinstance(refused, ConversationConflict)
        found = await conversations.load("c")
        assert found is not None and asked(found.messages) == ["one", "a"]
        # At the same time: one of them.
        pair = [await agent.run(text, conversation=replace(found)) for text in ("x", "y")]
        done = await asyncio.gather(
            *(PgaguiConversationStore(store).save(each) for each in pair), return_exceptions=True
        )
        assert sorted(isinstance(each, ConversationConflict) for each in done) == [False, True]
