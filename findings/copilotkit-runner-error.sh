#!/usr/bin/env bash
# @copilotkit/runtime 1.75.0 (npm)
#
# Behaviour: an error of an AgentRunner becomes status 200 and a response that ends as if it was complete. Nothing is sent for an error
# before the first event, and no RUN_ERROR for one after it. The error is on the console only.
#
# Why it matters: one would guess status 500 or RUN_ERROR. A runner that keeps runs in a database fails when the database does; the page
# then shows an answer without text, or half of one, and takes the run for complete. A runner has to send RUN_ERROR itself.
#
# Output:
#   run() throws: 200 events
#   fails at once: 200 events
#   fails later: 200 events RUN_STARTED
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --silent --no-audit --no-fund --prefix "$dir" @copilotkit/runtime@1.75.0 @ag-ui/client@1.0.0 rxjs@7.8.1
cat > "$dir/run.mjs" <<'END'
import assert from "node:assert/strict";
import { HttpAgent } from "@ag-ui/client";
import { CopilotRuntime, createCopilotRuntimeHandler, InMemoryAgentRunner } from "@copilotkit/runtime/v2";
import { concat, of, throwError } from "rxjs";

const failure = () => new Error("The database is away.");

const runs = {
  "run() throws": () => { throw failure(); },
  "fails at once": () => throwError(failure),
  "fails later": ({ input: { threadId, runId } }) => concat(of({ type: "RUN_STARTED", threadId, runId }), throwError(failure)),
};

let errors = 0;
console.error = () => { errors++; };
const seen = {};
for (const [name, run] of Object.entries(runs)) {
  const runner = new InMemoryAgentRunner();
  runner.run = run;
  const runtime = new CopilotRuntime({ agents: { helper: new HttpAgent({ url: "http://127.0.0.1:9" }) }, runner });
  const handle = createCopilotRuntimeHandler({ runtime, basePath: "/copilotkit" });
  const messages = [{ id: "u", role: "user", content: "Good morning." }];
  const input = { threadId: "t", runId: "r", state: {}, messages, tools: [], context: [], forwardedProps: {} };
  const response = await handle(new Request("http://127.0.0.1/copilotkit/agent/helper/run", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(input),
  }));
  const frames = (await response.text()).split("\n\n").filter((frame) => frame !== "");
  const types = frames.map((frame) => JSON.parse(frame.slice("data: ".length)).type);
  seen[name] = [response.status, "events", ...types].join(" ");
  console.log(`${name}: ${seen[name]}`);
}
assert.deepEqual(seen, { "run() throws": "200 events", "fails at once": "200 events", "fails later": "200 events RUN_STARTED" });
assert.ok(errors >= 3);
process.exit();
END
COPILOTKIT_TELEMETRY_DISABLED=true node "$dir/run.mjs"
