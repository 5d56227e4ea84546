#!/usr/bin/env bash
# agent-framework-ag-ui 1.7.0 (PyPI), with agent-framework-core 1.23.0
#
# Behaviour: the MESSAGES_SNAPSHOT at the end of a run has the `image` and `document` parts of the user's message as `binary` parts, the
# older shape, without their metadata (the name of the file, for one). The id of the message is the same.
#
# Why it matters: one would guess that a message comes back as it was sent. The snapshot replaces it in page and store: names of
# attachments are gone after the run, and code that looks for `image` finds nothing.
#
# Output:
#   sent: image {"filename": "a.png"}, document {"filename": "a.pdf"}
#   snapshot: binary {"type": "binary", "mimeType": "image/png", "data": "AAAA"}
#   snapshot: binary {"type": "binary", "mimeType": "application/pdf", "url": "https://example.com/a.pdf"}
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check \
  agent-framework-ag-ui==1.7.0 agent-framework-core==1.23.0 ag-ui-protocol==0.1.22
cat > "$dir/run.py" <<'END'
import asyncio
import json

from agent_framework import Agent, BaseChatClient, ChatResponse, ChatResponseUpdate, Content, FunctionInvocationLayer, ResponseStream
from agent_framework_ag_ui import AgentFrameworkAgent


class Scripted(FunctionInvocationLayer, BaseChatClient):
    def _inner_get_response(self, *, messages, stream, options, **kwargs):
        return ResponseStream(self.updates(), finalizer=ChatResponse.from_updates)

    async def updates(self):
        yield ChatResponseUpdate(role="assistant", contents=[Content.from_text("I see.")])


sent = [
    {"type": "image", "source": {"type": "data", "value": "AAAA", "mimeType": "image/png"}, "metadata": {"filename": "a.png"}},
    {"type": "document", "source": {"type": "url", "value": "https://example.com/a.pdf", "mimeType": "application/pdf"},
     "metadata": {"filename": "a.pdf"}},
]


async def run():
    agent = AgentFrameworkAgent(agent=Agent(name="scripted", client=Scripted(), instructions="Say what the script says."))
    given = {"threadId": "t", "runId": "r", "state": {}, "messages": [{"id": "u", "role": "user", "content": sent}], "tools": [],
             "context": [], "forwardedProps": {}}
    events = [json.loads(event.model_dump_json(by_alias=True)) async for event in agent.run(given)]
    return [event["messages"] for event in events if event["type"] == "MESSAGES_SNAPSHOT"]


(messages,) = asyncio.run(run())
print("sent:", ", ".join(f"{part['type']} {json.dumps(part['metadata'])}" for part in sent))
for part in messages[0]["content"]:
    print("snapshot:", part["type"], json.dumps(part))
assert messages[0]["id"] == "u"
assert messages[0]["content"] == [
    {"type": "binary", "mimeType": "image/png", "data": "AAAA"},
    {"type": "binary", "mimeType": "application/pdf", "url": "https://example.com/a.pdf"},
]
END
"$dir/venv/bin/python" "$dir/run.py"
