#!/usr/bin/env bash
# agno 3.1.10 (PyPI), its AG-UI interface
#
# Behaviour: TOOL_CALL_END is sent when the tool has run, together with TOOL_CALL_RESULT, not when the arguments are complete. The
# messageId of the result is the id of the tool call, and a text is sent as JSON text.
#
# Why it matters: one would guess that a call ends with its arguments, and that the tool runs between END and RESULT. A page that shows
# "working" in that time never does; a store sees an open call as long as the tool runs, and one without an end if the process dies;
# and a message and a tool call share an id, so one table of ids for both has a conflict.
#
# Output:
#   events before the tool ran: TOOL_CALL_START,TOOL_CALL_ARGS
#   events after it: TOOL_CALL_END,TOOL_CALL_RESULT
#   result: messageId 1 toolCallId 1 content "seen it"
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check agno==3.1.10 ag-ui-protocol==1.0.0 fastapi==0.115.14 jsonpatch==1.48
cat > "$dir/run.py" <<'END'
import asyncio
import json

from ag_ui.core import RunAgentInput
from agno.agent import Agent
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.os.interfaces.agui import AGUI
from agno.tools import tool
from starlette.requests import Request

log = []


class Scripted(Model):
    async def ainvoke_stream(self, messages, **kwargs):
        if messages[-1].role == "tool":
            yield ModelResponse(role="assistant", content="Seen.")
            return
        call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"at": "it"}'}}
        yield ModelResponse(role="assistant", tool_calls=[call])

    def invoke(self, *args, **kwargs):
        raise NotImplementedError

    ainvoke = invoke_stream = _parse_provider_response = invoke

    def _parse_provider_response_delta(self, response):
        return response


@tool
async def look(at: str) -> str:
    """Looks, and takes a second for it."""
    await asyncio.sleep(1)
    log.append({"type": "the tool has run"})
    return f"seen {at}"


async def run():
    agent = Agent(name="scripted", model=Scripted(id="scripted"), tools=[look], telemetry=False)
    endpoint = AGUI(agent=agent).get_router().routes[0].endpoint
    given = RunAgentInput(thread_id="t", run_id="r", state={}, messages=[{"id": "u", "role": "user", "content": "Look."}],
                          tools=[], context=[], forwarded_props={})
    response = await endpoint(Request({"type": "http", "method": "POST", "path": "/", "headers": []}), given)
    async for frame in response.body_iterator:
        log.append(json.loads(frame.removeprefix("data: ")))


asyncio.run(run())
types = [event["type"] for event in log]
ran = types.index("the tool has run")
before = ",".join(name for name in types[:ran] if name.startswith("TOOL_CALL_"))
after = ",".join(name for name in types[ran:] if name.startswith("TOOL_CALL_"))
(result,) = [event for event in log if event["type"] == "TOOL_CALL_RESULT"]
print("events before the tool ran:", before)
print("events after it:", after)
print("result: messageId", result["messageId"], "toolCallId", result["toolCallId"], "content", result["content"])
assert before == "TOOL_CALL_START,TOOL_CALL_ARGS"
assert after == "TOOL_CALL_END,TOOL_CALL_RESULT"
assert result["messageId"] == result["toolCallId"] == "1"
assert result["content"] == '"seen it"'
END
"$dir/venv/bin/python" "$dir/run.py"
