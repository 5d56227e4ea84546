// Streams on a cluster of three databases: each thread is in one of them.

import type { StreamChunk } from "@tanstack/ai";
import { cluster, type TestCluster } from "@pgagui/testing";
import { expect, onTestFinished, test } from "vitest";
import { PostgresStreams, type PostgresStream } from "../src/index.ts";

const ids = Array.from({ length: 12 }, (_, i) => `thread ${i}`);
const started = (threadId: string) => ({ type: "RUN_STARTED", threadId, runId: "r" }) as unknown as StreamChunk;
const finished = (threadId: string) => ({ type: "RUN_FINISHED", threadId, runId: "r" }) as unknown as StreamChunk;
const text = (delta: string) => ({ type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta }) as unknown as StreamChunk;

/** Streams of a process of its own, as far as the databases can tell. */
function streamsOf({ nodes }: TestCluster): PostgresStreams {
  const streams = new PostgresStreams({ nodes, firstChunkDeadlineMs: 30_000 });
  onTestFinished(() => streams.close());
  return streams;
}

async function all(stream: PostgresStream): Promise<StreamChunk[]> {
  const chunks: StreamChunk[] = [];
  for await (const { chunk } of stream.read("-1")) chunks.push(chunk);
  return chunks;
}

test("streams are written, read by another process, resumed and continued over a cluster", async () => {
  const three = await cluster();
  const [here, there] = [streamsOf(three), streamsOf(three)];
  const reading = ids.map((threadId) => all(there.open({ threadId, runId: "r" }))); // before there is something
  const streams = ids.map((threadId) => here.open({ threadId, runId: "r" }));
  for (const [i, threadId] of ids.entries()) {
    expect(await streams[i]!.append([started(threadId), text("Hello.")])).toEqual(["1", "2"]);
    expect(await streams[i]!.upsert([{ chunk: text("Hello."), offset: "2" }, { chunk: text("Bye."), offset: "3" }])).toEqual(["2", "3"]);
    await streams[i]!.append([finished(threadId)]);
    await streams[i]!.close();
  }
  const chunks = ids.map((threadId) => [started(threadId), text("Hello."), text("Bye."), finished(threadId)]);
  expect(await Promise.all(reading)).toEqual(chunks);
  expect(await Promise.all(ids.map((threadId) => all(there.open({ threadId, runId: "r" }))))).toEqual(chunks);
  for (const threadId of ids) {
    const next = there.open({ threadId, runId: "r2" });
    expect(await next.append([{ type: "RUN_STARTED", threadId, runId: "r2" } as unknown as StreamChunk])).toEqual(["6"]); // 5 closed the one before
    await next.close();
  }
});

test("nothing is lost or doubled in a stream whose thread moves", async () => {
  const three = await cluster();
  const stream = streamsOf(three).open({ threadId: "t", runId: "r" });
  const reading = all(streamsOf(three).open({ threadId: "t", runId: "r" }));
  await stream.append([started("t")]);
  const sent = [started("t")];
  let isMoving = true;
  const writing = (async () => {
    while (isMoving) {
      sent.push(text(`${sent.length} `));
      expect(await stream.append([sent.at(-1)!])).toEqual([String(sent.length)]);
    }
  })();
  for (const to of ["c", "a"]) await three.move("t", to);
  isMoving = false;
  await writing;
  await stream.append([finished("t")]);
  await stream.close();
  expect(await reading).toEqual([...sent, finished("t")]);
});
