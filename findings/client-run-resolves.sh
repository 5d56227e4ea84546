#!/usr/bin/env bash
# @ag-ui/client 1.0.0 (npm)
#
# Behaviour: `await agent.runAgent()` resolves alike when the run finished, when it ended with RUN_ERROR, and when the response ended
# in the middle of a message. onRunFailed runs in none of the three.
#
# Why it matters: one would guess that a failed or a cut run rejects, or at least calls onRunFailed. A page that needs the outcome has
# to watch for RUN_FINISHED and RUN_ERROR itself; a run with neither is cut, and its half message looks complete. A proxy or a store
# between agent and page must send RUN_ERROR for an agent that goes away.
#
# Output:
#   finished: resolved, callbacks onRunFinishedEvent,onRunFinalized
#   error: resolved, callbacks onRunErrorEvent,onRunFinalized
#   cut: resolved, callbacks onRunFinalized
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --silent --no-audit --no-fund --prefix "$dir" @ag-ui/client@1.0.0
cat > "$dir/run.mjs" <<'END'
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { HttpAgent } from "@ag-ui/client";

const messageId = "m";
const begin = [
  { type: "RUN_STARTED", threadId: "t", runId: "r" },
  { type: "TEXT_MESSAGE_START", messageId, role: "assistant" },
  { type: "TEXT_MESSAGE_CONTENT", messageId, delta: "The answer" },
];
const ends = {
  finished: [{ type: "TEXT_MESSAGE_END", messageId }, { type: "RUN_FINISHED", threadId: "t", runId: "r" }],
  error: [{ type: "RUN_ERROR", message: "The model is out of order." }],
  cut: [],
};
const names = ["onRunFinishedEvent", "onRunErrorEvent", "onRunFailed", "onRunFinalized"];

async function run(events) {
  const server = createServer((request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const agent = new HttpAgent({ url: `http://127.0.0.1:${server.address().port}`, threadId: "t" });
  const called = [];
  const subscriber = Object.fromEntries(names.map((name) => [name, () => { called.push(name); }]));
  const how = await agent.runAgent({ runId: "r" }, subscriber).then(() => "resolved", () => "rejected");
  server.close();
  server.closeAllConnections();
  assert.equal(agent.messages[0].content, "The answer");
  return `${how}, callbacks ${called.join()}`;
}

const seen = {};
for (const [name, end] of Object.entries(ends)) {
  seen[name] = await run([...begin, ...end]);
  console.log(`${name}: ${seen[name]}`);
}
assert.deepEqual(seen, {
  finished: "resolved, callbacks onRunFinishedEvent,onRunFinalized",
  error: "resolved, callbacks onRunErrorEvent,onRunFinalized",
  cut: "resolved, callbacks onRunFinalized",
});
END
node "$dir/run.mjs"
