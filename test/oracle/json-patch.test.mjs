import assert from "node:assert/strict";
import { test } from "node:test";
import { applyPatch } from "./json-patch.mjs";

const trip = () => ({ city: "Lisbon", days: ["Alfama", "Belém"], cost: { total: 10 }, "a/b": 1, "m~n": 2, "": 3 });

test("applies each operation", () => {
  for (const [patch, expected] of [
    [[{ op: "add", path: "/days/1", value: "Graça" }], { ...trip(), days: ["Alfama", "Graça", "Belém"] }],
    [[{ op: "add", path: "/days/2", value: "Graça" }], { ...trip(), days: ["Alfama", "Belém", "Graça"] }],
    [[{ op: "add", path: "/days/-", value: ["x"] }], { ...trip(), days: ["Alfama", "Belém", ["x"]] }],
    [[{ op: "add", path: "/city", value: null }], { ...trip(), city: null }],
    [[{ op: "add", path: "", value: [1] }, { op: "add", path: "/-", value: 2 }], [1, 2]],
    [[{ op: "remove", path: "/days/0" }], { ...trip(), days: ["Belém"] }],
    [[{ op: "remove", path: "" }], null],
    [[{ op: "replace", path: "/a~1b", value: 9 }], { ...trip(), "a/b": 9 }],
    [[{ op: "replace", path: "/m~0n", value: 9, unknown: true }], { ...trip(), "m~n": 9 }],
    [[{ op: "replace", path: "/", value: 9 }], { ...trip(), "": 9 }],
    [[{ op: "move", from: "/days/0", path: "/days/1" }], { ...trip(), days: ["Belém", "Alfama"] }],
    [[{ op: "move", from: "/cost/total", path: "/cost" }], { ...trip(), cost: 10 }],
    [[{ op: "move", from: "", path: "" }], trip()],
    [[{ op: "copy", from: "/cost", path: "/price" }, { op: "replace", path: "/price/total", value: 0 }], { ...trip(), price: { total: 0 } }],
    [[{ op: "test", path: "/cost", value: { total: 10.0 } }], trip()],
    [[], trip()],
  ]) {
    assert.deepEqual(applyPatch(trip(), patch), expected, JSON.stringify(patch));
  }
});

test("refuses what the RFC refuses", () => {
  for (const operation of [
    null,
    {},
    { op: "add", path: "/x" },
    { op: "add", path: "x", value: 1 },
    { op: "add", path: "/x~2", value: 1 },
    { op: "add", path: "/x/y", value: 1 },
    { op: "add", path: "/city/0", value: 1 },
    { op: "add", path: "/days/3", value: 1 },
    { op: "add", path: "/days/00", value: 1 },
    { op: "add", path: "/days/+1", value: 1 },
    { op: "remove", path: "/x" },
    { op: "remove", path: "/days/-" },
    { op: "remove", path: "/toString" },
    { op: "replace", path: "/days/2", value: 1 },
    { op: "move", path: "/x" },
    { op: "move", from: "/cost", path: "/cost/total" },
    { op: "move", from: "/days/1", path: "/days/2" },
    { op: "copy", from: "/x", path: "" },
    { op: "test", path: "/x", value: null },
    { op: "test", path: "/days", value: ["Belém", "Alfama"] },
    { op: "test", path: "/cost/total", value: "10" },
    { op: "_get", path: "/city" },
  ]) {
    assert.throws(() => applyPatch(trip(), [operation]), Error, JSON.stringify(operation));
  }
  assert.throws(() => applyPatch(trip(), { op: "remove", path: "/city" }));
});

test("leaves the given document as it was", () => {
  const document = trip();
  assert.throws(() => applyPatch(document, [{ op: "remove", path: "/city" }, { op: "remove", path: "/x" }]));
  applyPatch(document, [{ op: "remove", path: "/city" }]);
  assert.deepEqual(document, trip());
});
