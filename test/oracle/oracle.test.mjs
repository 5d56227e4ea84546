import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

const oracle = fileURLToPath(new URL("oracle.mjs", import.meta.url));

/** The oracle's answers to streams. */
function ask(flags, ...streams) {
  const input = streams.map((events) => JSON.stringify({ events }) + "\n").join("");
  const { status, stdout, stderr } = spawnSync(process.execPath, [oracle, ...flags], { input, encoding: "utf8" });
  assert.equal(status, 0, stderr);
  assert.equal(stderr, "");
  return stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
}

const snapshot = (state) => ({ type: "STATE_SNAPSHOT", snapshot: state });
const delta = (...operations) => ({ type: "STATE_DELTA", delta: operations });

test("folds messages, state and interrupts", () => {
  const interrupts = [{ id: "approval", reason: "approval" }];
  const [answer] = ask([], [
    { type: "RUN_STARTED", threadId: "t", runId: "r", input: { messages: [{ id: "u", role: "user", content: "hi" }] } },
    { type: "TEXT_MESSAGE_CHUNK", messageId: "a", delta: "hel" },
    { type: "TEXT_MESSAGE_CHUNK", delta: "lo" },
    delta({ op: "add", path: "/n", value: 1 }),
    { type: "RUN_FINISHED", threadId: "t", runId: "r", outcome: { type: "interrupt", interrupts } },
  ]);
  assert.deepEqual(answer, {
    messages: [{ id: "u", role: "user", content: "hi" }, { id: "a", role: "assistant", content: "hello" }],
    state: { n: 1 },
    interrupts,
  });
});

test("answers each stream on its own, in order", () => {
  const answers = ask([], [snapshot({ n: 1 })], [], [snapshot(3)]);
  assert.deepEqual(answers.map(({ state }) => state), [{ n: 1 }, {}, 3]);
});

test("says what the client holds after an error", () => {
  const [answer] = ask([], [snapshot({ n: 1 }), { type: "TEXT_MESSAGE_CHUNK", delta: "of no message" }, snapshot({ n: 2 })]);
  assert.equal(answer.error, "First TEXT_MESSAGE_CHUNK must have a messageId");
  assert.deepEqual(answer.state, { n: 1 });
});

test("verifies", () => {
  const run = { threadId: "t", runId: "r" };
  const [accepted, refused] = ask(
    ["--verify"],
    [{ type: "RUN_STARTED", ...run }, { type: "RUN_FINISHED", ...run }],
    [{ type: "RUN_STARTED", ...run }, { type: "RUN_FINISHED", ...run }, snapshot({})],
  );
  assert.equal(accepted.verified, true);
  assert.equal(refused.verified, false);
  assert.match(refused.verifyError, /already finished/);
  assert.equal(refused.error, undefined);
});

test("refuses input that is no stream", () => {
  const { status, stderr } = spawnSync(process.execPath, [oracle], { input: "[]\n", encoding: "utf8" });
  assert.equal(status, 2);
  assert.match(stderr, /line 1 is not an object with a list "events"/);
});

test("seeds the state from the input, when asked for ours", () => {
  const stream = [
    snapshot({ n: 1 }),
    { type: "RUN_STARTED", threadId: "t", runId: "r", input: { state: { n: 2 } } },
    delta({ op: "add", path: "/m", value: 3 }),
    { type: "RUN_STARTED", threadId: "t", runId: "s", input: { state: null } },
  ];
  assert.deepEqual(ask([], stream)[0].state, { n: 1, m: 3 });
  assert.deepEqual(ask(["--ours"], stream)[0].state, { n: 2, m: 3 });
});

test("reads the proposals' spellings, when asked for ours", () => {
  const [answer] = ask(["--ours"], [
    { type: "RUN_STARTED", threadId: "t", runId: "r", input: { messages: ["hi", "hi"] } },
    { type: "STATE_SNAPSHOT", state: { n: 1 } },
    { type: "STATE_DELTA", patch: { op: "add", path: "/m", value: 2 } },
    { type: "STATE_DELTA", patch: [{ op: "add", path: "/l", value: 3 }] },
    { type: "ACTIVITY", messageId: "p", activityType: "PLAN", snapshot: { tasks: ["read"] } },
    { type: "ACTIVITY", messageId: "p", activityType: "PLAN", patch: { op: "add", path: "/tasks/-", value: "write" } },
    { type: "ACTIVITY", messageId: "q", activityType: "PLAN", snapshot: {}, patch: { op: "add", path: "/done", value: true } },
  ]);
  assert.deepEqual(answer, {
    messages: [
      { role: "user", content: "hi" },
      { role: "user", content: "hi" },
      { id: "p", role: "activity", activityType: "PLAN", content: { tasks: ["read", "write"] } },
      { id: "q", role: "activity", activityType: "PLAN", content: { done: true } },
    ],
    state: { n: 1, m: 2, l: 3 },
    interrupts: [],
  });
});

// That the strict patches reach the client: each state comes out one way without --ours and another way with it.
for (const { name, state, patch, client, ours } of [
  { name: "an index with a leading zero", state: [0], patch: [{ op: "add", path: "/01", value: 1 }], client: [0, 1], ours: [0] },
  {
    name: "the operation _get",
    state: { a: 1 },
    patch: [{ op: "_get", path: "/a" }, { op: "add", path: "/b", value: 2 }],
    client: { a: 1, b: 2 },
    ours: { a: 1 },
  },
  {
    name: "an add below a scalar",
    state: 5,
    patch: [{ op: "add", path: "/a", value: 1 }, { op: "replace", path: "", value: 6 }],
    client: 6,
    ours: 5,
  },
  {
    name: "a missing value copied to the whole document",
    state: { a: 1 },
    patch: [{ op: "copy", from: "/b", path: "" }, { op: "replace", path: "", value: 6 }],
    client: 6,
    ours: { a: 1 },
  },
  {
    name: "a missing value moved to the whole document",
    state: { a: 1 },
    patch: [{ op: "move", from: "/b", path: "" }, { op: "replace", path: "", value: 6 }],
    client: 6,
    ours: { a: 1 },
  },
  { name: "a move to an index that goes with the value", state: [1, 2], patch: [{ op: "move", from: "/0", path: "/2" }], client: [2, 1], ours: [1, 2] },
  {
    name: "the key __proto__",
    state: {},
    patch: [{ op: "add", path: "/__proto__", value: 1 }],
    client: {},
    ours: JSON.parse('{"__proto__":1}'),
  },
]) {
  test(`patches after RFC 6902, when asked for ours: ${name}`, () => {
    const stream = [snapshot(state), delta(...patch)];
    assert.equal(JSON.stringify(ask([], stream)[0].state), JSON.stringify(client));
    assert.equal(JSON.stringify(ask(["--ours"], stream)[0].state), JSON.stringify(ours));
  });
}

test("never merges messages without an id, when asked for ours", () => {
  const [answer] = ask(["--ours"], [
    { type: "RUN_STARTED", threadId: "t", runId: "r", input: { messages: [{ role: "user", content: "a" }, { id: 7, role: "user", content: "b" }] } },
    { type: "RUN_STARTED", threadId: "t", runId: "s", input: { messages: [{ role: "user", content: "a" }, { id: 7, role: "user", content: "b" }] } },
  ]);
  assert.deepEqual(answer.messages, [
    { role: "user", content: "a" },
    { role: "user", content: "b", id: 7 },
    { role: "user", content: "a" },
    { role: "user", content: "b", id: 7 },
  ]);
  const [replaced] = ask(["--ours"], [
    { type: "MESSAGES_SNAPSHOT", messages: [{ role: "user", content: "a" }, { id: "m", role: "user", content: "m" }] },
    { type: "MESSAGES_SNAPSHOT", messages: ["b", { id: "m", role: "user", content: "m" }] },
  ]);
  assert.deepEqual(replaced.messages, [{ id: "m", role: "user", content: "m" }, { role: "user", content: "b" }]);
});

test("reads a null in the proposals' spellings as absent, when asked for ours", () => {
  const [answer] = ask(["--ours"], [
    { type: "STATE_DELTA", delta: null, patch: { op: "add", path: "/n", value: 1 } },
    { type: "ACTIVITY", messageId: "p", activityType: "PLAN", snapshot: null, patch: { op: "add", path: "/n", value: 1 } },
    { type: "ACTIVITY", messageId: "q", activityType: "PLAN", snapshot: {}, patch: null },
  ]);
  assert.deepEqual(answer.state, { n: 1 });
  assert.deepEqual(answer.messages, [{ id: "q", role: "activity", activityType: "PLAN", content: {} }]);
});

test("answers with an error where the client holds what JSON cannot say", () => {
  const stream = [snapshot({ a: 1 }), delta({ op: "move", from: "", path: "/b" })];
  assert.match(ask([], stream)[0].error, /circular/);
  assert.deepEqual(ask(["--ours"], stream)[0].state, { a: 1 });
});
