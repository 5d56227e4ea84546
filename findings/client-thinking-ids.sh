#!/usr/bin/env bash
# @ag-ui/client 1.0.0 (npm)
#
# Behaviour: it turns the older THINKING_TEXT_MESSAGE_* events, which have no id, into a reasoning message with a random id.
#
# Why it matters: one would guess that an id follows from the stream, since all other message ids do. Two pages that read the same
# stream, or one page before and after a reload, have the same message under different ids. Nothing that is kept by message id (a
# rating, a scroll position) survives, and a store cannot tell which id a page has.
#
# Output:
#   two readers, same text: true, same id: false
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
      { type: "THINKING_START" },
      { type: "THINKING_TEXT_MESSAGE_START" },
      { type: "THINKING_TEXT_MESSAGE_CONTENT", delta: "Let me see." },
      { type: "THINKING_TEXT_MESSAGE_END" },
      { type: "THINKING_END" },
      { type: "RUN_FINISHED", threadId: "t", runId: "r" },
    );
  }
}

const messages = [];
for (let reader = 0; reader < 2; reader++) {
  const agent = new Recorded({ threadId: "t" });
  await agent.runAgent({ runId: "r" });
  assert.equal(agent.messages.length, 1);
  messages.push(agent.messages[0]);
}
const [one, other] = messages;
console.log(`two readers, same text: ${one.content === other.content}, same id: ${one.id === other.id}`);
assert.equal(one.role, "reasoning");
assert.equal(one.content, other.content);
assert.notEqual(one.id, other.id);
END
SUPPRESS_TRANSFORMATION_WARNINGS=true node "$dir/run.mjs"
