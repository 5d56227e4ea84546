#!/usr/bin/env bash
# llama-index-protocols-ag-ui 0.6.0 (PyPI), with llama-index-core 0.14.25
#
# Behaviour: the timestamp of an event is in whole seconds, and some events of the run have none.
#
# Why it matters: one would guess milliseconds, as JavaScript has them and other adapters send. A store that sorts or expires by
# this field puts these runs into January 1970, and a page that shows how long an answer took shows a few milliseconds.
#
# Output:
#   new Date(timestamp): 1970-01-21
#   events with a timestamp: RUN_STARTED,TEXT_MESSAGE_CHUNK,MESSAGES_SNAPSHOT,RUN_FINISHED; without: STATE_SNAPSHOT
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check \
  llama-index-protocols-ag-ui==0.6.0 llama-index-core==0.14.25 llama-index-workflows==2.26.1 ag-ui-protocol==1.0.0 fastapi==0.141.1
cat > "$dir/run.py" <<'END'
import asyncio
import json
import time
from datetime import datetime, timedelta, timezone

from ag_ui.core import RunAgentInput
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.protocols.ag_ui.router import AGUIWorkflowRouter, get_default_workflow_factory


class Scripted(CustomLLM, FunctionCallingLLM):
    @property
    def metadata(self):
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True, model_name="scripted")

    def complete(self, *args, **kwargs):
        raise NotImplementedError

    stream_complete = _prepare_chat_with_tools = complete

    async def astream_chat_with_tools(self, tools, chat_history=None, **kwargs):
        async def responses():
            yield ChatResponse(message=ChatMessage(role="assistant", content="Good morning!"), delta="Good morning!")

        return responses()

    def get_tool_calls_from_response(self, *args, **kwargs):
        return []


async def run():
    router = AGUIWorkflowRouter(get_default_workflow_factory(llm=Scripted()))
    given = RunAgentInput(thread_id="t", run_id="r", state={}, messages=[{"id": "u", "role": "user", "content": "Good morning."}],
                          tools=[], context=[], forwarded_props={})
    response = await router.run(given)
    frames = "".join([piece async for piece in response.body_iterator])
    return [json.loads(line.removeprefix("data: ")) for line in frames.splitlines() if line.startswith("data: ")]


events = asyncio.run(run())
stamps = [event["timestamp"] for event in events if "timestamp" in event]
day = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=stamps[0])
having = ",".join(event["type"] for event in events if "timestamp" in event)
lacking = ",".join(event["type"] for event in events if "timestamp" not in event)
print("new Date(timestamp):", day.date())
print(f"events with a timestamp: {having}; without: {lacking}")
assert all(isinstance(stamp, int) and abs(stamp - time.time()) < 600 for stamp in stamps)
assert day.year == 1970
assert having == "RUN_STARTED,TEXT_MESSAGE_CHUNK,MESSAGES_SNAPSHOT,RUN_FINISHED"
assert lacking == "STATE_SNAPSHOT"
END
"$dir/venv/bin/python" "$dir/run.py"
