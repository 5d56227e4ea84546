"""The programs of docs/guides/moving-in.md."""

import os
import subprocess
import sys
from typing import Annotated, Any, TypedDict

import sqlalchemy
from agents.extensions.memory import SQLAlchemySession
from langchain_core.messages import HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from psycopg import conninfo
from sqlalchemy.ext.asyncio import create_async_engine

from pgagui import AsyncStore, Store
from pgagui.langgraph import PgaguiSaver
from pgagui.openai_agents import PgaguiSession

from .conftest import ROOT, finished, program, started
from .test_langgraph import at, booking, said, verified

PAGE = "guides/moving-in.md"


def moved(address, heading, **environment):
    """Runs a program of the page in a process of its own."""
    path = os.pathsep.join([str(ROOT / "python/src"), *sys.path])
    environment |= {"DATABASE_URL": address, "PYTHONPATH": path}
    subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", program(PAGE, heading)],
        env=os.environ | environment,
        check=True,
    )


def joined(before, new):
    return [*before, *(item for items in new for item in items)]


class Log(TypedDict):
    """Its list is in the database as what was added."""

    items: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=1000)]


def gathering(saver):
    """Nodes that work side by side."""
    graph = StateGraph(Log)
    for name in ("z", "a", "m"):
        graph.add_node(name, lambda state, name=name: {"items": [f"{name}{len(state['items'])}"]})
        graph.add_edge(START, name)
    return graph.compile(checkpointer=saver)


def test_graphs_continue_from_moved_checkpoints(address):
    with PostgresSaver.from_conn_string(address) as old, Store(address) as store:
        old.setup()
        graph, new = booking(old), PgaguiSaver(store)
        for thread in ("asks", "branches"):
            config = at(thread, run_id="run-1")
            graph.invoke({"messages": [HumanMessage("Lisbon?", id="u0")]}, config)
            store.append(thread, "run-1", [started(thread=thread), finished(thread=thread)])
        asked = graph.get_state(at("branches")).config
        for answer in ("yes", "no"):
            graph.invoke(Command(resume=answer), asked)
        for _ in range(3):
            gathered = gathering(old).invoke({"items": ["asked"]}, at("gathers"))
        for _ in range(2):  # it may be repeated
            moved(address, "LangGraph's checkpointer", LANGGRAPH_DATABASE_URL=address)
            for thread in ("asks", "branches", "gathers"):
                assert list(new.list(at(thread))) == list(old.list(at(thread))) != []
        verified(address, "asks", "branches", "gathers")
        assert new.checkpoint_at("asks", "run-1") == graph.get_state(at("asks")).config
        assert gathering(new).get_state(at("gathers")).values == gathered

        for config in (at("asks"), asked):
            states = []
            for saver in (new, old):
                graph = booking(saver)
                stopped = graph.get_state(config, subgraphs=True)
                assert [each.value for each in stopped.interrupts] == [{"question": "Book it?"}]
                states.append(said(graph.invoke(Command(resume="moved"), config)))
            assert states[0] == states[1] == ["u0", "c1", "t2", "a3"]


async def test_agents_continue_from_moved_sessions(address):
    query = {name: str(value) for name, value in conninfo.conninfo_to_dict(address).items()}
    url = sqlalchemy.URL.create("postgresql+psycopg", query=query)
    engine = create_async_engine(url)
    said: dict[str, list[Any]] = {}
    for session in ("trip", "ä/'s", "empty"):
        old = SQLAlchemySession(session, engine=engine, create_tables=True)
        for turn in range(0 if session == "empty" else 3):
            asked: Any = {"role": "user", "content": f"{session} {turn} \\ \0 😀"}
            await old.add_items([asked])
            place = {"type": "function_call", "call_id": f"c{turn}"}
            call: Any = place | {"name": "look", "arguments": '{"at": "it"}'}
            result: Any = place | {"type": "function_call_output", "output": "42"}
            await old.add_items([call, result])
        said[session] = await old.get_items()
    await engine.dispose()
    async with AsyncStore(address) as store:
        more: Any = {"role": "user", "content": "More"}
        for _ in range(2):  # it may be repeated, and leaves what continued
            moved(
                address,
                "Sessions of the OpenAI Agents SDK",
                AGENTS_DATABASE_URL=url.render_as_string(hide_password=False),
            )
            for session, items in said.items():
                assert await PgaguiSession(session, store).get_items() == items
            await PgaguiSession("trip", store).add_items([more])
            said["trip"].append(more)
    assert len(said["trip"]) == 11
