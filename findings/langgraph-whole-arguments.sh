#!/usr/bin/env bash
# ag-ui-langgraph 0.0.47 (PyPI), with langgraph 1.2.24
#
# Behaviour: if the model gives the name and all arguments of a tool call in one chunk, the adapter sends TOOL_CALL_START and
# TOOL_CALL_END without TOOL_CALL_ARGS. The arguments come with the MESSAGES_SNAPSHOT at the end of the run.
#
# Why it matters: one would guess one TOOL_CALL_ARGS with all of it, since some providers always send a call as a whole. A page or a
# store that runs the tool or asks the user at TOOL_CALL_END sees no arguments; a run that is cut before its end never has them.
#
# Output:
#   in pieces: START ARGS {"at": ARGS "it"} END, snapshot {"at": "it"}
#   as a whole: START END, snapshot {"at": "it"}
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
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph


class Scripted(BaseChatModel):
    chunks: list
    _llm_type = "scripted"

    def _generate(self, *args, **kwargs):
        raise NotImplementedError

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        for chunk in self.chunks:
            chunk = {"id": None, "name": None, "index": 0} | chunk
            yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=[chunk]))


async def run(*chunks):
    async def answer(state):
        return {"messages": [await Scripted(chunks=list(chunks)).ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").add_edge("answer", END)
    agent = LangGraphAgent(name="scripted", graph=graph.compile(checkpointer=InMemorySaver()), emit_raw_events=False)
    given = RunAgentInput(thread_id="t", run_id="r", state={}, messages=[{"id": "u", "role": "user", "content": "Look."}],
                          tools=[], context=[], forwarded_props={})
    words = []
    async for event in agent.run(given):
        if event.type.startswith("TOOL_CALL_"):
            words.append(event.type.removeprefix("TOOL_CALL_"))
        if event.type == "TOOL_CALL_ARGS":
            words.append(event.delta)
        if event.type == "MESSAGES_SNAPSHOT":
            snapshot = event.messages[-1].tool_calls[0].function.arguments
    return f"{' '.join(words)}, snapshot {snapshot}"


pieces = asyncio.run(run({"id": "1", "name": "look", "args": ""}, {"args": '{"at":'}, {"args": '"it"}'}))
whole = asyncio.run(run({"id": "1", "name": "look", "args": '{"at":"it"}'}))
print("in pieces:", pieces)
print("as a whole:", whole)
assert pieces == 'START ARGS {"at": ARGS "it"} END, snapshot {"at": "it"}'
assert whole == 'START END, snapshot {"at": "it"}'
END
LANGSMITH_TRACING=false "$dir/venv/bin/python" "$dir/run.py"
