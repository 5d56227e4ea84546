#!/usr/bin/env bash
# llama-index-protocols-ag-ui 0.6.0 (PyPI), with llama-index-core 0.14.25
#
# Behaviour: each MESSAGES_SNAPSHOT gives new ids to all messages of its run, and none is the id under which the text was streamed. The
# result of a tool comes in a snapshot only: there is no TOOL_CALL_RESULT.
#
# Why it matters: one would guess that a message keeps its id, so that events can refer to it. What a page or a store keeps by message
# id is lost three times in a run of one tool call, the message is drawn again each time, and a store that counts the ids it has seen
# finds four messages for one. What collects tool results from events finds none.
#
# Output:
#   the first answer has 4 ids: 1 streamed, 3 in 3 snapshots
#   the user's message has 1
#   events TOOL_CALL_RESULT: 0, results in the last snapshot: 1
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check \
  llama-index-protocols-ag-ui==0.6.0 llama-index-core==0.14.25 llama-index-workflows==2.26.1 ag-ui-protocol==1.0.0 fastapi==0.141.1
cat > "$dir/run.py" <<'END'
import asyncio
import json

from ag_ui.core import RunAgentInput
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.protocols.ag_ui.router import AGUIWorkflowRouter, get_default_workflow_factory


class Scripted(CustomLLM, FunctionCallingLLM):
    @property
    def metadata(self):
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True, model_name="scripted")

    def complete(self, *args, **kwargs):
        raise NotImplementedError

    stream_complete = _prepare_chat_with_tools = complete

    async def astream_chat_with_tools(self, tools, chat_history=None, **kwargs):
        has_result = any("tool_call_id" in message.additional_kwargs for message in chat_history)

        async def responses():
            text = "Seen." if has_result else "I look."
            calls = {} if has_result else {"tool_calls": ["look"]}
            yield ChatResponse(message=ChatMessage(role="assistant", content=text, additional_kwargs=calls), delta=text)

        return responses()

    def get_tool_calls_from_response(self, response, error_on_no_tool_call=True, **kwargs):
        if "tool_calls" not in response.message.additional_kwargs:
            return []
        return [ToolSelection(tool_id="1", tool_name="look", tool_kwargs={"at": "it"})]


def look(at: str) -> str:
    """Looks."""
    return f"seen {at}"


async def run():
    router = AGUIWorkflowRouter(get_default_workflow_factory(llm=Scripted(), backend_tools=[look]))
    given = RunAgentInput(thread_id="t", run_id="r", state={}, messages=[{"id": "u", "role": "user", "content": "Look."}],
                          tools=[], context=[], forwarded_props={})
    response = await router.run(given)
    frames = "".join([piece async for piece in response.body_iterator])
    return [json.loads(line.removeprefix("data: ")) for line in frames.splitlines() if line.startswith("data: ")]


events = asyncio.run(run())
snapshots = [event["messages"] for event in events if event["type"] == "MESSAGES_SNAPSHOT"]
streamed = {event["messageId"] for event in events if event.get("delta") == "I look."}
ids = {message["id"] for messages in snapshots for message in messages if message.get("content") == "I look."}
asked = {messages[0]["id"] for messages in snapshots}
results = sum(event["type"] == "TOOL_CALL_RESULT" for event in events)
kept = [message["content"] for message in snapshots[-1] if message["role"] == "tool"]
print(f"the first answer has {len(streamed | ids)} ids: {len(streamed)} streamed, {len(ids)} in {len(snapshots)} snapshots")
print(f"the user's message has {len(asked)}")
print(f"events TOOL_CALL_RESULT: {results}, results in the last snapshot: {len(kept)}")
assert (len(streamed | ids), len(streamed), len(ids), len(snapshots)) == (4, 1, 3, 3)
assert asked == {"u"}
assert results == 0 and kept == ["seen it"]
END
"$dir/venv/bin/python" "$dir/run.py"
