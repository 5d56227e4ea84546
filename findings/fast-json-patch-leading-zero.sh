#!/usr/bin/env bash
# fast-json-patch 3.1.1 (npm), which @ag-ui/client 1.0.0 applies STATE_DELTA with
#
# Behaviour: the path /list/01 means element 1. RFC 6902 allows no leading zero in an array index. Without validation every operation
# takes it; with validation `add` and `test` still do, and `replace` and `remove` refuse it.
#
# Why it matters: one would guess that validation refuses the index for all operations, or for none. A store that follows the RFC
# drops a delta that the client of the page applies, and their states differ from then on.
#
# Output:
#   add     unvalidated ["a","N","b","c"] validated ["a","N","b","c"]
#   test    unvalidated ["a","b","c"] validated ["a","b","c"]
#   replace unvalidated ["a","N","c"] validated OPERATION_PATH_UNRESOLVABLE
#   remove  unvalidated ["a","c"] validated OPERATION_PATH_UNRESOLVABLE
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --silent --no-audit --no-fund --prefix "$dir" fast-json-patch@3.1.1
cat > "$dir/run.mjs" <<'END'
import assert from "node:assert/strict";
import jsonpatch from "fast-json-patch";

function apply(operation, validate) {
  try {
    return JSON.stringify(jsonpatch.applyPatch({ list: ["a", "b", "c"] }, [operation], validate).newDocument.list);
  } catch (error) {
    return error.name;
  }
}

const path = "/list/01";
const seen = {};
const operations = [
  { op: "add", path, value: "N" },
  { op: "test", path, value: "b" },
  { op: "replace", path, value: "N" },
  { op: "remove", path },
];
for (const operation of operations) {
  seen[operation.op] = [apply(operation, false), apply(operation, true)];
  console.log(`${operation.op.padEnd(7)} unvalidated ${seen[operation.op][0]} validated ${seen[operation.op][1]}`);
}
assert.deepEqual(seen, {
  add: ['["a","N","b","c"]', '["a","N","b","c"]'],
  test: ['["a","b","c"]', '["a","b","c"]'],
  replace: ['["a","N","c"]', "OPERATION_PATH_UNRESOLVABLE"],
  remove: ['["a","c"]', "OPERATION_PATH_UNRESOLVABLE"],
});
END
node "$dir/run.mjs"
