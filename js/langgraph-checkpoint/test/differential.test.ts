// The saver and LangGraph's MemorySaver give the same results for the same calls. Known differences: MemorySaver stores the values
// of each checkpoint whole, ours each version of a channel once, so versions change with values here, as in LangGraph; a value
// that is a Uint8Array itself, and not inside of another, comes back from ours, while MemorySaver fails to load it as a write;
// getTuple of MemorySaver returns the config that it was given.

import { MemorySaver, type BaseCheckpointSaver, type Checkpoint, type CheckpointTuple } from "@langchain/langgraph-checkpoint";
import { HumanMessage } from "@langchain/core/messages";
import { cluster, database } from "@pgagui/testing";
import { expect, onTestFinished, test } from "vitest";
import { PgaguiSaver, type PgaguiSaverOptions } from "../src/index.ts";

async function saver(options?: PgaguiSaverOptions): Promise<PgaguiSaver> {
  const opened = new PgaguiSaver(options ?? { connectionString: await database() });
  onTestFinished(() => opened.end());
  return opened;
}

const checkpointOf = (id: string, channel_values: Record<string, unknown>, channel_versions: Record<string, number>): Checkpoint =>
  ({ v: 4, id, ts: "2026-01-01T00:00:00.000Z", channel_values, channel_versions, versions_seen: {} });
const configOf = (checkpoint_id?: string, checkpoint_ns = "") => ({ configurable: { thread_id: "t", checkpoint_ns, ...(checkpoint_id && { checkpoint_id }) } });

test("two branches of a checkpoint keep their own values", async () => {
  const pg = await saver();
  const first = pg.getNextVersion(undefined);
  await pg.put(configOf(), checkpointOf("1", { list: ["root"] }, { list: first }), { source: "loop", step: 1, parents: {} }, { list: first });
  for (const branch of ["2a", "2b"]) {
    const version = pg.getNextVersion(first);
    expect(version).toBeGreaterThan(first);
    await pg.put(configOf("1"), checkpointOf(branch, { list: [branch] }, { list: version }), { source: "fork", step: 2, parents: {} }, { list: version });
  }
  for (const branch of ["2a", "2b"]) {
    expect((await pg.getTuple(configOf(branch)))!.checkpoint.channel_values).toEqual({ list: [branch] });
  }
});

test("channels may have the names of members that all objects have", async () => {
  const names = ["constructor", "toString", "__error__"];
  const [expected, got] = await Promise.all([new MemorySaver(), await saver()].map(async (saver) => {
    await saver.put(configOf(), checkpointOf("1", { toString: 1 }, { toString: 1, valueOf: 1 }), { source: "loop", step: 1, parents: {} }, { toString: 1, valueOf: 1 });
    await saver.putWrites(configOf("1"), names.map((name) => [name, `value of ${name}`]), "task");
    return (await saver.getTuple(configOf("1")))!;
  }));
  expect(got!.checkpoint).toEqual(expected!.checkpoint);
  expect(new Map(got!.pendingWrites!.map(([, name, value]) => [name, value]))).toEqual(new Map(names.map((name) => [name, `value of ${name}`])));
});

test("a value that has no JSON is undefined", async () => {
  const pg = await saver();
  const values = { call: () => 1, mark: Symbol("mark"), text: "kept" };
  const versions = { call: 1, mark: 1, text: 1 };
  await pg.put(configOf(), checkpointOf("1", values, versions), { source: "loop", step: 1, parents: {} }, versions);
  await pg.putWrites(configOf("1"), Object.entries(values), "task");
  const { checkpoint, pendingWrites } = (await pg.getTuple(configOf("1")))!;
  expect(checkpoint.channel_values).toEqual({ text: "kept" });
  expect(pendingWrites).toEqual([["task", "call", undefined], ["task", "mark", undefined], ["task", "text", "kept"]]);
});

test("a checkpoint of an old format is the same at each read", async () => {
  const savers = [new MemorySaver(), await saver()];
  const [expected, got] = await Promise.all(savers.map(async (saver) => {
    await saver.put(configOf("0"), { ...checkpointOf("1", {}, {}), v: 3 }, { source: "loop", step: 1, parents: {} }, {});
    return (await saver.getTuple(configOf("1")))!.checkpoint;
  }));
  expect(got).toEqual(expected);
});

/** Numbers from 0 to below `n`, the same for the same seed. */
function randomNumbers(seed: number): (n: number) => number {
  let state = seed + 1;
  return (n) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % n;
  };
}

const values: (() => unknown)[] = [
  () => undefined, () => null, () => "", () => "a\u0000b\ud800c\\u0000\\", () => new Date(0), () => new Map([["a", new Set([1])]]), () => /a\/b/gi,
  () => new Error("failed"), () => ({ bytes: new Uint8Array([0, 255]) }), () => new HumanMessage({ content: "hello \u0000 😀", id: "m1" }),
  () => Array.from({ length: 90 }).reduce((inner) => [{ inner }], 1), () => Array.from({ length: 300 }, (_, n) => ({ n: n % 7 })), () => [], () => ({}), () => -0.5,
];

const inCluster = async () => ({ nodes: (await cluster()).nodes });

test.each<[string, number, (() => Promise<PgaguiSaverOptions>)?]>([
  ["one database", 1], ["one database", 2], ["one database", 3], ["one database", 4], ["a cluster", 5, inCluster],
])("random calls have the results of MemorySaver (%s, seed %i)", async (_, seed, options) => {
  const random = randomNumbers(seed);
  const pg = await saver(await options?.());
  const both: BaseCheckpointSaver[] = [new MemorySaver(), pg];
  const equal = async (call: (saver: BaseCheckpointSaver) => Promise<unknown>) => {
    const [expected, got] = await Promise.all(both.map(call));
    expect(got).toEqual(expected);
  };
  const known = new Map<string, Checkpoint>();
  for (let step = 0; step < 60; step++) {
    const namespace = ["", "", "child:1"][random(3)]!;
    const id = String(step).padStart(3, "0");
    const parent = String(Math.max(0, step - 1 - random(4))).padStart(3, "0");
    switch (random(6)) {
      case 0: case 1: case 2: {
        const before = known.get(namespace + parent);
        const checkpoint = checkpointOf(id, { ...before?.channel_values }, { ...(before?.channel_versions as Record<string, number>) });
        const changed: Record<string, number> = {};
        for (const channel of ["messages", "state", 'a "strange" \\ one']) {
          if (random(2) === 0) {
            const version = pg.getNextVersion(checkpoint.channel_versions[channel] as number | undefined);
            checkpoint.channel_values[channel] = values[random(values.length)]!();
            checkpoint.channel_versions[channel] = changed[channel] = version;
          }
        }
        known.set(namespace + id, checkpoint);
        const metadata = { source: "loop" as const, step: step % 3, parents: {} };
        await equal((saver) => saver.put(configOf(before && parent, namespace), checkpoint, metadata, changed));
        break;
      }
      case 3: {
        const value = values[random(values.length)]!();
        const channel = ["messages", "__error__", "__interrupt__", "__resume__"][random(4)]!;
        const [task, path] = [`task ${random(2)}`, `path ${random(2)}`];
        // A node with two interrupts writes __resume__ twice in one call.
        const writes: [string, unknown][] = [...(random(2) === 0 ? [[channel, [step]] as [string, unknown]] : []), [channel, value], ["state", step]];
        await equal((saver) => saver.putWrites(configOf(parent, namespace), writes, task, path));
        break;
      }
      case 4: {
        const wanted = random(2) === 0 ? undefined : parent;
        await equal(async (saver) => (await saver.getTuple(configOf(wanted, namespace)))?.checkpoint);
        break;
      }
      default:
        if (random(20) === 0) {
          await equal((saver) => saver.deleteThread("t"));
          known.clear();
        }
    }
  }
  const all = async (list: AsyncGenerator<CheckpointTuple>) => {
    const tuples: CheckpointTuple[] = [];
    for await (const tuple of list) tuples.push(tuple);
    return tuples;
  };
  for (const namespace of ["", "child:1"]) {
    for (const options of [{}, { limit: 3 }, { limit: 0 }, { before: configOf("030") }, { filter: { step: 1 } }, { filter: { step: 1 }, limit: 2, before: configOf("040") }]) {
      await equal((saver) => all(saver.list(configOf(undefined, namespace), options)));
    }
    for (const id of known.keys()) {
      await equal((saver) => saver.getTuple(configOf(id.slice(-3), namespace)));
      await equal((saver) => saver.getDeltaChannelHistory({ config: configOf(id.slice(-3), namespace), channels: ["messages", "state"] }));
    }
  }
  await equal((saver) => saver.deleteThread("t"));
  await equal((saver) => all(saver.list(configOf())));
});
