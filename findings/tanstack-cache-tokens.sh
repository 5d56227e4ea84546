#!/usr/bin/env bash
# @tanstack/ai 0.58.0 (npm)
#
# Behaviour: a model that reports tokens read from a cache and tokens written to it has only the first in the usage of RUN_FINISHED. The
# others are in metadata.tanstack.usage of the same event.
#
# Why it matters: one would guess that the usage of an event has all tokens of the run. Tokens written to a cache cost more than others, so
# a bill that is made of usage alone is too low, and it gives no sign of that: the total is right.
#
# Output:
#   usage: [{"inputTokens":100,"outputTokens":10,"totalTokens":110,"cachedInputTokens":30}]
#   metadata: {"promptTokensDetails":{"cacheWriteTokens":60}}
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --silent --no-audit --no-fund --prefix "$dir" @tanstack/ai@0.58.0
cat > "$dir/run.mjs" <<'END'
import assert from "node:assert/strict";
import { chat, toServerSentEventsResponse } from "@tanstack/ai";

const usage = { promptTokens: 100, completionTokens: 10, totalTokens: 110, promptTokensDetails: { cachedTokens: 30, cacheWriteTokens: 60 } };
const adapter = {
  kind: "text", name: "scripted", model: "scripted", "~types": {},
  async *chatStream({ threadId, runId }) {
    const event = (type, members) => ({ type, timestamp: 1, model: "scripted", threadId, runId, ...members });
    yield event("RUN_STARTED");
    yield event("TEXT_MESSAGE_START", { messageId: "m1", role: "assistant" });
    yield event("TEXT_MESSAGE_CONTENT", { messageId: "m1", delta: "Hello." });
    yield event("TEXT_MESSAGE_END", { messageId: "m1" });
    yield event("RUN_FINISHED", { finishReason: "stop", usage });
  },
};
const messages = [{ id: "u1", role: "user", parts: [{ type: "text", content: "Hi" }] }];
const text = await toServerSentEventsResponse(chat({ adapter, messages, threadId: "t", runId: "r", debug: false })).text();
const events = text.split("\n").filter((line) => line.startsWith("data: {")).map((line) => JSON.parse(line.slice(6)));
const end = events.find(({ type }) => type === "RUN_FINISHED");
console.log("usage:", JSON.stringify(end.usage));
console.log("metadata:", JSON.stringify(end.metadata.tanstack.usage));
assert.deepEqual(end.usage, [{ inputTokens: 100, outputTokens: 10, totalTokens: 110, cachedInputTokens: 30 }]);
assert.deepEqual(end.metadata.tanstack.usage, { promptTokensDetails: { cacheWriteTokens: 60 } });
END
node "$dir/run.mjs"
