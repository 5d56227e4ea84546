#!/usr/bin/env bash
# @ag-ui/client 0.0.59 and 1.0.0 (npm)
#
# Behaviour: 1.0.0 fails a run when one SSE frame has more than 10 MB; 0.0.59 has no limit. Nothing in the protocol names one.
#
# Why it matters: one would guess that an event that one version reads, a later version reads too. A snapshot with pasted documents
# reaches the limit, and then a stored conversation no longer loads after an upgrade of the page. A store has to bound its events, or
# split what it replays.
#
# Output:
#   0.0.59 11 MB read
#   1.0.0 9 MB read
#   1.0.0 11 MB SSE buffer size exceeded maximum limit of 10 MB
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --silent --no-audit --no-fund --prefix "$dir" older@npm:@ag-ui/client@0.0.59 newer@npm:@ag-ui/client@1.0.0
cat > "$dir/run.mjs" <<'END'
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { HttpAgent as Older } from "older";
import { HttpAgent as Newer } from "newer";

async function load(Agent, megabytes) {
  const text = "x".repeat(megabytes << 20);
  const events = [
    { type: "RUN_STARTED", threadId: "t", runId: "r" },
    { type: "STATE_SNAPSHOT", snapshot: { text } },
    { type: "RUN_FINISHED", threadId: "t", runId: "r" },
  ];
  const server = createServer((request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const agent = new Agent({ url: `http://127.0.0.1:${server.address().port}`, threadId: "t" });
  try {
    await agent.runAgent({ runId: "r" });
    return agent.state.text === text ? "read" : "lost";
  } catch (error) {
    return error.message;
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

console.error = () => {};
const seen = [await load(Older, 11), await load(Newer, 9), await load(Newer, 11)];
console.log(`0.0.59 11 MB ${seen[0]}`);
console.log(`1.0.0 9 MB ${seen[1]}`);
console.log(`1.0.0 11 MB ${seen[2]}`);
assert.deepEqual(seen, ["read", "read", "SSE buffer size exceeded maximum limit of 10 MB"]);
END
node "$dir/run.mjs"
