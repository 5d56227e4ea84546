#!/usr/bin/env bash
# @ag-ui/client 1.0.0 (npm)
#
# Behaviour: of the older `binary` parts in the messages of a MESSAGES_SNAPSHOT it
#   - drops one that repeats a modern part of the same message, but keeps two equal modern parts;
#   - keeps only the data of one that has data and a url;
#   - drops one that has only an id, and the run still succeeds.
#
# Why it matters: one would guess that each part becomes one modern part, or that an unknown part fails the run. A store that counts
# or numbers parts, or that serves attachments by id, disagrees with what the page has, and the page sends the shorter message back
# with the next run.
#
# Output:
#   image url https://example.com/a.png
#   image url https://example.com/a.png
#   image data AAAA
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --silent --no-audit --no-fund --prefix "$dir" @ag-ui/client@1.0.0 rxjs@7.8.1
cat > "$dir/run.mjs" <<'END'
import assert from "node:assert/strict";
import { AbstractAgent } from "@ag-ui/client";
import { of } from "rxjs";

const url = "https://example.com/a.png";
const mimeType = "image/png";
const modern = { type: "image", source: { type: "url", value: url, mimeType } };
const content = [
  modern,
  modern,
  { type: "binary", mimeType, url },
  { type: "binary", mimeType, url: "https://example.com/b.png", data: "AAAA" },
  { type: "binary", mimeType, id: "file-1" },
];

class Recorded extends AbstractAgent {
  run() {
    return of(
      { type: "RUN_STARTED", threadId: "t", runId: "r" },
      { type: "MESSAGES_SNAPSHOT", messages: [{ id: "u", role: "user", content }] },
      { type: "RUN_FINISHED", threadId: "t", runId: "r" },
    );
  }
}

const agent = new Recorded({ threadId: "t" });
await agent.runAgent({ runId: "r" });
const parts = agent.messages[0].content;
for (const { type, source } of parts) console.log(type, source.type, source.value);
assert.deepEqual(parts, [modern, modern, { type: "image", source: { type: "data", value: "AAAA", mimeType } }]);
END
SUPPRESS_TRANSFORMATION_WARNINGS=true node "$dir/run.mjs"
