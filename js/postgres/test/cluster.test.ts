import { randomInt } from "node:crypto";
import { cluster, cutProxy, database, type TestCluster } from "@pgagui/testing";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { Cluster } from "../src/cluster.ts";
import { bucketOf, codeOf, Database, Heartbeats, mergePages, Poller, type ClusterNode, type DatabaseOptions } from "../src/index.ts";

function open(options: DatabaseOptions): Database {
  const opened = new Database(options);
  onTestFinished(() => opened.close());
  return opened;
}

/** The databases of the nodes, as an operator reaches them, by name. */
const direct = ({ nodes }: TestCluster): Record<string, Database> =>
  Object.fromEntries(nodes.map(({ name, connectionString }) => [name, open({ connectionString })]));

const event = (name: string, threadId: string) =>
  name.startsWith("RUN_") ? { type: name, threadId, runId: "r" } : { type: "CUSTOM", name, value: {} };

/** Appends events to the run r, behind a seq, and returns the seq of the last one. */
async function append(to: Database, threadId: string, afterSeq: number, ...names: string[]): Promise<number> {
  const [row] = await to.ofThread(threadId).query<{ seq: string }>(
    "select agui.append($1, 'r', $2::json, after_seq => $3, scope => $4) as seq",
    [threadId, JSON.stringify(names.map((name) => event(name, threadId))), afterSeq, to.scope],
  );
  return Number(row!.seq);
}

async function namesOf(on: Database, threadId: string): Promise<unknown[]> {
  const rows = await on.ofThread(threadId).query<{ name: string }>(
    "select coalesce(payload ->> 'name', payload ->> 'type') as name from agui.events($1, scope => $2)", [threadId, on.scope]);
  return rows.map(({ name }) => name);
}

const failureOf = (call: Promise<unknown>) => call.then(() => undefined, (error: unknown) => error);

/** A pool, and the statements that it was given. */
function counting(connectionString: string): { pool: pg.Pool; statements: string[] } {
  const pool = new pg.Pool({ connectionString });
  pool.on("error", () => {}); // the database is dropped while connections end
  onTestFinished(() => pool.end());
  const statements: string[] = [];
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (statement: pg.QueryConfig) => unknown;
    Object.assign(client, { query: (statement: pg.QueryConfig) => (statements.push(statement.text), query(statement)) });
  });
  return { pool, statements };
}

/** Thread ids, of which each node has some. */
const ids = Array.from({ length: 30 }, (_, i) => `thread ${i}`);

test("buckets are those of agui.bucket", async () => {
  const alphabet = ["a", "Z", " ", "\\", "'", "é", "ß", "\u0301", "中", "😀", "\u{10ffff}", "\n", "\u007f"];
  const word = () => Array.from({ length: randomInt(20) }, () => alphabet[randomInt(alphabet.length)]).join("");
  const threads = [
    { scope: "", threadId: "" }, { scope: "a", threadId: "bc" }, { scope: "ab", threadId: "c" }, { scope: "s", threadId: "x".repeat(100_000) },
    ...Array.from({ length: 2000 }, () => ({ scope: word(), threadId: word() })),
  ];
  const [row] = await open({ connectionString: await database() }).query<{ buckets: number[] }>(
    "select array_agg(agui.bucket(scope, thread_id) order by no) as buckets from unnest($1::text[], $2::text[]) with ordinality as t (scope, thread_id, no)",
    [threads.map(({ scope }) => scope), threads.map(({ threadId }) => threadId)],
  );
  expect(threads.map(bucketOf)).toEqual(row!.buckets);
});

test("each thread is on its node, in any scope, and calls find it after moves of threads and buckets", async () => {
  const three = await cluster();
  const counted = three.nodes.map(({ name, connectionString }) => ({ name, ...counting(connectionString) }));
  const all = open({ nodes: counted });
  for (const scope of ["", "acme"]) {
    for (const id of ids) await append(all.inScope(scope), id, 0, "RUN_STARTED", "first");
  }
  const calls = (name: string) => counted.map(({ statements }) => statements.filter((text) => text.includes(name)).length);
  expect(calls("agui.cluster_map")).toEqual([1, 1, 1]);
  expect(calls("agui.append").reduce((sum, n) => sum + n)).toBe(2 * ids.length);
  const counts = await Promise.all(Object.values(direct(three)).map(async (on) =>
    Number((await on.query<{ n: string }>("select count(*) as n from agui.thread"))[0]!.n)));
  expect(counts.reduce((sum, n) => sum + n)).toBe(2 * ids.length);
  expect(Math.min(...counts)).toBeGreaterThan(0);

  await three.move(ids[0]!, "c");
  await three.run("move", "0-1023", "--to", "b");
  await three.move(ids[1]!, "a");
  for (const scope of ["", "acme"]) {
    for (const id of ids) await append(all.inScope(scope), id, 2, "second");
    for (const id of ids) expect(await namesOf(all.inScope(scope), id)).toEqual(["RUN_STARTED", "first", "second"]);
  }
  expect(all.nodeOf({ scope: "", threadId: ids[1]! })).toBe("a"); // alone
  expect(all.nodeOf({ scope: "", threadId: ids[2]! })).toBe("b");
  // Also a process that begins now, and a transaction.
  const other = open({ nodes: three.nodes });
  expect(await other.ofThread(ids[1]!).transaction(async (on) => (await on.query("select agui.head($1) as head", [ids[1]])).rows)).toEqual([{ head: "r" }]);
});

test("newer epochs win, and what is remembered of single threads is bounded", async () => {
  const threads = Array.from({ length: 10_002 }, (_, i) => ({ scope: "", threadId: `${i}` }));
  const place = (i: number, node: string, epoch: number, ofThread: boolean) => ({ ...threads[i]!, bucket: bucketOf(threads[i]!), node, epoch, ofThread });
  const moved = (...places: object[]) => Object.assign(new Error("moved"), { severity: "ERROR", code: "UI027", detail: JSON.stringify(places) });
  const known = new Cluster(["a", "b"].map((name) => ({ name, pool: new pg.Pool() })));
  await known.ready(async () => ({ node: "a", buckets: [{ first: 0, last: 1023, node: "a", epoch: 5 }] }));
  const nodeOf = (i: number) => known.nodeOf(threads[i]!);

  expect(known.learn(moved(place(0, "b", 5, false)))).toBe(true);
  expect(nodeOf(0)).toBe("a");
  known.learn(moved(place(0, "b", 6, false), place(1, "b", 5, true)));
  expect([nodeOf(0), nodeOf(1), nodeOf(2)]).toEqual(["b", "b", "a"]);
  known.learn(moved(place(1, "a", 5, false))); // it came back
  expect(nodeOf(1)).toBe("a");
  for (let i = 2; i < 10_002; i++) known.learn(moved(place(i, "c", 5, true)));
  expect(nodeOf(2)).toBe("c"); // and so it is used last
  known.learn(moved(place(1, "c", 5, true)));
  expect([nodeOf(1), nodeOf(2), nodeOf(3), nodeOf(4)]).toEqual(["c", "c", "a", "c"]);
  expect(known.learn(new Error("another one"))).toBe(false);
});

test("the bucket of a pinned scope is learned from one thread of it", async () => {
  const known = new Cluster(["a", "b"].map((name) => ({ name, pool: new pg.Pool() })));
  await known.ready(async () => ({ node: "a", buckets: [{ first: 0, last: 1023, node: "a", epoch: 1 }] }));
  const [one, other, foreign] = [{ scope: "acme", threadId: "1" }, { scope: "acme", threadId: "2" }, { scope: "", threadId: "1" }];
  const learn = (bucket: number, node: string, epoch: number) =>
    known.learn(Object.assign(new Error("moved"), { severity: "ERROR", code: "UI027", detail: JSON.stringify([{ ...one, bucket, node, epoch, ofThread: false }]) }));
  const pinned = (bucketOf(one) + 1) % 1024;
  expect(known.nodeOf(other)).toBe("a");
  learn(pinned, "b", 2);
  expect([known.nodeOf(one), known.nodeOf(other), known.nodeOf(foreign)]).toEqual(["b", "b", "a"]);
  learn(bucketOf(one), "a", 1); // it is pinned no longer
  expect([known.nodeOf(one), known.nodeOf(other)]).toEqual(["a", "a"]);
});

test("nothing is lost or doubled in a thread that moves while it is written and followed", async () => {
  const three = await cluster();
  const writer = open({ nodes: three.nodes });
  const heartbeats = new Heartbeats(writer, { interval: 5, onFailure: () => {} });
  onTestFinished(() => heartbeats.stop());
  // One of the followers has what the writer learns, as in the process that writes.
  const following = [writer, open({ nodes: three.nodes })].map(async (on) => {
    const poller = new Poller(on, { interval: 5 });
    onTestFinished(() => poller.stop(new Error("the test is over")));
    const follower = poller.follow({ threadId: "t", seq: 0, runId: "r" });
    const seen: unknown[] = [];
    for (let hasEnded = false; !hasEnded; ) {
      const { batches } = await follower.next({ forAtMost: 30_000 });
      expect(batches).not.toEqual([]);
      for (const batch of batches) {
        expect(batch.firstSeq).toBe(seen.length + 1);
        seen.push(...batch.events.map(({ name, type }) => name ?? type));
        hasEnded = batch.events.at(-1)!.type === "RUN_FINISHED";
      }
    }
    return seen;
  });
  let seq = await append(writer, "t", 0, "RUN_STARTED");
  heartbeats.add({ scope: "", threadId: "t", runId: "r", onSignal: () => {} });
  const sent = ["RUN_STARTED"];
  let isMoving = true;
  const writing = (async () => {
    while (isMoving) {
      sent.push(`event ${sent.length}`);
      seq = await append(writer, "t", seq, sent.at(-1)!);
    }
  })();
  for (const to of ["c", "a"]) await three.move("t", to);
  await three.run("move", String(bucketOf({ scope: "", threadId: "t" })), "--to", "b");
  isMoving = false;
  await writing;
  heartbeats.stop();
  sent.push("RUN_FINISHED");
  await append(writer, "t", seq, "RUN_FINISHED");
  expect(sent.length).toBeGreaterThan(10);
  expect(await namesOf(writer, "t")).toEqual(sent);
  expect(await Promise.all(following)).toEqual([sent, sent]);
});

test("a node that does not answer holds up only its own threads", async () => {
  const three = await cluster();
  const everywhere = open({ nodes: three.nodes });
  for (const id of ids) await append(everywhere, id, 0, "RUN_STARTED");
  const [down, up] = ["b", "a"].map((name) => ids.find((threadId) => everywhere.nodeOf({ scope: "", threadId }) === name)!) as [string, string];

  const proxy = await cutProxy(three.nodes[1]!.connectionString);
  const nodes: ClusterNode[] = [three.nodes[0]!, { name: "b", connectionString: proxy.url }, three.nodes[2]!];
  const on = open({ nodes, timeout: 1_000 });
  const reported: string[] = [];
  const listeners = { onFailure: () => void reported.push("failure"), onSuccess: () => void reported.push("success") };
  const poller = new Poller(on, { interval: 5, ...listeners });
  onTestFinished(() => poller.stop(new Error("the test is over")));
  let beats = 0;
  const beating = (threadId: string) => ({ scope: "", threadId, runId: "r", onSignal: () => void beats++ });
  const heartbeats = new Heartbeats(on, { interval: 5 });
  onTestFinished(() => heartbeats.stop());
  await everywhere.ofThread(up).query("select agui.request_stop($1)", [up]); // heartbeats say so
  await append(on, up, 1, "before");

  let isDown = true;
  proxy.swallow(() => isDown);
  const late = poller.follow({ threadId: down, seq: 1 }).next();
  await expect.poll(() => reported, { timeout: 10_000 }).toContain("failure");
  heartbeats.add(beating(down));
  heartbeats.add(beating(up));
  await expect.poll(() => beats).toBeGreaterThan(2);
  for (let seq = 2; seq < 5; seq++) {
    const next = poller.follow({ threadId: up, seq }).next();
    await append(on, up, seq, `event ${seq}`);
    expect((await next).batches).toHaveLength(1);
  }
  expect(reported).not.toContain("success");
  expect(await failureOf(append(on, down, 1, "lost"))).toBeDefined();
  isDown = false;
  await append(everywhere, down, 1, "found");
  expect((await late).batches[0]!.events).toMatchObject([{ name: "found" }]);
  await expect.poll(() => reported.at(-1), { timeout: 10_000 }).toBe("success");
});

test("nodes that are not those of the cluster are named, and get no thread", async () => {
  const three = await cluster();
  const [a, b, c] = three.nodes as [ClusterNode, ClusterNode, ClusterNode];
  const alone = { name: "c", connectionString: await database() };
  const messages = async (nodes: ClusterNode[]) => {
    const on = open({ nodes });
    const failures = await Promise.all(ids.map((id) => failureOf(append(on, id, 0, "RUN_STARTED"))));
    return new Set(failures.map((failure) => (failure instanceof Error ? failure.message : "")));
  };
  expect(await messages([a, b])).toEqual(new Set([
    "", 'pgagui: the cluster has a node "c", which nodes does not have (add its name with its pool or connectionString)',
  ]));
  expect(await messages([a, b, alone])).toEqual(new Set([
    "", 'pgagui: the database that nodes has for "c" is no node of a cluster (correct nodes, or see "pgagui cluster status")',
  ]));
  expect(await messages([{ ...b, name: "a" }, { ...a, name: "b" }, { ...b, name: "c" }])).toEqual(new Set([
    'pgagui: the database that nodes has for "a" is the node "b" (correct nodes, or see "pgagui cluster status")',
  ]));
  expect(await failureOf(open({ nodes: [a, b, c] }).query("select 1"))).toMatchObject({ message: expect.stringContaining("names no thread") });
  expect(await open(alone).query("select 1 as n from agui.thread")).toEqual([]);

  expect(() => new Database({ nodes: [] })).toThrow("nodes is empty or has a name twice");
  expect(() => new Database({ nodes: [a, a] })).toThrow("nodes is empty or has a name twice");
  expect(() => new Database({ nodes: [{ name: "a" }] })).toThrow('node "a" has no database');
  expect(() => new Database({ nodes: [a], connectionString: a.connectionString })).toThrow("nodes is given with pool or connectionString");
  expect(() => new Database({})).toThrow("no database is given");
});

test("without the nodes, a call for a thread of another node fails at once", async () => {
  const three = await cluster();
  const a = open({ connectionString: three.nodes[0]!.connectionString });
  const failures = await Promise.all(ids.map((id) => failureOf(append(a, id, 0, "RUN_STARTED"))));
  expect(new Set(failures.map(codeOf))).toEqual(new Set([undefined, "UI027"]));
});

test("a thread that stays between two nodes fails its calls and followers in time, and others go on", async () => {
  const three = await cluster();
  const all = open({ nodes: three.nodes });
  for (const id of ids) await append(all, id, 0, "RUN_STARTED");
  const [stuck, well] = ids.filter((threadId) => all.nodeOf({ scope: "", threadId }) === "a") as [string, string];
  const poller = new Poller(all, { interval: 5 });
  onTestFinished(() => poller.stop(new Error("the test is over")));
  const lost = failureOf(poller.follow({ threadId: stuck, seq: 1 }).next());
  await direct(three).a!.query("select agui_internal.fence_threads(array[agui.thread_key('', $1)], 'b')", [stuck]); // a move that was killed
  const refused = failureOf(append(all, stuck, 1, "refused"));
  const next = poller.follow({ threadId: well, seq: 1 }).next();
  await append(all, well, 1, "well");
  expect((await next).batches).toHaveLength(1);
  expect(codeOf(await lost)).toBe("UI027");
  expect(codeOf(await refused)).toBe("UI027");
  await three.move(stuck, "b"); // goes on
  expect(await append(all, stuck, 1, "taken")).toBe(2);
});

test("one database has no calls for a cluster", async () => {
  const { pool, statements } = counting(await database());
  const on = open({ pool });
  const poller = new Poller(on, { interval: 5 });
  onTestFinished(() => poller.stop(new Error("the test is over")));
  await append(on, "t", 0, "RUN_STARTED");
  await poller.follow({ threadId: "t", seq: 0 }).next();
  const heartbeats = new Heartbeats(on);
  onTestFinished(() => heartbeats.stop());
  heartbeats.add({ scope: "", threadId: "t", runId: "r", onSignal: () => {} });
  await heartbeats.beat({ scope: "", threadId: "t" });
  expect(statements.map((text) => /agui\.(append|poll|keep_alive)/.exec(text)?.[1])).toEqual(["append", "poll", "keep_alive"]);
});

test("pages of lists are merged in order, without doubles, and none is left out", () => {
  const order = { placeOf: (cursor: string) => cursor, idOf: (item: { cursor: string; id: string }) => item.id };
  const numbers = (n: number) => Array.from({ length: n }, (_, i) => i);
  for (let round = 0; round < 200; round++) {
    const size = 1 + randomInt(4);
    const lists = numbers(1 + randomInt(4)).map((node) =>
      numbers(randomInt(12)).map((i) => ({ cursor: String.fromCodePoint(0x100 + randomInt(200)) + node + i, id: `${node} ${i}`, isListed: i % 3 > 0 })));
    if (lists.length > 1 && lists[0]!.length > 0) lists[1]!.push({ ...lists[0]![0]! }); // a thread that was moved
    const greatestFirst = (a: { cursor: string }, b: { cursor: string }) => (a.cursor < b.cursor ? 1 : -1);
    lists.forEach((list) => list.sort(greatestFirst));
    const expected = [...new Map(lists.flat().map((item) => [item.id, item])).values()].filter(({ isListed }) => isListed).sort(greatestFirst);
    const got: unknown[] = [];
    for (let cursor: string | null = null, more = true; more; ) {
      const pages = lists.map((list) => {
        const left = list.filter((item) => cursor === null || item.cursor < cursor);
        const examined = left.slice(0, size); // a search that found little has a short page that is not the last
        return { items: examined.filter(({ isListed }) => isListed), next: left.length > size ? examined.at(-1)!.cursor : null };
      });
      const page = mergePages(pages, size, order);
      expect(page.items.length).toBeLessThanOrEqual(size);
      got.push(...page.items);
      cursor = page.next;
      more = cursor !== null;
    }
    expect(got).toEqual(expected);
  }
});
