#!/usr/bin/env bash
# @ag-ui/client 1.0.0 (npm)
#
# Behaviour: it reads Server-Sent Events only if lines end with LF. The standard also allows CRLF and CR; with those the client waits
# for the end of the response, takes all of it for one event, and fails.
#
# Why it matters: one would guess that any SSE library of a server will do, and some write CRLF unless they are set to LF. Nothing
# arrives while the run lasts, and the error at the end is about JSON.
#
# Output:
#   LF   RUN_STARTED,RUN_FINISHED
#   CRLF SyntaxError
#   CR   SyntaxError
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --silent --no-audit --no-fund --prefix "$dir" @ag-ui/client@1.0.0
cat > "$dir/run.mjs" <<'END'
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { HttpAgent } from "@ag-ui/client";

const events = [
  { type: "RUN_STARTED", threadId: "t", runId: "r" },
  { type: "RUN_FINISHED", threadId: "t", runId: "r" },
];

async function read(end) {
  const server = createServer((request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(events.map((event) => `data: ${JSON.stringify(event)}${end}${end}`).join(""));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const agent = new HttpAgent({ url: `http://127.0.0.1:${server.address().port}`, threadId: "t" });
  const types = [];
  try {
    await agent.runAgent({ runId: "r" }, { onEvent: ({ event }) => { types.push(event.type); } });
    return types.join();
  } catch (error) {
    return types.join() + error.name;
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

console.error = () => {};
const seen = [await read("\n"), await read("\r\n"), await read("\r")];
console.log(`LF   ${seen[0]}`);
console.log(`CRLF ${seen[1]}`);
console.log(`CR   ${seen[2]}`);
assert.deepEqual(seen, ["RUN_STARTED,RUN_FINISHED", "SyntaxError", "SyntaxError"]);
END
node "$dir/run.mjs"
