// What a runner keeps when the network, the pooler, the roles of the database or its own process are in the way.

import { execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cutProxy, database, hasPooler, isMissing, pooler } from "@pgagui/testing";
import { build } from "esbuild";
import { expect, onTestFinished, test, vi } from "vitest";
import { PgaguiAgentRunner, threadHooks } from "../src/index.ts";
import {
  close, CountingPool, finished, logOf, open, PlayedAgent, process as runnerProcess, receive, request, sql, started, talk, talked, token, types,
} from "./harness.ts";

test("events are stored once and in order while the network loses answers", async () => {
  const direct = await database();
  const proxy = await cutProxy(direct);
  const runner = runnerProcess({ connectionString: proxy.url });
  const agent = new PlayedAgent();
  const received = receive(runner.run(request("t", "r", agent)));
  await agent.send(started("t", "r"), open("m"));
  await received.until("TEXT_MESSAGE_START");
  let answers = 0;
  let cuts = 0;
  // Every third answer to agui.append is lost: the call was executed.
  proxy.cutAnswers((piece) => piece.includes("seq\0") && ++answers % 3 === 0 && ++cuts > 0);
  const sent = [started("t", "r"), open("m")];
  for (let i = 0; i < 40; i++) {
    sent.push(token("m", `${i} `));
    await agent.send(token("m", `${i} `));
    await received.until("TEXT_MESSAGE_CONTENT", i + 1);
  }
  proxy.cutAnswers(() => false);
  sent.push(close("m"), finished("t", "r"));
  await agent.send(close("m"), finished("t", "r"));
  await agent.end();
  await received.done;
  expect(cuts).toBeGreaterThan(5);
  expect(received.events).toEqual(sent);
  expect(await logOf(direct, "t")).toEqual(sent);
});

test("what an agent sends while the database is away waits, up to a bound, and is stored when it is back", async () => {
  const direct = await database();
  const proxy = await cutProxy(direct);
  const entries: string[] = [];
  const runner = runnerProcess({ connectionString: proxy.url, log: ({ message }) => entries.push(message) });
  const agent = new PlayedAgent();
  const received = receive(runner.run(request("t", "r", agent)));
  await agent.send(started("t", "r"), open("m"));
  await received.until("TEXT_MESSAGE_START");
  const follower = receive(runner.connect({ threadId: "t" }));
  await follower.until("TEXT_MESSAGE_START");
  proxy.cutAnswers(() => true);
  proxy.cut();
  const megabyte = "x".repeat(1 << 20);
  let taken = 0;
  const sending = (async () => {
    for (let i = 0; i < 8; i++) {
      await agent.send(token("m", megabyte));
      taken++;
    }
  })();
  await vi.waitFor(() => expect(entries).toContain("the database does not answer, retrying appends"), { timeout: 20_000, interval: 10 });
  expect(taken).toBe(3);
  proxy.cutAnswers(() => false);
  await sending;
  await agent.send(close("m"), finished("t", "r"));
  await agent.end();
  await Promise.all([received.done, follower.done]);
  expect(received.events).toHaveLength(12);
  expect(types(follower.events).slice(-2)).toEqual(["TEXT_MESSAGE_END", "RUN_FINISHED"]);
  expect(follower.events.filter(({ type }) => type === "TEXT_MESSAGE_CONTENT")).toHaveLength(8);
  expect(entries).toContain("the database answers appends");
});

test("a run that is cut off ends its agent and its stream", async () => {
  const connectionString = await database();
  const runner = runnerProcess({ connectionString, heartbeatInterval: 30 });
  const agent = new PlayedAgent();
  const received = receive(runner.run(request("t", "r", agent)));
  await agent.send(started("t", "r"), open("m"));
  await received.until("TEXT_MESSAGE_START");
  await sql(connectionString, "select agui.abandon('t', 'r', 'an operator was here')");
  await received.done;
  expect(agent.isAborted).toBe(true);
  expect(received.events.at(-1)).toMatchObject({ type: "RUN_ERROR", code: "NOT_STORED" });
  expect((await talked(runner, "t", "r2", "Hello.")).error).toBeUndefined();
});

const errorOf = (code: string) => Object.assign(new Error(`error ${code}`), { severity: "ERROR", code });

test("what is wrong with the heartbeats of one tenant, or with the log, ends no run of another one", async () => {
  const connectionString = await database();
  const pool = new CountingPool({ connectionString });
  const printed = vi.spyOn(console, "error").mockImplementation(() => {});
  onTestFinished(() => printed.mockRestore());
  let tenant = "";
  const runner = runnerProcess({
    pool, scope: () => tenant,
    log: () => {
      throw new Error("the log is full");
    },
  });
  const runs = await Promise.all(["acme", "globex"].map(async (scope) => {
    tenant = scope;
    const agent = new PlayedAgent();
    const received = receive(runner.run(request("t", "r", agent)));
    await agent.send(started("t", "r"));
    await received.until("RUN_STARTED");
    return { agent, received };
  }));
  let resets = 0;
  pool.fail = (text, values) => {
    if (text.includes("agui.keep_alive") && (values[2] as string[]).includes("globex")) return errorOf("42501");
    if (text.includes("agui.append(") && values.includes("acme") && resets++ === 0) return Object.assign(new Error("reset"), { code: "ECONNRESET" });
    return undefined;
  };
  for (const { agent, received } of runs) {
    await agent.send(finished("t", "r"));
    await agent.end();
    await received.done;
    expect(received.events).toEqual([started("t", "r"), finished("t", "r")]);
  }
  expect(resets).toBe(2);
  expect(printed.mock.calls.join()).toContain("the log is full");
});

test.each([["costs the server too much memory", errorOf("53200")], ["always times out", new Error("Query read timeout")]])(
  "a run with an event that %s ends",
  async (_, failure) => {
    const connectionString = await database();
    const pool = new CountingPool({ connectionString });
    const runner = runnerProcess({ pool });
    const agent = new PlayedAgent();
    const received = receive(runner.run(request("t", "r", agent)));
    await agent.send(started("t", "r"));
    await received.until("RUN_STARTED");
    pool.fail = (text) => (text.includes("agui.append(") ? failure : undefined);
    await agent.send(open("m"));
    await received.done;
    expect(received.events.at(-1)).toEqual({ type: "RUN_ERROR", message: `The run could not be stored: ${failure.message}`, code: "NOT_STORED" });
    pool.fail = () => undefined;
    expect((await talked(runner, "t", "r2", "Hello.")).error).toBeUndefined();
  },
);

test.skipIf(isMissing("pgbouncer", hasPooler))("run, connect and stop through PgBouncer in transaction mode", async () => {
  const direct = await database();
  const connectionString = await pooler(direct);
  const scope = "acme";
  const [one, other] = [runnerProcess({ connectionString, scope, heartbeatInterval: 50 }), runnerProcess({ connectionString, scope })];
  await talked(one, "t", "r", "Hello.");
  const agent = new PlayedAgent();
  const received = receive(one.run(request("t", "r2", agent)));
  await agent.send(started("t", "r2"), open("m"));
  await received.until("TEXT_MESSAGE_START");
  const followers = Array.from({ length: 10 }, () => receive(other.connect({ threadId: "t" })));
  await Promise.all(followers.map((follower) => follower.until("TEXT_MESSAGE_START")));
  expect(await other.stop({ threadId: "t" })).toBe(true);
  await Promise.all([received, ...followers].map(({ done }) => done));
  expect(types(await logOf(direct, "t", scope)).slice(-2)).toEqual(["TEXT_MESSAGE_END", "RUN_FINISHED"]);
  expect(followers.map(({ events }) => events.at(-1)!.type)).toEqual(followers.map(() => "RUN_FINISHED"));
});

test("with row-level security, a pool serves tenants that do not see each other", async () => {
  const owner = await database();
  const role = `pgagui_web_${Date.now()}`;
  await sql(owner, `create role ${role} login password 'secret' in role agui_writer`);
  try {
    await sql(owner, "call agui.enable_row_security()");
    await sql(owner, "select agui.map_pool($1)", [role]);
    const connectionString = Object.assign(new URL(owner), { username: role, password: "secret" }).href;
    let tenant: string | undefined = "acme";
    const runner = runnerProcess({
      connectionString, heartbeatInterval: 30,
      scope: () => {
        if (tenant === undefined) {
          throw new Error("no tenant");
        }
        return tenant;
      },
    });
    const agent = new PlayedAgent();
    const received = receive(runner.run(request("t", "r", agent)));
    await agent.send(started("t", "r"), open("m"));
    await received.until("TEXT_MESSAGE_START");
    const follower = receive(runner.connect({ threadId: "t" }));
    await follower.until("TEXT_MESSAGE_START");

    tenant = "globex"; // the runs and streams above go on for acme
    const foreign = receive(runner.connect({ threadId: "t" }));
    await foreign.done;
    expect(foreign.events).toEqual([]);
    expect(await runner.isRunning({ threadId: "t" })).toBe(false);
    expect(await runner.stop({ threadId: "t" })).toBe(false);
    await talked(runner, "t", "r", "Of Globex.");
    await agent.send(token("m", "Of Acme."), close("m"), finished("t", "r"));
    await agent.end();
    await Promise.all([received.done, follower.done]);
    expect(JSON.stringify(await logOf(owner, "t", "acme"))).not.toContain("Globex");
    expect(JSON.stringify(await logOf(owner, "t", "globex"))).toContain("Globex");

    tenant = undefined;
    const refused = receive(runner.run(request("t", "r3", new PlayedAgent())));
    await refused.done;
    expect(refused.events).toEqual([{ type: "RUN_ERROR", message: "no tenant", code: "NOT_STORED" }]);
    expect(() => runner.connect({ threadId: "t" })).toThrow("no tenant");
    await expect(runner.stop({ threadId: "t" })).rejects.toThrow("no tenant");
    await runner.close();
  } finally {
    await sql(owner, "select agui.unmap_role($1)", [role]);
    await sql(owner, `drop role ${role}`);
  }
});

/** A program that uses the runner, in a process of its own: the arguments to start it. */
async function program(databaseURL: string, code: string): Promise<[string, string[], { env: NodeJS.ProcessEnv }]> {
  const folder = fileURLToPath(new URL("../", import.meta.url));
  const outfile = `${folder}dist/test-${randomUUID()}.mjs`;
  await build({
    stdin: {
      contents: `import { PgaguiAgentRunner } from "./src/index.ts";
import { PlayedAgent, request, talk } from "./test/agent.ts";
const runner = new PgaguiAgentRunner({ connectionString: process.env.DATABASE_URL, heartbeatInterval: 100 });
${code}`,
      resolveDir: folder, loader: "ts",
    },
    bundle: true, platform: "node", format: "esm", external: ["pg"], outfile,
  });
  onTestFinished(() => rmSync(outfile));
  return [globalThis.process.execPath, [outfile], { env: { ...globalThis.process.env, DATABASE_URL: databaseURL } }];
}

test("nothing holds a process whose work is done, without close", async () => {
  const connectionString = await database();
  const [node, args, options] = await program(connectionString, `
const agent = new PlayedAgent();
const events = [];
runner.run(request("t", "r", agent)).subscribe((event) => events.push(event));
await agent.send(...talk("t", "r", "Hello."));
await agent.end();
await runner.idle();
runner.connect({ threadId: "t" }).subscribe({ complete: () => console.log(events.length) });
`);
  const { stdout } = await promisify(execFile)(node, args, { ...options, timeout: 30_000 });
  expect(stdout.trim()).toBe("5");
  expect(types(await logOf(connectionString, "t"))).toEqual(types(talk("t", "r", "")));
});

test("a process that is killed leaves nothing locked once its lease has ended", async () => {
  const connectionString = await database();
  await sql(connectionString, "select agui.set_setting('heartbeat_lease', '1 second')");
  const [node, args, options] = await program(connectionString, `
const agent = new PlayedAgent();
runner.run(request("t", "r", agent)).subscribe((event) => event.type === "TEXT_MESSAGE_CONTENT" && console.log("streaming"));
await agent.send(...talk("t", "r", "What was said").slice(0, 3));
setInterval(() => {}, 1000);
`);
  const child = spawn(node, args, { ...options, stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout!, "data");
  const runner = runnerProcess({ connectionString });
  const follower = receive(runner.connect({ threadId: "t" }));
  await follower.until("TEXT_MESSAGE_START");
  child.kill("SIGKILL");
  await once(child, "exit");
  const early = receive(runner.run(request("t", "r2", new PlayedAgent())));
  await early.done;
  expect(early.events).toEqual([{ type: "RUN_ERROR", message: "Thread already running", code: "NOT_STORED" }]);
  await follower.done;
  expect(follower.events.at(-1)).toMatchObject({ type: "RUN_ERROR", message: expect.stringContaining("is gone") as string });
  expect(await runner.isRunning({ threadId: "t" })).toBe(false);
  expect((await talked(runner, "t", "r3", "Here again.")).error).toBeUndefined();
  const history = receive(runner.connect({ threadId: "t" }));
  await history.done;
  expect(JSON.stringify(history.events)).toContain("What was said");
  const closed = (await logOf(connectionString, "t")).filter(({ type }) => type === "RUN_ERROR");
  expect(closed).toHaveLength(1);
});

test("thread hooks retry reads whose answers are lost, and close ends their pool", async () => {
  const direct = await database();
  await talked(runnerProcess({ connectionString: direct }), "t", "r", "Hello.");
  const proxy = await cutProxy(direct);
  const address = new URL(proxy.url);
  address.searchParams.set("application_name", "hooks");
  const hooks = threadHooks({ connectionString: address.href });
  onTestFinished(() => hooks.close());
  const list = async () => {
    const context = { request: new Request("http://localhost/threads"), route: { method: "threads/list" } };
    const answer: unknown = await hooks.onBeforeHandler(context).catch((thrown: unknown) => thrown);
    return ((await (answer as Response).json()) as { threads: { id: string }[] }).threads.map(({ id }) => id);
  };
  const connections = async () => (await sql(direct, "select from pg_stat_activity where application_name = 'hooks'")).length;
  expect(await list()).toEqual(["t"]);
  expect(await connections()).toBe(1);
  let cuts = 0;
  proxy.cutAnswers(() => ++cuts <= 2);
  expect(await list()).toEqual(["t"]);
  expect(cuts).toBeGreaterThan(2);
  await hooks.close();
  await expect.poll(connections).toBe(0);
});

test("a runner needs a database", () => {
  expect(() => new PgaguiAgentRunner({})).toThrow("set pool, connectionString or nodes");
});
