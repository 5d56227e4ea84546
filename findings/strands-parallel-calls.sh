#!/usr/bin/env bash
# ag-ui-strands 1.0.2 (PyPI), with strands-agents 1.62.0
#
# Behaviour: two tool calls in one answer of the model become two assistant messages, followed by the two results. A result that is a
# text is sent as JSON text, in quotes.
#
# Why it matters: one would guess one message with two calls, as the model gave it. Sent back as history, the first call has no result
# behind its message, which some providers refuse; a store that counts turns counts one too many. And a page that shows the content
# of a result shows the quotes and the escapes.
#
# Output:
#   assistant 1; assistant 2; tool 1 "seen it"; tool 2 "seen it"; assistant
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check ag-ui-strands==1.0.2 strands-agents==1.62.0 ag-ui-protocol==1.0.0
cat > "$dir/run.py" <<'END'
import asyncio

from ag_ui.core import RunAgentInput
from ag_ui_strands import StrandsAgent
from strands import Agent, tool
from strands.models import Model


class Scripted(Model):
    def update_config(self, **config):
        pass

    def get_config(self):
        return {"model_id": "scripted"}

    def structured_output(self, *args, **kwargs):
        raise NotImplementedError

    async def stream(self, messages, *args, **kwargs):
        has_results = any("toolResult" in content for content in messages[-1]["content"])
        yield {"messageStart": {"role": "assistant"}}
        if has_results:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "Seen."}}}
            yield {"contentBlockStop": {}}
        else:
            for id in "1", "2":
                yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": id, "name": "look"}}}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": '{"at": "it"}'}}}}
                yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if has_results else "tool_use"}}
        yield {"metadata": {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": {"latencyMs": 1}}}


@tool
def look(at: str) -> str:
    """Looks."""
    return f"seen {at}"


async def run():
    agent = StrandsAgent(Agent(model=Scripted(), tools=[look], callback_handler=None), name="scripted")
    given = RunAgentInput(thread_id="t", run_id="r", state={}, messages=[{"id": "u", "role": "user", "content": "Look twice."}],
                          tools=[], context=[], forwarded_props={})
    return [event async for event in agent.run(given)]


events = asyncio.run(run())
last = [event for event in events if event.type == "MESSAGES_SNAPSHOT"][-1].messages
words = []
for message in last[1:]:
    if message.role == "tool":
        words.append(f"tool {message.tool_call_id} {message.content}")
    else:
        words.append(" ".join(["assistant", *(call.id for call in message.tool_calls or [])]))
print("; ".join(words))
assert words == ["assistant 1", "assistant 2", 'tool 1 "seen it"', 'tool 2 "seen it"', "assistant"]
streamed = [event.content for event in events if event.type == "TOOL_CALL_RESULT"]
assert streamed == ['"seen it"', '"seen it"']
END
"$dir/venv/bin/python" "$dir/run.py"
