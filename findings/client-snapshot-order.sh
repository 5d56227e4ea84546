#!/usr/bin/env bash
# @ag-ui/client 1.0.0 (npm)
#
# Behaviour: a MESSAGES_SNAPSHOT does not set the order of the messages. Those that the client has stay where they are, and the
# others go to the end.
#
# Why it matters: one would guess that the list becomes the list of the snapshot. A page that sent the user's second message without
# the history shows it above the first; a page that loads the same conversation later shows the right order. A store that folds a
# snapshot as a replacement disagrees with the page that was there.
#
# Output:
#   client had u2, snapshot u1,a1,u2: client has u2,u1,a1
#   client had nothing, snapshot u1,a1,u2: client has u1,a1,u2
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --silent --no-audit --no-fund --prefix "$dir" @ag-ui/client@1.0.0 rxjs@7.8.1
cat > "$dir/run.mjs" <<'END'
import assert from "node:assert/strict";
import { AbstractAgent } from "@ag-ui/client";
import { of } from "rxjs";

const messages = [
  { id: "u1", role: "user", content: "Good morning." },
  { id: "a1", role: "assistant", content: "Good morning!" },
  { id: "u2", role: "user", content: "What is new?" },
];

class Recorded extends AbstractAgent {
  run() {
    return of(
      { type: "RUN_STARTED", threadId: "t", runId: "r" },
      { type: "MESSAGES_SNAPSHOT", messages },
      { type: "RUN_FINISHED", threadId: "t", runId: "r" },
    );
  }
}

async function order(initialMessages) {
  const agent = new Recorded({ threadId: "t", initialMessages });
  await agent.runAgent({ runId: "r" });
  return agent.messages.map(({ id }) => id).join(",");
}

const there = await order(messages.slice(2));
const later = await order([]);
console.log(`client had u2, snapshot u1,a1,u2: client has ${there}`);
console.log(`client had nothing, snapshot u1,a1,u2: client has ${later}`);
assert.equal(there, "u2,u1,a1");
assert.equal(later, "u1,a1,u2");
END
node "$dir/run.mjs"
