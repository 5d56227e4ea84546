#!/usr/bin/env bash
# @ag-ui/client 1.0.0 (npm)
#
# Behaviour: when a run fails in the middle of a message, compactEvents() moves the message behind RUN_ERROR. The client then refuses
# the compacted events.
#
# Why it matters: one would guess that what the client compacts, the client reads. A failed run that a page could show as it happened
# no longer loads once it is compacted: the run fails at the message, and the text is lost.
#
# Output:
#   events as recorded: A
#   compacted to RUN_STARTED,RUN_ERROR,TEXT_MESSAGE_START,TEXT_MESSAGE_CONTENT
#   events compacted: Cannot send event type 'TEXT_MESSAGE_START': The run has already errored with 'RUN_ERROR'. No further events can be sent.
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

async function read(events) {
  const agent = new Recorded(events);
  try {
    await agent.runAgent({ runId: "r" });
    return agent.messages.map(({ id }) => id).join();
  } catch (error) {
    return error.message;
  }
}

const events = [
  { type: "RUN_STARTED", threadId: "t", runId: "r" },
  { type: "TEXT_MESSAGE_START", messageId: "A", role: "assistant" },
  { type: "TEXT_MESSAGE_CONTENT", messageId: "A", delta: "The answer" },
  { type: "RUN_ERROR", message: "The model is out of order." },
];
console.error = () => {};
const recorded = await read(events);
console.log(`events as recorded: ${recorded}`);
const types = compactEvents(events).map(({ type }) => type).join();
console.log(`compacted to ${types}`);
const compacted = await read(compactEvents(events));
console.log(`events compacted: ${compacted}`);
assert.equal(recorded, "A");
assert.equal(types, "RUN_STARTED,RUN_ERROR,TEXT_MESSAGE_START,TEXT_MESSAGE_CONTENT");
assert.match(compacted, /already errored/);
END
node "$dir/run.mjs"
