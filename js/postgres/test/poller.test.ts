import { setTimeout as sleep } from "node:timers/promises";
import { cutProxy, database } from "@pgagui/testing";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { Database, Poller, type Follower, type PollerOptions } from "../src/index.ts";

function open(connectionString: string): Database {
  const opened = new Database({ connectionString });
  onTestFinished(() => opened.close());
  return opened;
}

function pollerOf(on: Database, options: Partial<PollerOptions> = {}): Poller {
  const poller = new Poller(on, { interval: 5, ...options });
  onTestFinished(() => poller.stop(new Error("the test is over")));
  return poller;
}

/** Appends a batch of custom events to the run r, which begins with the first one. */
async function append(to: Database, threadId: string, ...names: string[]): Promise<void> {
  const events = names.map((name) => (name.startsWith("RUN_") ? { type: name, threadId, runId: "r" } : { type: "CUSTOM", name, value: {} }));
  await to.query("select agui.append($1, 'r', $2::json, scope => $3)", [threadId, JSON.stringify(events), to.scope]);
}

const namesOf = async (follower: Follower) =>
  (await follower.next({ forAtMost: 5000 })).batches.flatMap(({ events }) => events.map((event) => event.name ?? event.type));

test("followers get what is new in their thread and scope", async () => {
  const all = open(await database());
  const acme = all.inScope("acme");
  await append(all, "t", "RUN_STARTED", "a", "b");
  await append(acme, "t", "RUN_STARTED", "acme's");
  const poller = pollerOf(all);
  const followers = [
    poller.follow({ threadId: "t", seq: 0 }), poller.follow({ threadId: "t", seq: 2 }), poller.follow({ threadId: "t", seq: 0, scope: "acme" }),
    poller.follow({ threadId: "t", seq: 2 }),
  ];
  expect(await Promise.all(followers.map(namesOf))).toEqual([["RUN_STARTED", "a", "b"], ["b"], ["RUN_STARTED", "acme's"], ["b"]]);
  const next = Promise.all(followers.map(namesOf));
  await append(acme, "t", "c");
  await append(all, "t", "d", "RUN_FINISHED");
  expect(await next).toEqual([["d", "RUN_FINISHED"], ["d", "RUN_FINISHED"], ["c"], ["d", "RUN_FINISHED"]]);
});

test("a wait ends with its signal, its time and the poller", async () => {
  const poller = pollerOf(open(await database()));
  const follower = poller.follow({ threadId: "t", seq: 0 });
  expect(await follower.next({ forAtMost: 20 })).toEqual({ batches: [], isAll: true });
  const left = new Error("left");
  await expect(follower.next({ signal: AbortSignal.abort(left) })).rejects.toBe(left);
  const controller = new AbortController();
  const waiting = follower.next({ signal: controller.signal });
  controller.abort(left);
  await expect(waiting).rejects.toBe(left);
  const last = follower.next();
  poller.stop(left);
  await expect(last).rejects.toBe(left);
});

test("a follower hears that an answer which was full was the last", async () => {
  const on = open(await database());
  await append(on, "t", "RUN_STARTED");
  for (let i = 2; i < 100; i++) await append(on, "t", `${i}`);
  await append(on, "t", "RUN_FINISHED");
  const follower = pollerOf(on).follow({ threadId: "t", seq: 0 });
  const first = await follower.next();
  expect(first.batches).toHaveLength(100); // as many as an answer may have
  expect(first.batches.at(-1)).toMatchObject({ runId: "r", hasEnded: true });
  const { isAll, batches } = first.isAll ? first : await follower.next({ forAtMost: 20_000 });
  expect([isAll, batches.length]).toEqual([true, first.isAll ? 100 : 0]);
  expect(follower.hasMore).toBe(false);
});

test("a follower fails if its thread cannot be read or its writer is gone, and others do not", async () => {
  const on = open(await database());
  await on.query("select agui.set_setting('heartbeat_lease', '1')");
  await append(on, "erased", "RUN_STARTED", "RUN_FINISHED");
  for (const threadId of ["quiet", "well"]) await append(on, threadId, "RUN_STARTED");
  await on.query("select from agui.keep_alive(array['quiet'], array['r'])");
  const poller = pollerOf(on);
  const well = poller.follow({ threadId: "well", seq: 1 }).next();
  const quiet = poller.follow({ threadId: "quiet", seq: 1, runId: "r" }).next();
  const erased = poller.follow({ threadId: "erased", seq: 2 }).next();
  const beyond = poller.follow({ threadId: "well", seq: 7 }).next();
  const failures = Promise.all([
    expect(beyond).rejects.toThrow('thread "well" cannot be read behind seq 7: the log was rewound'),
    expect(erased).rejects.toThrow('thread "erased" cannot be read behind seq 2: the thread was erased'),
    expect(quiet).rejects.toThrow("the process that wrote the run is gone"),
  ]);
  await on.query("select agui.erase('erased')");
  await failures;
  await append(on, "well", "a");
  expect((await well).batches).toHaveLength(1);
});

test("what is wrong with the polls of one scope fails no followers of another one", async () => {
  const pool = new pg.Pool({ connectionString: await database() });
  pool.on("error", () => {}); // the database is dropped while connections end
  onTestFinished(() => pool.end());
  const costly = Object.assign(new Error("out of memory"), { severity: "ERROR", code: "53200" });
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (statement: pg.QueryConfig) => unknown;
    Object.assign(client, {
      query: (statement: pg.QueryConfig) => (JSON.stringify(statement.values ?? []).includes("costly") ? Promise.reject(costly) : query(statement)),
    });
  });
  const all = new Database({ pool });
  const poller = pollerOf(all);
  const acme = poller.follow({ threadId: "costly", seq: 0, scope: "acme" }).next();
  const well = namesOf(poller.follow({ threadId: "t", seq: 0 }));
  await expect(acme).rejects.toBe(costly);
  await append(all, "t", "RUN_STARTED");
  expect(await well).toEqual(["RUN_STARTED"]);
});

test("an outage is reported and retried, for as long as the poller was made to", async () => {
  const url = await database();
  const proxy = await cutProxy(url);
  const reported: string[] = [];
  const through = open(proxy.url);
  const patient = pollerOf(through, { onFailure: () => void reported.push("failure"), onSuccess: () => void reported.push("success") });
  const hasty = pollerOf(through, { forAtMost: 50 });
  let isAway = true;
  proxy.cutAnswers(() => isAway);
  const waiting = namesOf(patient.follow({ threadId: "t", seq: 0 }));
  await expect(hasty.follow({ threadId: "t", seq: 0 }).next()).rejects.toThrow("Connection terminated");
  while (!reported.includes("failure")) await sleep(5);
  isAway = false;
  await append(open(url), "t", "RUN_STARTED");
  expect(await waiting).toEqual(["RUN_STARTED"]);
  await expect.poll(() => reported.at(-1)).toBe("success");
});
