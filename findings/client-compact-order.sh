#!/usr/bin/env bash
# @ag-ui/client 1.0.0 (npm)
#
# Behaviour: compactEvents() writes a message where it ended, not where it began. Of two messages in progress at the same time, the
# one that ended first becomes the first of the conversation.
#
# Why it matters: one would guess that the compacted events give the same messages in the same order. A store that compacts with this
# function shows another conversation after the compaction than before. Subagents that answer in parallel make such events.
#
# Output:
#   events as recorded: A,B
#   events compacted: B,A
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --silent --no-audit --no-fund --prefix "$dir" @ag-ui/client@1.0.0 rxjs@7.8.1
cat > "$dir/run.mjs" <<'END'
import assert from "node:assert/strict";
import { AbstractAgent, compactEvents } from "@ag-ui/client";
import { from } from "rxjs";

class Recorded extends AbstractAgent {
  constructor(events) {
    super({ threadId: "t" });
    this.events = events;
  }

  run() {
    return from(this.events);
  }
}

async function order(events) {
  const agent = new Recorded(events);
  await agent.runAgent({ runId: "r" });
  return agent.messages.map(({ id }) => id).join(",");
}

const events = [
  { type: "RUN_STARTED", threadId: "t", runId: "r" },
  { type: "TEXT_MESSAGE_START", messageId: "A", role: "assistant" },
  { type: "TEXT_MESSAGE_CONTENT", messageId: "A", delta: "A long " },
  { type: "TEXT_MESSAGE_START", messageId: "B", role: "assistant" },
  { type: "TEXT_MESSAGE_CONTENT", messageId: "B", delta: "Brief." },
  { type: "TEXT_MESSAGE_END", messageId: "B" },
  { type: "TEXT_MESSAGE_CONTENT", messageId: "A", delta: "answer." },
  { type: "TEXT_MESSAGE_END", messageId: "A" },
  { type: "RUN_FINISHED", threadId: "t", runId: "r" },
];
const recorded = await order(events);
const compacted = await order(compactEvents(events));
console.log(`events as recorded: ${recorded}`);
console.log(`events compacted: ${compacted}`);
assert.equal(recorded, "A,B");
assert.equal(compacted, "B,A");
END
node "$dir/run.mjs"
