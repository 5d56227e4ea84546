#!/usr/bin/env bash
# agent-framework-ag-ui 1.7.0 (PyPI), with agent-framework-core 1.23.0
#
# Behaviour: the snapshot of a thread has the question of a run that waits for an approval. What waits is also in the memory of the process
# (InMemoryAGUIApprovalStateStore, which no option replaces), and only that counts: another process with the same snapshots replays the
# thread without the question, and refuses the answer.
#
# Why it matters: one would guess that a store of snapshots suffices for a second process or a restart. There the page shows a run that has
# finished, and the user cannot approve any more. Requests of a thread have to reach the process that asked.
#
# Output:
#   asked by the first process: 1, in the snapshot: 1
#   replayed by the first: 1
#   replayed by the second: 0
#   the answer to the second: RUN_ERROR APPROVAL_RESUME_NOT_FOUND
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check \
  agent-framework-ag-ui==1.7.0 agent-framework-core==1.23.0 ag-ui-protocol==0.1.22
cat > "$dir/run.py" <<'END'
import asyncio
import json
import logging

import httpx
from agent_framework import Agent, BaseChatClient, ChatResponse, ChatResponseUpdate, Content, FunctionInvocationLayer, ResponseStream, tool
from agent_framework_ag_ui import InMemoryAGUIThreadSnapshotStore, add_agent_framework_fastapi_endpoint
from fastapi import FastAPI

logging.disable(logging.CRITICAL)


class Scripted(FunctionInvocationLayer, BaseChatClient):
    def _inner_get_response(self, *, messages, stream, options, **kwargs):
        return ResponseStream(self.updates(), finalizer=ChatResponse.from_updates)

    async def updates(self):
        call = Content.from_function_call("c1", "erase", arguments='{"at": "Rome"}')
        yield ChatResponseUpdate(role="assistant", contents=[call])


@tool(approval_mode="always_require")
def erase(at: str) -> str:
    """Erases."""
    return f"erased {at}"


snapshots = InMemoryAGUIThreadSnapshotStore()


def process():
    app = FastAPI()
    agent = Agent(client=Scripted(), tools=[erase])
    add_agent_framework_fastapi_endpoint(app, agent, snapshot_store=snapshots, authorization_scope_resolver=lambda: "ada")
    return app


async def run(app, id, messages=(), **more):
    given = {"threadId": "t", "runId": id, "state": {}, "messages": messages, "tools": [], "context": [], "forwardedProps": {}}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        answer = await client.post("/", json=given | more)
    return [json.loads(line[5:]) for line in answer.text.splitlines() if line.startswith("data:")]


def questions(events):
    return [one["id"] for one in events[-1].get("outcome", {}).get("interrupts", [])]


async def main():
    first, second = process(), process()
    asked = questions(await run(first, "r1", [{"id": "u", "role": "user", "content": "Erase it"}]))
    kept = await snapshots.get(scope="ada", thread_id="t")
    print(f"asked by the first process: {len(asked)}, in the snapshot: {len(kept.interrupt)}")
    replayed = [questions(await run(app, "r2")) for app in (first, second)]
    print("replayed by the first:", len(replayed[0]))
    print("replayed by the second:", len(replayed[1]))
    assert replayed == [asked, []] and len(asked) == 1
    answer = {"interruptId": asked[0], "status": "resolved", "payload": {"accepted": True}}
    end = (await run(second, "r3", resume=[answer]))[-1]
    print("the answer to the second:", end["type"], end["code"])
    assert (end["type"], end["code"]) == ("RUN_ERROR", "APPROVAL_RESUME_NOT_FOUND")


asyncio.run(main())
END
"$dir/venv/bin/python" -W ignore "$dir/run.py"
