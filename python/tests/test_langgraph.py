import asyncio
import operator
import os
import subprocess
import sys
import uuid
from collections import deque
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, TypedDict

import psycopg
import psycopg_pool
import pytest
from cryptography.fernet import Fernet
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from pgagui import AsyncStore, Error, Store, errors
from pgagui.langgraph import PgaguiSaver

from .conftest import finished, pool_of_asyncpg, run_input, started
from .survives import survives


def at(thread, **more):
    return {"configurable": {"thread_id": thread, **more}}


def verified(address, *threads):
    """Checks that the schema finds no damage."""
    with psycopg.connect(address) as connection:
        for thread in threads:
            found = connection.execute("select problem from agui.verify(%s)", [thread]).fetchall()
            assert found == []


@pytest.mark.parametrize("driver", ["psycopg", "psycopg without asyncio", "asyncpg"])
async def test_the_suite_of_langgraph_for_checkpointers(address, driver):
    @checkpointer_test(name="pgagui")
    async def saver():
        scope = str(uuid.uuid4())  # of each saver: lists without a thread show all threads
        if driver == "psycopg":
            async with AsyncStore(address, scope=scope) as store:
                yield PgaguiSaver(store)
        elif driver == "asyncpg":
            async with pool_of_asyncpg(address) as pool:
                yield PgaguiSaver(AsyncStore(pool, scope=scope))
        else:
            with Store(address, scope=scope) as store:
                yield PgaguiSaver(store)

    report = await validate(saver)
    failures = [failure for result in report.results.values() for failure in result.failures]
    passed = sum(result.tests_passed for result in report.results.values())
    assert (failures, passed, report.conformance_level()) == ([], 81, "FULL")


class Trip(MessagesState):
    days: int


def booking(saver, calls=None):
    """A model that calls a tool, whose node asks a person, in a graph of its own."""

    def model(state):
        n = len(state["messages"])
        if isinstance(state["messages"][-1], ToolMessage):
            return {"messages": [AIMessage(f"answer {n} " + "word " * 60, id=f"a{n}")], "days": n}
        call = {"id": f"c{n}", "name": "book", "args": {"city": "Lisbon " * 20}}
        return {"messages": [AIMessage("", id=f"c{n}", tool_calls=[call])]}

    def ask(state):
        if calls is not None:
            calls.append("ask")
        said = interrupt({"question": "Book it?"})
        n = len(state["messages"])
        return {"messages": [ToolMessage(str(said), id=f"t{n}", tool_call_id=f"c{n - 1}")]}

    tools = StateGraph(Trip).add_node(ask).add_edge(START, "ask").add_edge("ask", END).compile()
    graph = StateGraph(Trip).add_node(model).add_node("tools", tools)
    graph.add_edge(START, "model").add_edge("tools", "model")
    graph.add_conditional_edges(
        "model", lambda state: "tools" if state["messages"][-1].tool_calls else END
    )
    return graph.compile(checkpointer=saver)


def said(values):
    return [message.id for message in values["messages"]]


@survives("LangGraph", "messages", "state", "interrupts")
async def test_a_graph_asks_and_continues_in_another_process(address):
    question = {"messages": [HumanMessage("Lisbon?", id="u0")]}
    async with AsyncStore(address) as store:
        stopped = await booking(PgaguiSaver(store)).ainvoke(question, at("trip"))
        assert [asked.value for asked in stopped["__interrupt__"]] == [{"question": "Book it?"}]
    calls: list[str] = []
    async with AsyncStore(address) as store:
        graph = booking(PgaguiSaver(store), calls)
        state = await graph.aget_state(at("trip"), subgraphs=True)
        assert state.next == ("tools",) and len(state.interrupts) == 1
        assert state.tasks[0].state.next == ("ask",)
        done = await graph.ainvoke(Command(resume="yes"), at("trip"))
        assert said(done) == ["u0", "c1", "t2", "a3"] and done["days"] == 3
        assert done["messages"][2].content == "yes" and calls == ["ask"]
    # The same, without asyncio, as LangGraph's own saver in memory has it.
    with Store(address) as store:
        memory = booking(InMemorySaver())
        memory.invoke(question, at("trip"))
        memory.invoke(Command(resume="yes"), at("trip"))
        states = list(booking(PgaguiSaver(store)).get_state_history(at("trip")))
        wanted = list(memory.get_state_history(at("trip")))
        assert [state.values for state in states] == [state.values for state in wanted]
        assert [state.next for state in states] == [state.next for state in wanted]
        assert [state.metadata for state in states] == [state.metadata for state in wanted]
    verified(address, "trip")


@survives("LangGraph", "branches")
def test_time_travel_and_forks(address):
    pool = psycopg_pool.ConnectionPool(address, min_size=1, open=False)
    with pool, Store(pool) as store:
        graph = booking(PgaguiSaver(store))
        for word in ("Lisbon?", "Porto?"):
            graph.invoke({"messages": [HumanMessage(word, id=word)]}, at("trip"))
            graph.invoke(Command(resume="yes"), at("trip"))
        history = list(graph.get_state_history(at("trip")))
        [before] = [s for s in history if said(s.values or {"messages": []})[-1:] == ["c5"]][:1]
        other = graph.update_state(
            before.config, {"messages": [HumanMessage("No, Faro", id="c5")]}, as_node="__start__"
        )
        forked = graph.invoke(None, other)
        assert said(forked) == ["Lisbon?", "c1", "t2", "a3", "Porto?", "c5", "c6"]
        # The first branch is as it was, though both continued from one version.
        unchanged = graph.get_state(history[0].config)
        assert said(unchanged.values) == ["Lisbon?", "c1", "t2", "a3", "Porto?", "c5", "t6", "a7"]
        assert unchanged.values["messages"][5].tool_calls
        again = graph.invoke(Command(resume="no"), other | at("trip"))
        assert again["messages"][7].content == "no"
        assert list(graph.get_state_history(at("trip"), limit=3, before=history[0].config))
        with psycopg.connect(address) as connection:
            # Both branches, all versions and what tasks wrote: no channel has a message twice.
            twice = connection.execute(
                "select from agui.channel_part group by channel_no, body::text having count(*) > 1"
            )
            assert twice.fetchall() == []
    verified(address, "trip")


KILLED = """
import os, sys
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from pgagui import Store
from pgagui.langgraph import PgaguiSaver

def graph(saver, kill):
    def first(state):
        return {"messages": [AIMessage("done once", id="first")]}
    def second(state):
        if kill:
            os._exit(9)
        return {"messages": [AIMessage("done", id="second")]}
    built = StateGraph(MessagesState).add_node(first).add_node(second)
    built.add_edge(START, "first").add_edge("first", "second")
    return built.compile(checkpointer=saver)

if __name__ == "__main__":
    with Store(sys.argv[1]) as store:
        graph(PgaguiSaver(store), True).invoke(
            {"messages": [HumanMessage("go", id="u")]}, {"configurable": {"thread_id": "t"}},
            durability="sync")
"""


@survives("LangGraph", "process killed")
def test_a_killed_process_is_continued_behind_the_last_node(address, tmp_path):
    program = tmp_path / "killed.py"
    program.write_text(KILLED)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1] / "src")}
    done = subprocess.run([sys.executable, program, address], env=environment)
    assert done.returncode == 9
    names: dict[str, Any] = {}
    exec(KILLED.partition("if __name__")[0], names)
    with Store(address) as store:
        values = names["graph"](PgaguiSaver(store), False).invoke(None, at("t"))
        assert said(values) == ["u", "first", "second"]


async def test_both_kinds_of_calls_see_the_same(address, pooled):
    pool = psycopg_pool.AsyncConnectionPool(
        pooled, kwargs={"prepare_threshold": None}, min_size=1, open=False
    )
    async with pool, AsyncStore(pool) as store:
        with Store(address) as other:
            graph, without = booking(PgaguiSaver(store)), booking(PgaguiSaver(other))
            await graph.ainvoke({"messages": [HumanMessage("Rome?", id="u")]}, at("t"))
            state = await graph.aget_state(at("t"))
            assert without.get_state(at("t")) == state
            assert await without.aget_state(at("t")) == state  # in a thread
            assert await asyncio.to_thread(graph.get_state, at("t")) == state  # on the loop
            async for _ in graph.astream(Command(resume="yes"), at("t")):
                pass
            assert said(without.get_state(at("t")).values)[-1] == "a3"
            with pytest.raises(Error, match="ainvoke"):
                graph.get_state(at("t"))


def test_a_connection_is_the_transaction_of_the_caller(address):
    with psycopg.connect(address) as connection:
        saver = PgaguiSaver(Store(connection))
        items = ["x" * 300, "y" * 300]
        first = grown(saver, "t", items, 1.5)
        saver.delete_thread("t")
        grown(saver, "t", [*items, "z" * 300], 2.5, first)
        assert listed(saver, at("t"))[-1] == "z" * 300
        connection.rollback()
        assert saver.get_tuple(at("t")) is None


class Cipher:
    def __init__(self):
        self.fernet = Fernet(Fernet.generate_key())

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "fernet", self.fernet.encrypt(bytes(plaintext))

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        assert ciphername == "fernet"
        return self.fernet.decrypt(ciphertext)


VALUES = [
    None, [], [None], b"\0\xff", bytearray(b"x" * 300), "a\0b \U0001f600 \ud800"[:-1], 2**60,
    {1: "one", (1, 2): {3}}, [b"x" * 300, b"y" * 300], [0.5] * 1000, ["x" * 500, 1, {"a": [2]}],
    [["y" * 400], ["y" * 400]], deque(["z" * 300]), datetime(2026, 1, 1, tzinfo=timezone.utc),
    ["x" * 500, None], ['["msgpack:eA=="]' * 30], [HumanMessage("x" * 300, id="é")] * 3,
]  # fmt: skip


@pytest.mark.parametrize("encrypted", [False, True])
def test_values_of_all_kinds_come_back(address, encrypted):
    serde = EncryptedSerializer(Cipher()) if encrypted else None
    with Store(address) as store:
        saver = PgaguiSaver(store, serde=serde)
        for n, value in enumerate(VALUES):
            checkpoint = empty_checkpoint() | {"v": 4}
            checkpoint["channel_values"] = {"value": value}
            checkpoint["channel_versions"] = {"value": 1}
            place = at(f"t{n}")
            stored = saver.put(place, checkpoint, {"step": n}, {"value": 1})
            saver.put_writes(stored, [("value", value), ("other", value)], "task")
            found = saver.get_tuple(place)
            assert found is not None
            assert found.checkpoint == checkpoint
            assert type(found.checkpoint["channel_values"]["value"]) is type(value)
            assert found.pending_writes == [("task", "value", value), ("task", "other", value)]
        assert [found.metadata["step"] for found in saver.list(None, filter={"step": 3})] == [3]
        assert len(list(saver.list(None))) == len(VALUES)


def metadata(step: int) -> Any:
    return {"step": step, "even": step % 2 == 0}


def grown(saver, thread, items, version, parent=None):
    checkpoint = empty_checkpoint() | {"v": 4}
    checkpoint["channel_values"], checkpoint["channel_versions"] = {"l": items}, {"l": version}
    config = parent or at(thread)
    return saver.put(config, checkpoint, metadata(0), {"l": version})


def listed(saver, config):
    found = saver.get_tuple(config)
    assert found is not None
    return found.checkpoint["channel_values"]["l"]


def test_a_list_that_grows_brings_its_new_elements_alone(address):
    items = [f"{n} " + "x" * 300 for n in range(40)]
    with Store(address) as store:
        saver, sent = PgaguiSaver(store), list[int]()
        rows = store._database.rows

        def counted(text, values, *rest):
            sent.append(len(values.get("values") or ""))
            return rows(text, values, *rest)

        store._database.rows = counted  # type: ignore[method-assign]
        first = grown(saver, "t", items[:30], 1.5)
        second = grown(saver, "t", items, 2.25, first)
        changed = [*items[:20], "other " * 100, *items[21:]]
        third = grown(saver, "t", changed, 3.75, second)
        shorter = grown(saver, "t", items[:3], 4.5, second)
        assert sent[0] > 12_000 > 4_500 > sent[1] and sent[2] > 12_000
        wanted = [(first, items[:30]), (second, items), (third, changed), (shorter, items[:3])]
        for config, value in wanted:
            assert listed(saver, config) == value
        # Another saver has read the list, and continues from it.
        other = PgaguiSaver(store)
        assert listed(other, second) == items
        sent.clear()
        fourth = grown(other, "t", [*items, "y" * 300], 5.5, second)
        assert sent[0] < 600
        assert listed(other, fourth) == [*items, "y" * 300]
        # What it would append to was removed meanwhile.
        other.delete_thread("t")
        last = grown(other, "t", items, 6.5)
        assert listed(saver, last) == items
        # A version that is there already stays, and nothing is appended to it.
        grown(saver, "u", items[:5], 1)
        again = grown(saver, "u", items[5:10], 1)
        more = grown(saver, "u", items[5:11], 2, again)
        assert listed(saver, again) == items[:5]
        assert listed(saver, more) == items[5:11]
    verified(address, "t", "u")


def test_lists_have_pages(address):
    with Store(address) as store:
        saver, config = PgaguiSaver(store), at("t")
        for step in range(120):
            checkpoint = empty_checkpoint() | {"id": f"{step:04}"}
            config = saver.put(config, checkpoint, metadata(step), {})
        assert [found.metadata["step"] for found in saver.list(at("t"))] == list(range(119, -1, -1))
        assert len(list(saver.list(at("t"), limit=75, filter={"even": True}))) == 60
        page = saver.list(at("t"), limit=51, before=at("t", checkpoint_id="0100"))
        assert [found.metadata["step"] for found in page] == list(range(99, 48, -1))
        assert list(saver.list(at("t"), limit=0)) == [] == list(saver.list(at("other")))


@contextmanager
def growing(address):
    """A graph whose list is stored as what was added."""
    channels = pytest.importorskip("langgraph.channels.delta")

    def added(before, new):
        return [*before, *(item for items in new for item in items)]

    class Log(TypedDict):
        items: Annotated[list[str], channels.DeltaChannel(added, snapshot_frequency=1000)]
        n: Annotated[int, operator.add]

    def work(state):
        return {"items": [f"item {state['n']} " + "x" * 300], "n": 1}

    with Store(address) as store:
        saver = PgaguiSaver(store)
        graph = StateGraph(Log).add_node(work).add_edge(START, "work").compile(checkpointer=saver)
        yield saver, graph


def test_delta_channels_survive_a_copy_and_pruning(address):
    with growing(address) as (saver, graph):
        for _ in range(5):
            values = graph.invoke({"items": ["asked"], "n": 0}, at("t"))
        assert len(values["items"]) == 10
        saver.copy_thread("t", "copy")
        assert graph.get_state(at("copy")).values == values
        saver.prune(["t"])
        assert graph.get_state(at("t")).values == values
        assert len(graph.invoke({"items": ["asked"], "n": 0}, at("t"))["items"]) == 12
        with pytest.raises(errors.ConflictingRepeat):
            saver.copy_thread("t", "copy")
        with pytest.raises(errors.InvalidArgument, match="strategy"):
            saver.prune(["t"], strategy="some")
        verified(address, "t", "copy")
        saver.prune(["copy"], strategy="delete")
        assert graph.get_state(at("copy")).values == {}


async def test_pruning_and_the_removal_of_runs_leave_what_others_need(address):
    async with AsyncStore(address) as store:
        saver = PgaguiSaver(store)
        graph = booking(saver)
        for n in range(3):
            config = at("t", run_id=f"run-{n}")
            await graph.ainvoke({"messages": [HumanMessage("x" * 300, id=f"u{n}")]}, config)
            done = await graph.ainvoke(Command(resume="yes"), config)
        await saver.adelete_for_runs(["run-1", "unknown"])
        runs = {found.metadata["run_id"] async for found in saver.alist(at("t"))}
        assert runs == {"run-0", "run-2"}
        await saver.aprune(["t", "unknown"])
        assert (await graph.aget_state(at("t"))).values == done
        assert [found async for found in saver.alist(at("t", checkpoint_ns=""))][1:] == []
        more = await graph.ainvoke({"messages": [HumanMessage("more", id="u3")]}, at("t"))
        assert said(more) == [*said(done), "u3", "c13"]
    verified(address, "t")


async def test_a_branch_of_the_conversation_finds_its_state(store):
    saver = PgaguiSaver(store)
    graph = booking(saver)

    async def turn(run, parent, text):
        given = run_input(run, "t", text)
        events = [started(run, "t"), finished(run, "t")]
        await store.append("t", run, events, input=given, parent=parent)
        place = await saver.acheckpoint_at("t", parent) if parent else None
        config = at("t", **(place or at("t"))["configurable"] | {"run_id": run})
        asked = await graph.ainvoke({"messages": [HumanMessage(text, id=text)]}, config)
        assert asked["__interrupt__"]
        return said(asked)

    assert await saver.acheckpoint_at("t", "r1") is None
    assert await turn("r1", "", "Lisbon") == ["Lisbon", "c1"]
    assert await turn("r2", "r1", "Porto") == ["Lisbon", "c1", "Porto", "c3"]
    assert await turn("r3", "r1", "Faro") == ["Lisbon", "c1", "Faro", "c3"]
    assert await saver.acheckpoint_at("t", "unknown") is None
    assert await asyncio.to_thread(saver.checkpoint_at, "t", "r2") is not None


def test_versions_continue_those_of_langgraphs_own_saver():
    saver = PgaguiSaver(Store("postgresql://nowhere"))
    first = saver.get_next_version(None, None)
    assert 1 <= first < 2 <= saver.get_next_version(first, None) < 3
    text = f"{7:032}.{0.25:016}"
    assert text < saver.get_next_version(text, None) < f"{9:032}"


def test_a_config_without_a_thread_is_refused():
    saver = PgaguiSaver(Store("postgresql://nowhere"))
    for call in (
        lambda: saver.get_tuple({"configurable": {}}),
        lambda: saver.put({}, empty_checkpoint(), {}, {}),
        lambda: saver.put_writes(at("t"), [("a", 1)], "task"),
    ):
        with pytest.raises(errors.InvalidArgument, match="configurable"):
            call()
