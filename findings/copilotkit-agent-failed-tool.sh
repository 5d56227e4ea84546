#!/usr/bin/env bash
# @copilotkit/runtime 1.75.0 and @ag-ui/client 1.0.0 (npm)
#
# Behaviour: if a tool of a BuiltInAgent throws, its run has no TOOL_CALL_RESULT and finishes. The page keeps the call without a result and
# sends it with its next message: that run, and each later one of the conversation, fails before the model is called.
#
# Why it matters: one would guess a result that says what failed, as the model gets one within the run. A store that gives such a history back
# after a reload gives back a conversation that cannot go on; and the call looks as if it waited for the user.
#
# Output:
#   run 1: RUN_STARTED TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_FINISHED
#   run 2: RUN_STARTED RUN_ERROR, calls of the model: 2
#   failure: Tool result is missing for tool call c1.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --silent --no-audit --no-fund --prefix "$dir" @copilotkit/runtime@1.75.0 @ag-ui/client@1.0.0 zod@4.6.7
cat > "$dir/run.mjs" <<'END'
import assert from "node:assert/strict";
import { BuiltInAgent, defineTool } from "@copilotkit/runtime/v2";
import { z } from "zod";

let calls = 0;
const model = {
  specificationVersion: "v2", provider: "scripted", modelId: "scripted", supportedUrls: {},
  async doStream({ prompt }) {
    calls++;
    const isCall = prompt.at(-1).role === "user";
    return { stream: ReadableStream.from([
      { type: "stream-start", warnings: [] },
      ...isCall
        ? [{ type: "tool-input-start", id: "c1", toolName: "weather" }, { type: "tool-input-delta", id: "c1", delta: "{}" },
          { type: "tool-input-end", id: "c1" }, { type: "tool-call", toolCallId: "c1", toolName: "weather", input: "{}" }]
        : [{ type: "text-start", id: "words" }, { type: "text-delta", id: "words", delta: "I cannot see it." }, { type: "text-end", id: "words" }],
      { type: "finish", finishReason: isCall ? "tool-calls" : "stop", usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } },
    ]) };
  },
};
const weather = defineTool({ name: "weather", description: "Says the weather", parameters: z.object({}), execute: async () => { throw new Error("no connection"); } });
const agent = new BuiltInAgent({ model, tools: [weather], maxSteps: 3, maxRetries: 0 });

console.error = () => {};
const seen = [];
async function run(name, content) {
  const types = [];
  let failure;
  agent.addMessage({ id: name, role: "user", content });
  await agent.runAgent({ runId: name }, {
    onEvent: ({ event }) => { types.push(event.type); },
    onRunErrorEvent: ({ event }) => { failure = event.message; },
  }).catch(() => {});
  seen.push({ types: types.filter((type, i) => type !== types[i - 1]).join(" "), failure });
}
await run("run 1", "Do I need a coat?");
await run("run 2", "And gloves?");
console.log(`run 1: ${seen[0].types}`);
console.log(`run 2: ${seen[1].types}, calls of the model: ${calls}`);
console.log(`failure: ${seen[1].failure}`);
assert.doesNotMatch(seen[0].types, /TOOL_CALL_RESULT/);
assert.match(seen[0].types, /RUN_FINISHED$/);
assert.equal(calls, 2);
assert.match(seen[1].failure, /^Tool result is missing for tool call c1/);
process.exit();
END
COPILOTKIT_TELEMETRY_DISABLED=true node "$dir/run.mjs"
