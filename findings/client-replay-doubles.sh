#!/usr/bin/env bash
# @ag-ui/client 1.0.0 (npm)
#
# Behaviour: events of a message that the client has are added to it. TEXT_MESSAGE_START does not empty it, TOOL_CALL_START does not
# empty the arguments, and TOOL_CALL_RESULT adds a second message with the same id.
#
# Why it matters: one would guess that a start event starts, so that one can send a run from its beginning to a page that has part of
# it. The page then has the text twice, arguments that are no JSON, and two results. A store has to send the rest only, or a snapshot.
#
# Output:
#   text: Good morning!Good morning!
#   arguments: {"at":"it"}{"at":"it"}
#   messages: a,c,c
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --silent --no-audit --no-fund --prefix "$dir" @ag-ui/client@1.0.0 rxjs@7.8.1
cat > "$dir/run.mjs" <<'END'
import assert from "node:assert/strict";
import { AbstractAgent } from "@ag-ui/client";
import { of } from "rxjs";

class Recorded extends AbstractAgent {
  run() {
    return of(
      { type: "RUN_STARTED", threadId: "t", runId: "r" },
      { type: "TEXT_MESSAGE_START", messageId: "a", role: "assistant" },
      { type: "TEXT_MESSAGE_CONTENT", messageId: "a", delta: "Good morning!" },
      { type: "TEXT_MESSAGE_END", messageId: "a" },
      { type: "TOOL_CALL_START", toolCallId: "1", toolCallName: "look", parentMessageId: "a" },
      { type: "TOOL_CALL_ARGS", toolCallId: "1", delta: '{"at":"it"}' },
      { type: "TOOL_CALL_END", toolCallId: "1" },
      { type: "TOOL_CALL_RESULT", messageId: "c", toolCallId: "1", content: "seen" },
      { type: "RUN_FINISHED", threadId: "t", runId: "r" },
    );
  }
}

const agent = new Recorded({ threadId: "t" });
await agent.runAgent({ runId: "r" });
assert.equal(agent.messages.length, 2);
await agent.runAgent({ runId: "r" });
const [message] = agent.messages;
const text = message.content;
const args = message.toolCalls.map((call) => call.function.arguments).join(" and ");
const ids = agent.messages.map(({ id }) => id).join();
console.log(`text: ${text}`);
console.log(`arguments: ${args}`);
console.log(`messages: ${ids}`);
assert.equal(text, "Good morning!Good morning!");
assert.equal(args, '{"at":"it"}{"at":"it"}');
assert.equal(ids, "a,c,c");
END
node "$dir/run.mjs"
