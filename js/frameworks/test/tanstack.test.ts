// TanStack AI with streams in PostgreSQL, at the oldest and the newest version that is allowed. Its memoryStream is the oracle.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable } from "node:stream";
import { createInterface } from "node:readline";
import { PostgresStreams } from "@pgagui/tanstack-ai";
import { cutProxy, database, listen } from "@pgagui/testing";
import * as newest from "@tanstack/ai";
import * as oldest from "@tanstack/ai-0.43";
import { fetchServerSentEvents } from "@tanstack/ai-client";
import type { StreamChunk } from "@tanstack/ai";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";

type TanStack = typeof newest;
type Adapter = newest.StreamDurability;

const versions: [string, TanStack][] = [["0.43.0", oldest as unknown as TanStack], ["0.58.0", newest]];

function streamsOf(connectionString: string): PostgresStreams {
  const streams = new PostgresStreams({ connectionString, firstChunkDeadlineMs: 30_000 });
  onTestFinished(() => streams.close());
  return streams;
}

interface Frame {
  id: string | undefined;
  data: string;
}

/** Reads the frames of a response, the first ones or all, and then cancels it. */
async function frames(response: Response, atMost = Infinity): Promise<Frame[]> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const found: Frame[] = [];
  for (let text = ""; found.length < atMost; ) {
    const { done, value } = await reader.read();
    if (done) return found;
    text += value;
    for (let end; (end = text.indexOf("\n\n")) >= 0 && found.length < atMost; text = text.slice(end + 2)) {
      const fields = text.slice(0, end).split("\n");
      found.push({
        id: fields.find((field) => field.startsWith("id: "))?.slice(4),
        data: fields.find((field) => field.startsWith("data: "))!.slice(6),
      });
    }
  }
  await reader.cancel();
  return found;
}

const data = (found: Frame[]) => found.map((frame) => frame.data);

/** A request of TanStack's client for a run. */
function request(runId: string, offset?: { lastEventId?: string; parameter?: string }): Request {
  const url = new URL("http://localhost/api/chat");
  if (offset?.parameter) url.searchParams.set("offset", offset.parameter);
  return new Request(url, { headers: { "X-Run-Id": runId, ...(offset?.lastEventId && { "Last-Event-ID": offset.lastEventId }) } });
}

const chunk = (type: string, members: object = {}) => ({ type, timestamp: 1, ...members }) as unknown as StreamChunk;
const text = (delta: string) => chunk("TEXT_MESSAGE_CONTENT", { messageId: "m1", delta });

/** What an agent may send. "throw" is a fault of its provider. */
const scripts: Record<string, (StreamChunk | "throw")[]> = {
  "an answer": [
    chunk("RUN_STARTED", { threadId: "t", runId: "r" }), chunk("TEXT_MESSAGE_START", { messageId: "m1", role: "assistant" }),
    text("Hel"), text("lo \ud83d"), text("\ude00\u0000\u2028\r\n\n"), chunk("TEXT_MESSAGE_END", { messageId: "m1" }),
    chunk("RUN_FINISHED", { threadId: "t", runId: "r", outcome: { type: "success" } }),
  ],
  "an agent loop with two ends": [
    chunk("RUN_STARTED", { threadId: "t", runId: "r" }), chunk("TOOL_CALL_START", { toolCallId: "c1", toolCallName: "search" }),
    chunk("TOOL_CALL_ARGS", { toolCallId: "c1", delta: '{"q":' }), chunk("TOOL_CALL_ARGS", { toolCallId: "c1", delta: '"x"}' }),
    chunk("TOOL_CALL_END", { toolCallId: "c1" }), chunk("RUN_FINISHED", { threadId: "t", runId: "r" }),
    chunk("TOOL_CALL_RESULT", { toolCallId: "c1", messageId: "m2", content: "found" }),
    chunk("RUN_STARTED", { threadId: "t", runId: "r" }), text("done"), chunk("RUN_FINISHED", { threadId: "t", runId: "r" }),
  ],
  "ids of the provider": [
    chunk("RUN_STARTED", { runId: "chatcmpl-1", threadId: "other", metadata: { tanstack: { model: "m" } } }), text("hi"),
    chunk("RUN_FINISHED", { runId: "chatcmpl-1", threadId: "other" }),
  ],
  "no end": [chunk("RUN_STARTED", { threadId: "t", runId: "r" }), text("and then")],
  "a fault in the middle": [chunk("RUN_STARTED", { threadId: "t", runId: "r" }), text("a"), text("b"), "throw"],
  "a fault after the end": [chunk("RUN_STARTED", { threadId: "t", runId: "r" }), chunk("RUN_FINISHED", { threadId: "t", runId: "r" }), "throw"],
  "no beginning": [text("a"), chunk("CUSTOM", { name: "progress", value: { "10": 1, "2": [null, 1e300, -0, 0.1] } }), text("b")],
  "nothing": [],
  "an error": [chunk("RUN_STARTED", { threadId: "t", runId: "r" }), chunk("RUN_ERROR", { message: "refused", code: "no" })],
  "long": [chunk("RUN_STARTED", { threadId: "t", runId: "r" }), ...Array.from({ length: 70 }, (_, i) => text(`${i} `)), chunk("RUN_FINISHED", { threadId: "t", runId: "r" })],
};

/** Plays a script, and waits for the gate before the chunk with that number. */
async function* play(script: (StreamChunk | "throw")[], gate?: { before: number; open: Promise<void> }): AsyncGenerator<StreamChunk> {
  for (const [i, step] of script.entries()) {
    if (gate?.before === i) await gate.open;
    if (step === "throw") throw new Error("the provider failed");
    yield { ...step };
  }
  if (gate && gate.before >= script.length) await gate.open;
}

describe.each(versions)("TanStack AI %s", (version, tanstack) => {
  // Chunks that TanStack makes have the current time.
  beforeAll(() => void vi.useFakeTimers({ toFake: ["Date"] }));
  afterAll(() => void vi.useRealTimers());

  test.each(Object.entries(scripts))("%s: responses and their resumption equal those of memoryStream", async (name, script) => {
    const url = await database();
    const [writing, reading] = [streamsOf(url), streamsOf(url)]; // as in two processes
    const debug = false;
    for (const batch of [1, 3, 32]) {
      const runId = `${version} ${name} ${batch}`;
      const adapters: [string, (request: Request) => Adapter, (request: Request) => Adapter][] = [
        ["memory", tanstack.memoryStream, tanstack.memoryStream],
        ["pgagui", (request) => writing.open({ request, threadId: "t" }), (request) => reading.open({ request, threadId: "t" })],
      ];
      const results = await Promise.all(adapters.map(async ([, write, read]) => {
        const whole = await frames(tanstack.toServerSentEventsResponse(play(script), { durability: { adapter: write(request(runId)), batch }, debug }));
        const resumed: string[][] = [];
        for (const { id } of whole) {
          if (id === undefined) continue;
          resumed.push(data(await frames(tanstack.resumeServerSentEventsResponse({ adapter: read(request(runId, { lastEventId: id })), debug }))));
        }
        const joined = await frames(tanstack.resumeServerSentEventsResponse({ adapter: read(request(runId, { parameter: "-1" })), debug }));
        const now = await frames(tanstack.resumeServerSentEventsResponse({ adapter: read(request(runId, { parameter: "now" })), debug }));
        const lines = await tanstack.resumeHttpResponse({ adapter: read(request(runId, { parameter: "-1" })), debug }).text();
        const snapshot = (await read(request(runId)).snapshot()).map((entry) => entry.chunk);
        const ids = joined.map((frame) => frame.id);
        expect(new Set(ids).size).toBe(joined.length);
        expect(whole.filter((frame) => frame.id !== undefined).map((frame) => frame.id)).toEqual(ids.slice(0, whole.filter((frame) => frame.id !== undefined).length));
        return {
          whole: data(whole), resumed, joined: data(joined), now,
          lines: lines.split("\n").filter(Boolean).map((line) => JSON.parse(line).chunk), snapshot: JSON.stringify(snapshot),
        };
      }));
      expect(results[1]).toEqual(results[0]);
      expect(results[0]!.joined.length).toBeGreaterThan(0);
    }
  });

  test.each(Object.entries(scripts).filter(([name]) => name !== "long"))("%s: cut at every chunk while it runs", async (name, script) => {
    const streams = streamsOf(await database());
    for (let cut = 0; cut <= script.length; cut++) {
      const runId = `${version} ${name} cut ${cut}`;
      const adapters = [tanstack.memoryStream, (request: Request) => streams.open({ request, threadId: "t" })];
      const [memory, pgagui] = await Promise.all(adapters.map(async (adapter) => {
        let open = () => {};
        const gate = { before: cut, open: new Promise<void>((resolve) => (open = resolve)) };
        const response = tanstack.toServerSentEventsResponse(play(script, gate), { durability: { adapter: adapter(request(runId)), batch: 1 }, debug: false });
        const seen = await frames(response, cut + 1); // run.accepted is the first
        const resumed = frames(tanstack.resumeServerSentEventsResponse({
          adapter: adapter(request(runId, { lastEventId: seen.at(-1)!.id! })), debug: false,
        }));
        const joined = frames(tanstack.resumeServerSentEventsResponse({ adapter: adapter(request(runId, { parameter: "-1" })), debug: false }));
        open();
        return { seen: data(seen), resumed: data(await resumed), joined: data(await joined) };
      }));
      expect(pgagui).toEqual(memory);
      expect([...pgagui!.seen, ...pgagui!.resumed]).toEqual(pgagui!.joined);
    }
  });

  test("a stream that the caller aborts", async () => {
    const streams = streamsOf(await database());
    const [memory, pgagui] = await Promise.all([tanstack.memoryStream, (request: Request) => streams.open({ request, threadId: "t" })].map(async (adapter) => {
      const abortController = new AbortController();
      async function* agent() {
        yield chunk("RUN_STARTED", { threadId: "t", runId: "r" });
        yield text("a");
        abortController.abort();
        yield text("b");
      }
      const runId = `${version} aborted`;
      await frames(tanstack.toServerSentEventsResponse(agent(), { abortController, durability: { adapter: adapter(request(runId)) }, debug: false }));
      return data(await frames(tanstack.resumeServerSentEventsResponse({ adapter: adapter(request(runId, { parameter: "-1" })), debug: false })));
    }));
    expect(pgagui).toEqual(memory);
    expect(pgagui!.at(-1)).toContain("RUN_ERROR");
  });
});

test("the adapter is a plain object, as that of memoryStream: an application may spread it and replace a method", async () => {
  const streams = streamsOf(await database());
  const [memory, pgagui] = await Promise.all([newest.memoryStream, (request: Request) => streams.open({ request, threadId: "t" })].map(async (open) => {
    const adapter = open(request("spread"));
    let appended = 0;
    const counting = {
      ...adapter, append: (chunks: StreamChunk[]) => {
        appended += chunks.length;
        return adapter.append(chunks);
      },
    };
    const { read } = { ...open(request("spread", { parameter: "-1" })) };
    await frames(newest.toServerSentEventsResponse(play(scripts["an answer"]!), { durability: { adapter: counting }, debug: false }));
    const found: StreamChunk[] = [];
    for await (const { chunk } of read("-1")) found.push(chunk);
    return { appended, found: found.slice(1), methods: Object.keys(adapter).filter((name) => !/Id$/.test(name)).sort() };
  }));
  expect(pgagui).toEqual(memory);
  expect(pgagui!.appended).toBe(8); // run.accepted is the first
});

/** The capability of TanStack AI 0.58, by its type. */
export const asUpsertable = (stream: ReturnType<PostgresStreams["open"]>): newest.UpsertableStreamDurability => stream;

test("upsert repeats what a writer stored before it crashed, and goes on, as that of memoryStream", async () => {
  const url = await database();
  const [before, after] = [streamsOf(url), streamsOf(url)]; // as in two processes
  const kinds: [() => newest.UpsertableStreamDurability, () => newest.UpsertableStreamDurability, (seq: number) => string][] = [
    [() => newest.memoryStream({ runId: "upsert" }), () => newest.memoryStream({ runId: "upsert" }), (seq) => `memory:v1:upsert:${seq}`],
    [() => before.open({ threadId: "t", runId: "upsert" }), () => after.open({ threadId: "t", runId: "upsert" }), String],
  ];
  const [memory, pgagui] = await Promise.all(kinds.map(async ([crashed, resumed, offset]) => {
    const chunks = [started, text("a"), text("b"), text("c"), finished];
    const entry = (i: number, chunk = chunks[i - 1]!) => ({ chunk, offset: offset(i) });
    expect(await crashed().append(chunks.slice(0, 3))).toEqual([1, 2, 3].map(offset));
    const stream = resumed();
    expect(await stream.upsert([entry(2), entry(3, { ...text("b"), timestamp: 2 } as StreamChunk)])).toEqual([2, 3].map(offset));
    expect(await stream.upsert([entry(3), entry(4)])).toEqual([3, 4].map(offset));
    const refused: Record<string, { chunk: StreamChunk; offset: string }[]> = {
      "a repeated offset": [entry(5), entry(5)], "a foreign offset": [entry(5), { chunk: text("x"), offset: "memory:v1:other:6" }],
      "the start": [{ chunk: text("x"), offset: "-1" }], "a hole": Array.from({ length: 2 }) as never, "backwards": [entry(7, text("x")), entry(6, text("x"))],
    };
    const outcomes: Record<string, string> = {};
    for (const [name, entries] of Object.entries(refused)) outcomes[name] = await stream.upsert(entries).then(() => "stored", () => "refused");
    expect(await stream.upsert([])).toEqual([]);
    expect(await stream.upsert([entry(1), entry(5)])).toEqual([1, 5].map(offset));
    await stream.close();
    const found = [];
    for await (const { chunk } of resumed().read("-1")) found.push({ ...chunk, timestamp: 1 });
    return { outcomes, found, offsets: (await resumed().snapshot()).map((stored) => stored.offset.replace(/.*:/, "")) };
  }));
  expect(pgagui).toEqual(memory);
  expect(Object.values(memory!.outcomes)).toEqual(Array(5).fill("refused"));
});

test("upsert changes nothing that the log has, and stores nothing at another place than asked for", async () => {
  const streams = streamsOf(await database());
  const stream = streams.open({ threadId: "t", runId: "r" });
  await stream.append([started, text("a")]);
  const other = streams.open({ threadId: "t", runId: "other" });
  await other.append([{ ...started, runId: "other" } as StreamChunk]); // has the seq 3
  const at = (offset: string, chunk: StreamChunk) => ({ chunk, offset });
  await expect(stream.upsert([at("2", text("another"))])).rejects.toThrow("is not the stored one");
  await expect(stream.upsert([at("2", text("a")), at("3", text("b"))])).rejects.toThrow("the offset 3 is not the next one");
  await expect(stream.upsert([at("4", text("b")), at("6", text("c"))])).rejects.toThrow("the offset 6 is not the next one behind 4");
  await expect(other.upsert([at("2", text("a"))])).rejects.toThrow("2 is no offset of run");
  expect((await stream.snapshot()).map(({ offset }) => offset)).toEqual(["1", "2"]);
  expect(await stream.upsert([at("4", text("b"))])).toEqual(["4"]);
  expect(await stream.append([finished])).toEqual(["5"]);
  const fresh = streams.open({ threadId: "t2", runId: "r" });
  await expect(fresh.upsert([at("2", started)])).rejects.toThrow("the offset 2 is not the next one");
  expect(await fresh.upsert([at("1", started), at("2", text("a"))])).toEqual(["1", "2"]);
});

/** A program that appends a chunk for each line that it reads, and prints the offsets. */
const writer = `
  import { createInterface } from "node:readline";
  import { PostgresStreams } from "@pgagui/tanstack-ai";
  const streams = new PostgresStreams({ connectionString: process.env.DATABASE_URL });
  const stream = streams.open({ threadId: "t", runId: "r" });
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === "close") await stream.close();
    else console.log((await stream.append([JSON.parse(line)])).join());
  }
  await streams.close();
`;

/** Starts the program in a process of its own. */
function startWriter(url: string) {
  const child = spawn(process.execPath, ["--input-type=module", "--eval", writer], {
    env: { ...process.env, DATABASE_URL: url }, stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  onTestFinished(() => void child.kill("SIGKILL"));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const append = async (chunk: StreamChunk) => {
    child.stdin.write(`${JSON.stringify(chunk)}\n`);
    return (await lines.next()).value as string;
  };
  const close = async () => {
    child.stdin.end("close\n");
    await ended;
  };
  const kill = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  return { append, close, kill };
}

const [started, finished] = [chunk("RUN_STARTED", { threadId: "t", runId: "r" }), chunk("RUN_FINISHED", { threadId: "t", runId: "r" })];

test("a reader in another process than the writer", async () => {
  const url = await database();
  const writer = startWriter(url);
  expect(await writer.append(started)).toBe("1");
  const read = frames(newest.resumeServerSentEventsResponse({ adapter: streamsOf(url).open({ request: request("r", { parameter: "-1" }), threadId: "t" }) }));
  for (let i = 0; i < 20; i++) await writer.append(text(`${i} `));
  await writer.append(finished);
  await writer.close();
  const found = await read;
  expect(found.map((frame) => frame.id)).toEqual(Array.from({ length: 22 }, (_, i) => `${i + 1}`));
  expect(found.at(-1)!.data).toContain("RUN_FINISHED");
});

test("the writer is killed: readers see what it stored, then RUN_ERROR, and the thread goes on", async () => {
  const url = await database();
  const streams = streamsOf(url);
  const { Client } = await import("pg");
  const client = new Client(url);
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(`select agui.set_setting('heartbeat_lease', '2')`);
  const writer = startWriter(url);
  await writer.append(started);
  await writer.append(text("a"));
  const reader = streams.open({ threadId: "t", runId: "r" });
  const read = (async () => {
    const found = [];
    for await (const { chunk } of reader.read("-1")) found.push(chunk);
    return found;
  })();
  // The first heartbeat makes the lease that of heartbeats.
  while (!(await client.query(`select has_heartbeat from agui.status('t', 'r')`)).rows[0].has_heartbeat) await new Promise((resolve) => setTimeout(resolve, 50));
  await writer.kill();
  const found = await read;
  expect(found.slice(0, 2)).toEqual([started, text("a")]);
  expect(found.at(-1)).toMatchObject({ type: "RUN_ERROR", code: "RUN_CUT_OFF" });
  const next = streams.open({ threadId: "t", runId: "next" });
  await next.append([{ ...started, runId: "next" } as StreamChunk]);
  await next.close();
});

test("TanStack's client, with connections that break, gets every chunk once", async () => {
  const url = await database();
  const streams = streamsOf(url);
  const server = await listen(async (incoming, outgoing) => {
    const headers = new Headers(Object.entries(incoming.headers).map(([name, value]) => [name, String(value)] as [string, string]));
    const request = new Request(`http://localhost${incoming.url}`, { headers });
    for await (const _ of incoming); // the body
    const adapter = streams.open({ request, threadId: "t" });
    const script = [started, ...Array.from({ length: 60 }, (_, i) => text(`${i} `)), finished];
    async function* slowly() {
      for (const chunk of script) {
        await new Promise((resolve) => setTimeout(resolve, 5)); // an agent takes its time
        yield { ...chunk };
      }
    }
    const response = incoming.method === "GET"
      ? newest.resumeServerSentEventsResponse({ adapter })
      : newest.toServerSentEventsResponse(slowly(), { durability: { adapter, batch: 1 } });
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    Readable.fromWeb(response.body as never).on("error", () => {}).pipe(outgoing);
  });
  const proxy = await cutProxy(`${server}/chat`);
  let pieces = 0;
  let cuts = 0;
  // The client gives up after many cuts, and after one between RUN_FINISHED and the end of the answer.
  proxy.cutAnswers((piece) => piece.includes("TEXT_MESSAGE_CONTENT") && ++pieces % 4 === 0 && cuts < 5 && ++cuts > 0);
  const connection = fetchServerSentEvents(proxy.url, { reconnect: { delayMs: 10 } });
  const found: StreamChunk[] = [];
  const ids = { threadId: "t", runId: "r" };
  for await (const chunk of connection.connect([{ role: "user", content: "Hello" }] as never, {}, undefined, ids as never)) found.push(chunk);
  expect(found.filter((chunk) => chunk.type === "TEXT_MESSAGE_CONTENT").map((chunk) => (chunk as { delta?: string }).delta)).toEqual(Array.from({ length: 60 }, (_, i) => `${i} `));
  expect(found.at(-1)!.type).toBe("RUN_FINISHED");
  expect(cuts).toBeGreaterThan(1); // a slow machine sends fewer and larger pieces
  proxy.cutAnswers(() => false); // the client gives up without a first chunk
  const joined: StreamChunk[] = [];
  for await (const chunk of connection.joinRun("r")) joined.push(chunk);
  expect(joined).toEqual(found);
});
