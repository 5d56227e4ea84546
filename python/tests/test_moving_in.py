"""The programs of docs/guides/moving-in.md."""

import os
import subprocess
import sys
from typing import Annotated, TypedDict

from langchain_core.messages import HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from pgagui import Store
from pgagui.langgraph import PgaguiSaver

from .conftest import ROOT, finished, program, started
from .test_langgraph import at, booking, said, verified


def moved(address, folder):
    """Runs the program in a process of its own."""
    text = program("guides/moving-in.md", "LangGraph's checkpointer")
    (folder / "move_langgraph.py").write_text(text)
    path = os.pathsep.join([str(ROOT / "python/src"), *sys.path])
    environment = {
        "LANGGRAPH_DATABASE_URL": address, "DATABASE_URL": address, "PYTHONPATH": path,
    }  # fmt: skip
    subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", folder / "move_langgraph.py"],
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


def test_graphs_continue_from_moved_checkpoints(address, tmp_path):
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
            moved(address, tmp_path)
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
