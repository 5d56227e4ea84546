#!/usr/bin/env bash
# pydantic-ai-slim 2.68.0 (PyPI), its AG-UI adapter
#
# Behaviour: when a tool raises, the adapter sends a TOOL_CALL_RESULT with a text of its own, then REASONING_ENCRYPTED_VALUE for the
# message of that result with JSON about Pydantic AI, then RUN_ERROR with the text of the exception.
#
# Why it matters: one would guess RUN_ERROR only, and a call that stays without a result. A store that takes "every call has a result" for
# success counts a failed run as good; a result that no tool gave is in the history of the next run. That it failed is said only in a
# value that is called encrypted and is about reasoning, in a run without any.
#
# Output:
#   TOOL_CALL_RESULT Tool execution was interrupted by an error.
#   REASONING_ENCRYPTED_VALUE message of the result: {"pydantic_ai": {"outcome": "failed"}}
#   RUN_ERROR nothing to see at it
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check 'pydantic-ai-slim[ag-ui]==2.68.0' ag-ui-protocol==1.0.0
cat > "$dir/run.py" <<'END'
import asyncio
import json

from ag_ui.core import RunAgentInput
from pydantic_ai import Agent
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter


async def stream(messages, info):
    yield {0: DeltaToolCall(name="look", json_args='{"at": "it"}', tool_call_id="1")}


agent = Agent(FunctionModel(stream_function=stream))


@agent.tool_plain
def look(at: str) -> str:
    """Looks, and fails."""
    raise RuntimeError(f"nothing to see at {at}")


async def run():
    given = RunAgentInput(thread_id="t", run_id="r", state={}, messages=[{"id": "u", "role": "user", "content": "Look."}],
                          tools=[], context=[], forwarded_props={})
    adapter = AGUIAdapter(agent=agent, run_input=given, accept=None)
    return [event async for event in adapter.run_stream()]


result, value, error = asyncio.run(run())[-3:]
print(result.type.value, result.content)
print(value.type.value, f"{value.subtype} of the result:", value.encrypted_value)
print(error.type.value, error.message)
assert (result.type, result.content) == ("TOOL_CALL_RESULT", "Tool execution was interrupted by an error.")
assert (value.type, value.subtype, value.entity_id) == ("REASONING_ENCRYPTED_VALUE", "message", result.message_id)
assert json.loads(value.encrypted_value) == {"pydantic_ai": {"outcome": "failed"}}
assert (error.type, error.message) == ("RUN_ERROR", "nothing to see at it")
END
"$dir/venv/bin/python" "$dir/run.py"
