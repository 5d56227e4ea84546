#!/usr/bin/env bash
# ag-ui-langgraph 0.0.47 (PyPI), with langgraph 1.2.24
#
# Behaviour: the value of the event CUSTOM `on_interrupt` is JSON text in a string if the graph asks with an object, and the string as
# it is if the graph asks with a string. With default settings RUN_FINISHED has no outcome.
#
# Why it matters: one would guess the object itself, as LangGraph has it, or JSON text always. Parsing once is right for some and fails
# for others; 'true' and true look alike. And a store that looks at RUN_FINISHED takes the run for done while it waits for an answer.
#
# Output:
#   interrupt({'message': 'Erase it?'}) on_interrupt '{"message": "Erase it?"}' outcome None
#   interrupt('Erase it?') on_interrupt 'Erase it?' outcome None
#   interrupt(True) on_interrupt 'true' outcome None
#   interrupt('true') on_interrupt 'true' outcome None
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check \
  ag-ui-langgraph==0.0.47 ag-ui-protocol==0.1.22 langgraph==1.2.24 langchain-core==1.8.3 fastapi==0.141.1
cat > "$dir/run.py" <<'END'
import asyncio

from ag_ui.core import RunAgentInput
from ag_ui_langgraph import LangGraphAgent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt


async def run(question):
    async def ask(state):
        return {"messages": [("ai", f"The answer is {interrupt(question)}.")]}

    graph = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask").add_edge("ask", END)
    agent = LangGraphAgent(name="scripted", graph=graph.compile(checkpointer=InMemorySaver()), emit_raw_events=False)
    given = RunAgentInput(thread_id="t", run_id="r", state={}, messages=[{"id": "u", "role": "user", "content": "Erase it."}],
                          tools=[], context=[], forwarded_props={})
    events = [event async for event in agent.run(given)]
    (asked,) = [event.value for event in events if event.type == "CUSTOM" and event.name == "on_interrupt"]
    assert events[-1].type == "RUN_FINISHED"
    print(f"interrupt({question!r}) on_interrupt {asked!r} outcome {events[-1].outcome}")
    assert events[-1].outcome is None
    return asked


assert asyncio.run(run({"message": "Erase it?"})) == '{"message": "Erase it?"}'
assert asyncio.run(run("Erase it?")) == "Erase it?"
assert asyncio.run(run(True)) == asyncio.run(run("true")) == "true"
END
LANGSMITH_TRACING=false "$dir/venv/bin/python" "$dir/run.py"
