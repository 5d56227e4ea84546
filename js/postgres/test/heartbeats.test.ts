import { setTimeout as sleep } from "node:timers/promises";
import { cutProxy, database } from "@pgagui/testing";
import { expect, onTestFinished, test } from "vitest";
import { Database, Heartbeats, type Beating, type HeartbeatOptions, type Signal } from "../src/index.ts";

function open(connectionString: string): Database {
  const opened = new Database({ connectionString });
  onTestFinished(() => opened.close());
  return opened;
}

function heartbeatsOf(on: Database, options: HeartbeatOptions): Heartbeats {
  const heartbeats = new Heartbeats(on, options);
  onTestFinished(() => heartbeats.stop());
  return heartbeats;
}

/** A run that has begun, and what heartbeats say about it. */
async function begin(on: Database, threadId: string, onSignal = (_: Signal) => {}): Promise<Beating> {
  await on.query("select agui.append($1, 'r', $2::json, scope => $3)", [threadId, `[{"type": "RUN_STARTED"}]`, on.scope]);
  return { scope: on.scope, threadId, runId: "r", onSignal };
}

const isAlive = async (on: Database, threadId: string) =>
  (await on.query<{ has_heartbeat: boolean }>("select has_heartbeat from agui.status($1, 'r', $2)", [threadId, on.scope]))[0]!.has_heartbeat;

test("heartbeats are those of all scopes, and of runs that are added meanwhile", async () => {
  const all = open(await database());
  const acme = all.inScope("acme");
  const heartbeats = heartbeatsOf(all, { interval: 60_000 });
  expect(heartbeats.add(await begin(all, "one"))).toBe(true);
  heartbeats.add(await begin(acme, "two"));
  const late = await begin(all, "late");
  const beat = heartbeats.beat(late);
  expect(heartbeats.add(late)).toBe(true);
  expect(heartbeats.add(late)).toBe(false);
  await Promise.all([beat, heartbeats.beat(late), heartbeats.beat({ scope: "acme", threadId: "two" })]);
  expect([await isAlive(all, "one"), await isAlive(acme, "two"), await isAlive(all, "late")]).toEqual([true, true, true]);
});

test("a run hears what it should do, until it is deleted", async () => {
  const on = open(await database());
  await on.query("select agui.set_setting('heartbeat_lease', '7')");
  const signals: Signal[] = [];
  const heartbeats = heartbeatsOf(on, { interval: 5 });
  const stopped = new Promise<void>((resolve) => void begin(on, "t", (signal) => {
    signals.push(signal);
    resolve();
  }).then(async (run) => {
    heartbeats.add(run);
    await on.query("select agui.request_stop('t', 'r', 'enough')");
  }));
  await stopped;
  expect(signals[0]).toEqual({ status: "running", isStopRequested: true, stopReason: "enough", cutOffReason: null, lease: 7000 });
  await on.query("select agui.abandon('t', 'r', 'too late')");
  await expect.poll(() => signals.at(-1)).toMatchObject({ status: "cut_off", cutOffReason: "too late" });
  heartbeats.stop();
  expect(heartbeats.add(await begin(on, "u"))).toBe(false);
  await heartbeats.beat({ scope: "", threadId: "t" });
  expect(await isAlive(on, "u")).toBe(false);
});

test("failures are reported, and so is the end of an outage", async () => {
  const url = await database();
  const proxy = await cutProxy(url);
  const reported: string[] = [];
  const heartbeats = heartbeatsOf(open(proxy.url), {
    interval: 5, onFailure: (error) => void reported.push(String(error)), onSuccess: () => void reported.push("success"),
  });
  let isAway = true;
  proxy.cutAnswers(() => isAway);
  heartbeats.add(await begin(open(url), "t"));
  await expect.poll(() => reported.at(-1)).toContain("Connection terminated");
  await expect(heartbeats.beat({ scope: "", threadId: "t" })).rejects.toThrow("Connection terminated");
  isAway = false;
  await expect.poll(() => reported.at(-1)).toBe("success");
});

test("a connection that is lost holds no lease up", async () => {
  const url = await database();
  const on = open(url);
  await on.query("select agui.set_setting('heartbeat_lease', '6')");
  const proxy = await cutProxy(url);
  const heartbeats = heartbeatsOf(open(proxy.url), { interval: 100 });
  heartbeats.add(await begin(on, "t"));
  await expect.poll(() => isAlive(on, "t")).toBe(true);
  const state = async () => (await on.query<{ seen_at: string; is_stale: boolean }>(
    "select seen_at::text, (agui.status('t', 'r')).is_stale from agui.run",
  ))[0]!;
  let silent = 0;
  proxy.swallow((piece) => piece.includes("agui.keep_alive") && ++silent === 1);
  await expect.poll(() => silent, { timeout: 10_000 }).toBeGreaterThan(1); // another connection has the next heartbeat
  for (let seen = await state(), times = 0; times < 2; ) { // the run is seen once in a third of the lease
    await sleep(20);
    const now = await state();
    expect(now.is_stale).toBe(false);
    times += now.seen_at === seen.seen_at ? 0 : 1;
    seen = now;
  }
});
