#!/usr/bin/env bash
# @ag-ui/client 1.0.0 (npm)
#
# Behaviour: in onTextMessageContentEvent, textMessageBuffer is the text before the event, without its delta; so is toolCallBuffer in
# onToolCallArgsEvent. `messages` there are those before the event, too.
#
# Why it matters: one would guess that the buffer is the text so far. A page that shows it lags one delta behind, and a message of one
# delta stays empty until its end. One has to show textMessageBuffer + event.delta, or wait for onMessagesChanged.
#
# Output:
#   delta "Good ", buffer "", message ""
#   delta "morning!", buffer "Good ", message "Good "
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
      { type: "TEXT_MESSAGE_CONTENT", messageId: "a", delta: "Good " },
      { type: "TEXT_MESSAGE_CONTENT", messageId: "a", delta: "morning!" },
      { type: "TEXT_MESSAGE_END", messageId: "a" },
      { type: "TOOL_CALL_START", toolCallId: "1", toolCallName: "look", parentMessageId: "a" },
      { type: "TOOL_CALL_ARGS", toolCallId: "1", delta: "{}" },
      { type: "TOOL_CALL_END", toolCallId: "1" },
      { type: "RUN_FINISHED", threadId: "t", runId: "r" },
    );
  }
}

const seen = [];
const buffers = [];
await new Recorded({ threadId: "t" }).runAgent({ runId: "r" }, {
  onTextMessageContentEvent({ event, textMessageBuffer, messages }) {
    seen.push([event.delta, textMessageBuffer, messages.at(-1).content]);
  },
  onToolCallArgsEvent({ toolCallBuffer }) {
    buffers.push(toolCallBuffer);
  },
});
for (const [delta, buffer, message] of seen) console.log(`delta "${delta}", buffer "${buffer}", message "${message}"`);
assert.deepEqual(seen, [["Good ", "", ""], ["morning!", "Good ", "Good "]]);
assert.deepEqual(buffers, [""]);
END
node "$dir/run.mjs"
