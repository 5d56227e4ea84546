#!/usr/bin/env bash
# ag-ui-langgraph 0.0.47 (PyPI), with langgraph 1.2.24
#
# Behaviour: during a run, STATE_SNAPSHOT holds the values as the last node returned them, not as the graph has them. A channel that adds
# up shows the last part only (the new message, without the history, as the node wrote it) until the snapshot at the end of the run.
#
# Why it matters: one would guess that a snapshot is the state at that point, as the protocol has it. In a page, lists shrink and
# grow again while the agent works; a run that is cut leaves a store with a part of the state, and what reads it later is wrong.
#
# Output:
#   snapshot: messages 1 notes ['first'] title A
#   snapshot: messages 1 notes ['second'] title A
#   snapshot: messages 3 notes ['first', 'second'] title A
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check \
  ag-ui-langgraph==0.0.47 ag-ui-protocol==0.1.22 langgraph==1.2.24 langchain-core==1.8.3 fastapi==0.141.1
cat > "$dir/run.py" <<'END'
import asyncio
import operator
from typing import Annotated

from ag_ui.core import RunAgentInput
from ag_ui_langgraph import LangGraphAgent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph


class State(MessagesState):
    notes: Annotated[list, operator.add]
    title: str


async def first(state):
    return {"messages": [("ai", "One.")], "notes": ["first"], "title": "A"}


async def second(state):
    return {"messages": [("ai", "Two.")], "notes": ["second"]}


async def run():
    graph = StateGraph(State).add_node("first", first).add_node("second", second)
    graph = graph.add_edge(START, "first").add_edge("first", "second").add_edge("second", END)
    agent = LangGraphAgent(name="scripted", graph=graph.compile(checkpointer=InMemorySaver()), emit_raw_events=False)
    given = RunAgentInput(thread_id="t", run_id="r", state={}, messages=[{"id": "u", "role": "user", "content": "Count."}],
                          tools=[], context=[], forwarded_props={})
    return [event.snapshot async for event in agent.run(given) if event.type == "STATE_SNAPSHOT"]


seen = []
for snapshot in asyncio.run(run()):
    seen.append((len(snapshot["messages"]), snapshot.get("notes"), snapshot.get("title")))
    print("snapshot: messages", seen[-1][0], "notes", seen[-1][1], "title", seen[-1][2])
assert seen == [(1, ["first"], "A"), (1, ["second"], "A"), (3, ["first", "second"], "A")]
END
LANGSMITH_TRACING=false "$dir/venv/bin/python" "$dir/run.py"
