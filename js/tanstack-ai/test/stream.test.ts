import { setTimeout as sleep } from "node:timers/promises";
import type { StreamChunk } from "@tanstack/ai";
import { cutProxy, database, hasPooler, isMissing, pooler } from "@pgagui/testing";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { PostgresStreams, type PostgresStream, type PostgresStreamsOptions } from "../src/index.ts";

const started = { type: "RUN_STARTED", threadId: "t", runId: "r" } as unknown as StreamChunk;
const finished = { type: "RUN_FINISHED", threadId: "t", runId: "r" } as unknown as StreamChunk;
const text = (delta: string) => ({ type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta }) as unknown as StreamChunk;

function streamsOf(connectionString: string, options: PostgresStreamsOptions = {}): PostgresStreams {
  const streams = new PostgresStreams({ connectionString, firstChunkDeadlineMs: 30_000, ...options });
  onTestFinished(() => streams.close());
  return streams;
}

/** Statements for the tests, on one connection. */
async function statements(url: string) {
  const client = new pg.Client(url);
  await client.connect();
  client.on("error", () => {});
  onTestFinished(() => client.end());
  return async (text: string, values: unknown[] = []): Promise<any[]> => (await client.query(text, values)).rows;
}

async function all(stream: PostgresStream, offset = "-1", signal?: AbortSignal): Promise<StreamChunk[]> {
  const chunks: StreamChunk[] = [];
  for await (const { chunk } of stream.read(offset, signal)) chunks.push(chunk);
  return chunks;
}

test("chunks are the events of the log, and their offsets its seqs", async () => {
  const url = await database();
  const query = await statements(url);
  const stream = streamsOf(url).open({ threadId: "t", runId: "r" });
  const odd = { type: "CUSTOM", name: "odd", value: { z: 1, a: "\ud83d", nul: "\u0000", "1": 1e400 } } as unknown as StreamChunk;
  expect(await stream.append([started, odd])).toEqual(["1", "2"]);
  expect(await stream.append([])).toEqual([]);
  expect(await stream.append([finished])).toEqual(["3"]);
  const log = await query(`select payload::text as event from agui.events('t', 'r')`);
  expect(log.map(({ event }) => event)).toEqual([started, odd, finished].map((chunk) => JSON.stringify(chunk)));
  expect((await stream.snapshot()).map(({ offset }) => offset)).toEqual(["1", "2", "3"]);
  expect(JSON.stringify((await stream.snapshot())[1]!.chunk)).toBe(JSON.stringify(odd));
});

test("an unknown run has an empty snapshot and can be closed", async () => {
  const stream = streamsOf(await database()).open({ threadId: "t", runId: "r" });
  expect(await stream.snapshot()).toEqual([]);
  await stream.close();
  expect(await stream.snapshot()).toEqual([]);
});

test("ids of chunks that are not those of the stream come back, and the log has its own", async () => {
  const url = await database();
  const query = await statements(url);
  const stream = streamsOf(url).open({ threadId: "mine", runId: "mine" });
  const chunks = [
    { type: "RUN_STARTED", runId: "theirs", threadId: "theirs", timestamp: 1 },
    { type: "RUN_FINISHED", runId: "theirs", metadata: {}, threadId: "theirs", timestamp: 2 },
  ] as unknown as StreamChunk[];
  await stream.append(chunks);
  expect((await stream.snapshot()).map(({ chunk }) => JSON.stringify(chunk))).toEqual(chunks.map((chunk) => JSON.stringify(chunk)));
  const log = await query(`select payload ->> 'runId' as run, payload ->> 'threadId' as thread from agui.events('mine')`);
  expect(log).toEqual([{ run: "mine", thread: "mine" }, { run: "mine", thread: "mine" }]);
});

test("read ends when the stream is closed, not at an end of the run", async () => {
  const url = await database();
  const writer = streamsOf(url).open({ threadId: "t", runId: "r" });
  const reader = streamsOf(url).open({ threadId: "t", runId: "r" }); // as in another process
  await writer.append([started, text("1"), finished]);
  const read = reader.read("-1")[Symbol.asyncIterator]();
  const next = async () => (await read.next()).value?.chunk;
  expect([await next(), await next(), await next()]).toEqual([started, text("1"), finished]);
  const fourth = read.next();
  await writer.append([started, text("2"), finished]);
  expect([(await fourth).value?.chunk, await next(), await next()]).toEqual([started, text("2"), finished]);
  const end = read.next();
  await writer.close();
  expect(await end).toEqual({ done: true, value: undefined });
  expect(await all(reader)).toHaveLength(6);
  expect(await all(reader, "6")).toEqual([]);
  expect(await all(reader, "4")).toEqual([text("2"), finished]);
  expect(await all(reader, "now")).toEqual([]);
});

test("a run that is closed without an end has failed, and readers get what was written", async () => {
  const url = await database();
  const query = await statements(url);
  const stream = streamsOf(url).open({ threadId: "t", runId: "r" });
  await stream.append([started, text("1")]);
  const read = all(stream);
  await stream.close();
  await stream.close();
  expect(await read).toEqual([started, text("1")]);
  expect(await query(`select status, last_seq from agui.status('t', 'r')`)).toEqual([{ status: "failed", last_seq: "3" }]);
});

test("readers fail for what is not there", async () => {
  const stream = streamsOf(await database(), { firstChunkDeadlineMs: 20 }).open({ threadId: "t", runId: "r" });
  await expect(all(stream)).rejects.toThrow('run "r" of thread "t" has no chunk after 20 ms');
  await expect(all(stream, "1")).rejects.toThrow('run "r" of thread "t" is unknown');
  await expect(all(stream, "x")).rejects.toThrow('"x" is no offset');
  await stream.append([started]);
  await expect(all(stream, "2")).rejects.toThrow("offset 2 is not one of");
  expect(() => streamsOf("postgres://nowhere").open({ threadId: "" })).toThrow("threadId");
});

test("a reader from the start waits for the run, and an aborted one ends", async () => {
  const url = await database();
  const streams = streamsOf(url);
  const stream = streams.open({ threadId: "t", runId: "r" });
  const read = stream.read("-1")[Symbol.asyncIterator]();
  const first = read.next();
  await stream.append([started]);
  expect((await first).value?.chunk).toEqual(started);
  const abort = new AbortController();
  const waiting = all(stream, "1", abort.signal);
  abort.abort();
  expect(await waiting).toEqual([]);
  await read.return?.();
});

test("a run may begin as soon as the one before has its end", async () => {
  const url = await database();
  const query = await statements(url);
  const streams = streamsOf(url);
  const first = streams.open({ threadId: "t", runId: "first" });
  const second = streams.open({ threadId: "t", runId: "second" });
  const startedAs = (runId: string) => ({ ...started, runId }) as unknown as StreamChunk;
  await first.append([startedAs("first"), { ...finished, runId: "first" } as unknown as StreamChunk]);
  const read = all(streamsOf(url).open({ threadId: "t", runId: "first" }));
  await second.append([startedAs("second")]);
  await first.close(); // the log takes no more of it
  expect(await read).toHaveLength(2);
  expect(await query(`select parent_run_id from agui.status('t', 'second')`)).toEqual([{ parent_run_id: "first" }]);

  // A user who does not wait for the answer.
  const third = streams.open({ threadId: "t", runId: "third" });
  await third.append([startedAs("third")]);
  expect(await query(`select parent_run_id from agui.status('t', 'third')`)).toEqual([{ parent_run_id: "first" }]);
  await Promise.all([second.close(), third.close()]);
});

test("the input of the client is kept with the run", async () => {
  const url = await database();
  const query = await statements(url);
  const input = { threadId: "t", runId: "r", messages: [{ id: "u1", role: "user", content: "Hello" }], tools: [], context: [], state: {} };
  const stream = streamsOf(url).open({ threadId: "t", runId: "r", input });
  await stream.append([{ type: "CUSTOM", name: "run.accepted", value: {} } as unknown as StreamChunk]);
  await stream.append([started, finished]);
  await stream.close();
  const [{ messages }] = await query(`select agui.restore('t') -> 'messages' as messages`);
  expect(messages).toEqual([{ id: "u1", role: "user", content: "Hello" }]);
});

test("a request to stop aborts the controller", async () => {
  const url = await database();
  const query = await statements(url);
  const abortController = new AbortController();
  const stream = streamsOf(url).open({ threadId: "t", runId: "r", abortController });
  await stream.append([started]);
  const aborted = new Promise((resolve) => abortController.signal.addEventListener("abort", resolve));
  await query(`select agui.request_stop('t', 'r', 'enough')`);
  await aborted;
  expect(abortController.signal.reason).toBe("enough");
  await stream.close();
});

test("a writer that continues gets the tail from the log", async () => {
  const url = await database();
  await streamsOf(url).open({ threadId: "t", runId: "r" }).append([started]);
  const other = streamsOf(url).open({ threadId: "t", runId: "r" });
  expect(await other.append([text("2")])).toEqual(["2"]);
  await other.close();
  expect(await all(other)).toEqual([started, text("2")]);
});

test("two writers of a run do not mix: the last one has it", async () => {
  const url = await database();
  const [one, two] = [streamsOf(url).open({ threadId: "t", runId: "r" }), streamsOf(url).open({ threadId: "t", runId: "r" })];
  await one.append([started]);
  await two.append([text("two")]);
  await expect(one.append([text("one")])).rejects.toThrow("differs from the event in the log");
  await two.close();
});

test("a stream whose writer is gone ends with RUN_ERROR after the lease", async () => {
  const url = await database();
  const query = await statements(url);
  await query(`select agui.set_setting('heartbeat_lease', '1')`);
  const gone = new PostgresStreams({ connectionString: url });
  const writer = gone.open({ threadId: "t", runId: "r" });
  await writer.append([started, text("1")]);
  await query(`select * from agui.keep_alive(array['t'], array['r'])`);
  await gone.close(); // no more heartbeats
  // With an end, nothing can be added: readers end.
  const other = new PostgresStreams({ connectionString: url });
  await other.open({ threadId: "t2", runId: "r" }).append([started, finished]);
  await other.close();
  const [chunks, complete] = await Promise.all(["t", "t2"].map((threadId) => all(streamsOf(url).open({ threadId, runId: "r" }))));
  expect(chunks!.slice(0, 2)).toEqual([started, text("1")]);
  expect(chunks!.at(-1)).toMatchObject({ type: "RUN_ERROR", code: "RUN_CUT_OFF" });
  expect(complete).toEqual([started, finished]);
}, 60_000);

test("the next run ends one whose writer is gone, and continues from it", async () => {
  const url = await database();
  const query = await statements(url);
  await query(`select agui.set_setting('heartbeat_lease', '1')`);
  const gone = new PostgresStreams({ connectionString: url });
  await gone.open({ threadId: "t", runId: "gone" }).append([{ ...started, runId: "gone" } as unknown as StreamChunk]);
  while (!(await query(`select has_heartbeat from agui.status('t')`))[0].has_heartbeat) await sleep(20);
  await gone.close();
  while (!(await query(`select is_stale from agui.status('t')`))[0].is_stale) await sleep(50);
  const next = streamsOf(url).open({ threadId: "t", runId: "next" });
  await next.append([{ ...started, runId: "next" } as unknown as StreamChunk]);
  expect(await query(`select status, cut_off_reason is not null as is_cut_off from agui.status('t', 'gone')`)).toEqual([{ status: "cut_off", is_cut_off: true }]);
  expect(await query(`select parent_run_id from agui.status('t')`)).toEqual([{ parent_run_id: "gone" }]);
  await next.close();
});

test("a stream that goes on after an end stays open for longer than the lease", async () => {
  const url = await database();
  const query = await statements(url);
  await query(`select agui.set_setting('heartbeat_lease', '2')`);
  const writer = streamsOf(url).open({ threadId: "t", runId: "r" });
  await writer.append([started, finished]);
  const read = all(streamsOf(url).open({ threadId: "t", runId: "r" }));
  // Readers check after 5 seconds: until then and for more than a lease the writer only shows that it is alive.
  const heartbeats = async () => Number((await query(`select count(*) from agui.events('t') where payload ->> 'name' = 'pgagui.alive'`))[0].count);
  while (await heartbeats() < 7) await sleep(100);
  await writer.append([started, text("late"), finished]);
  await writer.close();
  expect(await read).toEqual([started, finished, started, text("late"), finished]);
}, 60_000);

test("calls whose answers are lost store each chunk once", async () => {
  const url = await database();
  const proxy = await cutProxy(url);
  const streams = streamsOf(proxy.url);
  const stream = streams.open({ threadId: "t", runId: "r" });
  const chunks = [started, ...Array.from({ length: 30 }, (_, i) => text(`${i} `)), finished];
  let answers = 0;
  let cuts = 0;
  proxy.cutAnswers((piece) => piece.includes("seq") && ++answers % 3 === 0 && ++cuts > 0);
  const read = all(streams.open({ threadId: "t", runId: "r" }));
  for (const [i, chunk] of chunks.entries()) expect(await stream.append([chunk])).toEqual([String(i + 1)]);
  await stream.close();
  expect(await read).toEqual(chunks);
  expect(await all(streamsOf(url).open({ threadId: "t", runId: "r" }))).toEqual(chunks);
  expect(cuts).toBeGreaterThan(10);
});

test("an outage of the database ends no stream", async () => {
  const url = await database();
  const proxy = await cutProxy(url);
  const stream = streamsOf(proxy.url).open({ threadId: "t", runId: "r" });
  await stream.append([started]);
  const read = all(stream);
  let lost = 0;
  proxy.cutAnswers(() => lost++ < 10);
  proxy.cut();
  await stream.append([text("1"), finished]);
  await stream.close();
  expect(await read).toEqual([started, text("1"), finished]);
});

test("a host of the database that vanishes ends no stream", async () => {
  const url = await database();
  const query = await statements(url);
  await query(`select agui.set_setting('heartbeat_lease', '10')`);
  const proxy = await cutProxy(url);
  const pool = new pg.Pool({ connectionString: proxy.url }); // waits for connections without end
  pool.on("error", () => {});
  onTestFinished(() => void pool.end()); // it has connections that end with the proxy
  const stream = streamsOf(proxy.url, { pool, retryTimeout: 20_000, timeout: 1_000 }).open({ threadId: "t", runId: "r" });
  await stream.append([started]);
  while (!(await query(`select has_heartbeat from agui.status('t')`))[0].has_heartbeat) await sleep(20);
  const read = all(stream);
  let silent = 0;
  proxy.swallow(() => ++silent > 0);
  const appended = stream.append([text("1"), finished]);
  while (silent < 6) await sleep(20); // those of the append, the poll and the heartbeat, and of their retries
  proxy.swallow(() => false);
  expect(await appended).toEqual(["2", "3"]);
  expect(await query(`select is_stale from agui.status('t')`)).toEqual([{ is_stale: false }]);
  await stream.close();
  expect(await read).toEqual([started, text("1"), finished]);
});

test("a call has a timeout without the option", async () => {
  const proxy = await cutProxy(await database());
  const stream = streamsOf(proxy.url, { retryTimeout: 3_000 }).open({ threadId: "t", runId: "r" });
  await stream.append([started]);
  proxy.swallow(() => true);
  await expect(stream.append([finished])).rejects.toThrow(/timeout/);
});

test("a writer that gave a call up continues behind what is stored", async () => {
  const url = await database();
  const proxy = await cutProxy(url);
  const stream = streamsOf(proxy.url, { retryTimeout: 100 }).open({ threadId: "t", runId: "r" });
  await stream.append([started]);
  let isAway = true;
  proxy.cutAnswers((piece) => isAway && piece.includes("seq")); // the call is made, its answer is lost
  await expect(stream.append([text("1")])).rejects.toThrow("Connection terminated");
  isAway = false;
  expect(await stream.append([finished])).toEqual(["3"]);
  await stream.close();
  expect(await all(stream)).toEqual([started, text("1"), finished]);
});

test("a large stream of a long thread is read in pages", async () => {
  const url = await database();
  const streams = streamsOf(url);
  const before = streams.open({ threadId: "t", runId: "before" });
  await before.append([{ ...started, runId: "before" } as unknown as StreamChunk, { ...finished, runId: "before" } as unknown as StreamChunk]);
  await before.close();
  const stream = streams.open({ threadId: "t", runId: "r" });
  const chunks = [started, ...Array.from({ length: 2_500 }, (_, i) => text(`${i} `)), finished];
  for (let i = 0; i < chunks.length; i += 32) await stream.append(chunks.slice(i, i + 32));
  const read = all(streamsOf(url).open({ threadId: "t", runId: "r" }));
  await stream.close();
  expect(await read).toEqual(chunks);
  expect(await all(stream, "2005")).toEqual(chunks.slice(2_002));
  expect(await stream.snapshot()).toHaveLength(chunks.length);
});

test.skipIf(isMissing("pgbouncer", hasPooler))("tenants with row-level security, through PgBouncer in transaction mode", async () => {
  const url = await database();
  const query = await statements(url);
  const role = `js_${new URL(url).pathname.slice(1)}`;
  await query(`create role ${role} login password 'secret' in role agui_writer`);
  onTestFinished(async () => {
    const client = new pg.Client(process.env.PGAGUI_TEST_DATABASE_URL);
    await client.connect();
    await client.query(`drop role ${role}`);
    await client.end();
  });
  await query(`call agui.enable_row_security()`);
  await query(`select agui.map_pool('${role}')`);
  const address = new URL(url);
  address.username = role;
  address.password = "secret";
  const through = await pooler(address.href);
  const tenants = Array.from({ length: 5 }, (_, i) => `tenant-${i}`);
  await Promise.all(tenants.map(async (scope) => {
    const stream = streamsOf(through, { scope }).open({ threadId: "t", runId: "r" });
    const chunks = [started, ...Array.from({ length: 20 }, (_, i) => text(`${scope} ${i}`)), finished];
    await stream.append(chunks.slice(0, 1));
    const read = all(stream);
    for (const chunk of chunks.slice(1)) await stream.append([chunk]);
    await stream.close();
    expect(await read).toEqual(chunks);
  }));
  const stranger = streamsOf(through, { scope: "stranger" }).open({ threadId: "t", runId: "r" });
  expect(await stranger.snapshot()).toEqual([]);
});
