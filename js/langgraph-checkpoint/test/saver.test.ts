import { deserialize, serialize } from "node:v8";
import { cluster, cutProxy, database } from "@pgagui/testing";
import { emptyCheckpoint, type CheckpointTuple, type SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { codeOf } from "@pgagui/postgres";
import { expect, onTestFinished, test } from "vitest";
import { PgaguiSaver, type PgaguiSaverOptions } from "../src/index.ts";

function saverOf(place: string | PgaguiSaverOptions): PgaguiSaver {
  const saver = typeof place === "string" ? PgaguiSaver.fromConnString(place) : new PgaguiSaver(place);
  onTestFinished(() => saver.end());
  return saver;
}

/** Stores a lineage of checkpoints of a growing list, with writes, reads the way back and removes a thread. */
async function work(saver: PgaguiSaver, length: number, kept = ["kept"]): Promise<CheckpointTuple[]> {
  const idOf = (thread: string, step: number) => `${thread}-${String(step).padStart(3, "0")}`;
  for (const thread of [...kept, "removed"]) {
    let config: Parameters<PgaguiSaver["put"]>[0] = { configurable: { thread_id: thread, checkpoint_ns: "" } };
    for (let step = 1; step <= length; step++) {
      const checkpoint = {
        ...emptyCheckpoint(), id: idOf(thread, step), ts: "2026-01-01T00:00:00Z", channel_versions: { messages: step },
        channel_values: { messages: Array.from({ length: step }, (_, i) => `message ${i}`) },
      };
      config = await saver.put(config, checkpoint, { source: "loop", step, parents: {} }, { messages: step });
      await saver.putWrites(config, [["messages", `write ${step}`], ["bytes", new Uint8Array([step])], ["__error__", "once"]], "task");
      expect((await saver.getTuple(config))!.pendingWrites).toHaveLength(3);
    }
  }
  await saver.deleteThread("removed");
  return listOf(saver);
}

async function listOf(saver: PgaguiSaver): Promise<CheckpointTuple[]> {
  const tuples: CheckpointTuple[] = [];
  for await (const tuple of saver.list({})) tuples.push(tuple);
  return tuples;
}

test("calls whose answers are lost leave the same contents as others", async () => {
  const expected = await work(saverOf(await database()), 10);
  expect(expected).toHaveLength(10);

  const url = await database();
  const proxy = await cutProxy(url);
  let answers = 0;
  let cuts = 0;
  proxy.cutAnswers((piece) => piece.includes("checkpoint") && ++answers % 3 === 0 && ++cuts > 0);
  expect(await work(saverOf(proxy.url), 10)).toEqual(expected);
  expect(await listOf(saverOf(url))).toEqual(expected);
  expect(cuts).toBeGreaterThan(20);
});

test("what the database refuses fails at once", async () => {
  const url = await database();
  const saver = saverOf(url);
  const error: unknown = await saver.put({ configurable: { thread_id: "x".repeat(5000) } }, emptyCheckpoint(), { source: "loop", step: 1, parents: {} }, {})
    .catch((error: unknown) => error);
  expect(codeOf(error), String(error)).toBeDefined();
});

test("a serializer may make nothing but bytes", async () => {
  const serde: SerializerProtocol = {
    dumpsTyped: async (value) => ["v8", serialize(value)],
    loadsTyped: async (type, data) => {
      if (type !== "v8") throw new Error(`unknown type ${type}`);
      return deserialize(data as Uint8Array);
    },
  };
  const saver = saverOf({ connectionString: await database(), serde });
  const checkpoint = { ...emptyCheckpoint(), channel_values: { seen: new Map([[1n, new Date(0)]]) }, channel_versions: { seen: 1 } };
  const metadata = { source: "loop" as const, step: 1, parents: {} };
  const config = await saver.put({ configurable: { thread_id: "t" } }, checkpoint, metadata, { seen: 1 });
  await saver.putWrites(config, [["seen", new Set([NaN])]], "task");
  expect(await saver.getTuple(config)).toEqual({ config, checkpoint, metadata, pendingWrites: [["task", "seen", new Set([NaN])]] });
});

test("metadata may have a bigint", async () => {
  const saver = saverOf(await database());
  const metadata = { source: "loop" as const, step: 1, parents: {}, user: 2n ** 64n };
  const config = await saver.put({ configurable: { thread_id: "t" } }, emptyCheckpoint(), metadata, {});
  expect((await saver.getTuple(config))!.metadata).toEqual({ ...metadata, user: "18446744073709551616" });
});

test("a cluster has the contents and the lists of one database, also while threads move", async () => {
  const threads = Array.from({ length: 12 }, (_, i) => `thread ${i}`);
  const expected = await work(saverOf(await database()), 9, threads);
  expect(expected).toHaveLength(9 * threads.length); // some pages
  const three = await cluster();
  const saver = saverOf(three);
  expect(await work(saver, 9, threads)).toEqual(expected);

  let isMoving = true;
  const moving = (async () => {
    await three.move(threads[0]!, "c");
    await three.run("move", "0-1023", "--to", "a");
  })().finally(() => (isMoving = false));
  for (let i = 0; isMoving; i++) {
    const threadId = threads[i % threads.length]!;
    const found: CheckpointTuple[] = [];
    for await (const tuple of saver.list({ configurable: { thread_id: threadId } })) found.push(tuple);
    expect(found).toEqual(expected.filter(({ config }) => config.configurable!.thread_id === threadId));
    await saver.putWrites(found[0]!.config, [["__error__", "once"]], "task");
  }
  await moving;
  expect(await listOf(saver)).toEqual(expected);
  expect(await listOf(saverOf(three.nodes[0]!.connectionString))).toEqual(expected);
});
