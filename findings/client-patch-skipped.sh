#!/usr/bin/env bash
# @ag-ui/client 1.0.0 (npm)
#
# Behaviour: a STATE_DELTA that does not apply is skipped as a whole, and the run goes on. There is a warning on the console; no
# callback and no error. The next delta applies to the state before.
#
# Why it matters: one would guess that the run fails, as it does for an event of the wrong shape or in the wrong place. A store that
# refuses such a delta has no run where the page shows one; a store that applies its first operations has another state.
#
# Output:
#   resolved, state {"a":1,"c":3}, warnings 1
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
      { type: "STATE_SNAPSHOT", snapshot: { a: 1 } },
      { type: "STATE_DELTA", delta: [{ op: "replace", path: "/a", value: 2 }, { op: "replace", path: "/b", value: 2 }] },
      { type: "STATE_DELTA", delta: [{ op: "add", path: "/c", value: 3 }] },
      { type: "RUN_FINISHED", threadId: "t", runId: "r" },
    );
  }
}

let warnings = 0;
let failures = 0;
console.warn = () => { warnings++; };
const agent = new Recorded({ threadId: "t" });
const count = () => { failures++; };
await agent.runAgent({ runId: "r" }, { onRunFailed: count, onRunErrorEvent: count });
console.log(`resolved, state ${JSON.stringify(agent.state)}, warnings ${warnings}`);
assert.deepEqual(agent.state, { a: 1, c: 3 });
assert.equal(warnings, 1);
assert.equal(failures, 0);
END
node "$dir/run.mjs"
