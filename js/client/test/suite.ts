// The tests of the client. They run with the source here, and in frameworks with the package and each version of
// @ag-ui/client that is allowed.

import { createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { describe, expect, test, vi } from "vitest";
import { database, serve, serveAgent, type Call, type Server } from "@pgagui/testing";
import type * as agui from "@ag-ui/client";
import type * as client from "../src/index.ts";
import { startProxy } from "./proxy.ts";
import { generate, randomFrom, type Event } from "./streams.ts";

export interface Modules {
  agui: Pick<typeof agui, "HttpAgent">;
  client: typeof client;
}

const user = (content: string, id = "u1") => ({ id, role: "user" as const, content });

/** How many events behind the first two of a text the agent holds back, until it is released. */
interface Gate {
  url: string;
  /** Resolves when the agent was called, and sent the beginning of its answer. */
  called: Promise<Call>;
  release: () => void;
}

/** An agent that says "Hello, ", and "NAME" after release, where NAME is the last message of the user. */
async function gatedAgent(): Promise<Gate> {
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  let note = (_: Call) => {};
  const called = new Promise<Call>((resolve) => (note = resolve));
  const url = await serveAgent(async (call) => {
    begin(call);
    note(call);
    await Promise.race([released, call.gone]);
    finish(call);
  });
  return { url, called, release };
}

const answerOf = (call: Call) => `a-${call.input.runId}`;

function begin({ input, send }: Call): void {
  send({ type: "RUN_STARTED", threadId: input.threadId, runId: input.runId });
  send({ type: "STATE_SNAPSHOT", snapshot: { turns: input.messages.length } });
  send({ type: "TEXT_MESSAGE_START", messageId: `a-${input.runId}`, role: "assistant" });
  send({ type: "TEXT_MESSAGE_CONTENT", messageId: `a-${input.runId}`, delta: "Hello, " });
}

function finish(call: Call): void {
  const { input, send } = call;
  send({ type: "TEXT_MESSAGE_CONTENT", messageId: answerOf(call), delta: `${input.messages.at(-1)?.content}` });
  send({ type: "TEXT_MESSAGE_END", messageId: answerOf(call) });
  send({ type: "RUN_FINISHED", threadId: input.threadId, runId: input.runId });
}

/** An agent that answers at once, as gatedAgent does. */
const politeAgent = () => serveAgent(async (call) => {
  begin(call);
  finish(call);
});

/** A storage as a browser's tab has. */
function storage() {
  const items = new Map<string, string>();
  return { items, getItem: (key: string) => items.get(key) ?? null, setItem: (key: string, value: string) => void items.set(key, value) };
}

/** Resolves when an agent's messages contain a text. */
const shows = (agent: agui.HttpAgent, text: string) =>
  vi.waitFor(() => expect(JSON.stringify(agent.messages)).toContain(text), { timeout: 10_000, interval: 5 });

const texts = (agent: { messages: { content?: unknown }[] }) => agent.messages.map((message) => message.content);
const plain = (value: unknown) => JSON.parse(JSON.stringify(value)) as unknown;
const quick = { minDelay: 1, maxDelay: 20, maxAttempts: 2_000 };

/** Runs SQL in a database. */
async function sql(url: string, ...statements: string[]): Promise<void> {
  const connection = new Client(url);
  await connection.connect();
  try {
    for (const statement of statements) await connection.query(statement);
  } finally {
    await connection.end();
  }
}

/** A token for `pgagui serve` that expires at a time in seconds. */
function jwt(secret: string, expires: number): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${encode({ alg: "HS256", typ: "JWT" })}.${encode({ sub: "alice", exp: expires })}`;
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

/** Describes the client with some modules. `streams` is how many generated streams it gets. */
export function testClient({ agui: { HttpAgent }, client: { PgaguiAgent, PgaguiError, Threads } }: Modules, streams: number): void {
  const runURL = (server: { url: string }, name = "assistant") => `${server.url}/agent/${name}/run`;

  describe("a stock HttpAgent", () => {
    test("makes no request with connectAgent, so no server can answer it; at the connect URL, runAgent brings it up to date", async () => {
      const server = await serve(await database(), { assistant: await politeAgent() });
      const before = new HttpAgent({ url: runURL(server), threadId: "t", initialMessages: [user("Ada")] });
      await before.runAgent();
      const stock = new HttpAgent({ url: runURL(server), threadId: "t" });
      const requests = vi.spyOn(globalThis, "fetch");
      await stock.connectAgent();
      expect(requests).not.toHaveBeenCalled();
      requests.mockRestore();
      expect(stock.messages).toEqual([]);

      const connected = new HttpAgent({ url: runURL(server).replace(/run$/, "connect"), threadId: "t" });
      await connected.runAgent();
      expect(texts(connected)).toEqual(["Ada", "Hello, Ada"]);
      expect(connected.state).toEqual({ turns: 1 });
      const unknown = new HttpAgent({ url: connected.url, threadId: "unknown" });
      await unknown.runAgent();
      expect(unknown.messages).toEqual([]);
    });

    test.each([[undefined, 3], [true, 1]])("edits a message, with branchState %s", async (branchState, turns) => {
      const states: unknown[] = [];
      const agent = await serveAgent(async (call) => {
        states.push(call.input.state);
        begin(call);
        finish(call);
      });
      const server = await serve(await database(), { assistant: agent });
      const stock = new HttpAgent({ url: runURL(server), threadId: "t" });
      for (const id of ["u1", "u2"]) {
        stock.addMessage(user(id, id));
        await stock.runAgent();
      }
      stock.setMessages([...stock.messages.slice(0, 2), user("edited", "u3")]); // its state is that of the branch it leaves
      const seen: unknown[] = [];
      await stock.runAgent({ forwardedProps: { pgagui: { ...(branchState && { branchState }) } } }, {
        onStateChanged: ({ state }) => void seen.push(structuredClone(state)),
      });
      expect(states.at(-1)).toEqual({ turns });
      expect(seen.slice(0, -1)).toEqual(branchState ? [{ turns: 1 }] : []); // the last is what the agent says
    });
  });

  describe("streams that are cut", () => {
    test(`${streams} generated streams, cut and resumed at random, equal those of a client that never went away`, async () => {
      const agent = await serveAgent(async ({ input, send }) => {
        const seed = Number(input.messages[0]?.content);
        const random = randomFrom(seed);
        for (const event of generate(seed, { threadId: input.threadId, runId: input.runId })) {
          send(event);
          if (random() < 0.2) await new Promise((resolve) => setTimeout(resolve, random() * 4)); // the pace of a model
        }
      });
      const server = await serve(await database(), { assistant: agent });
      const random = randomFrom(1);
      const proxy = await startProxy(server.url);
      proxy.cut = () => {
        const how = random();
        return random() < 0.15 ? undefined : { after: Math.floor(random() ** 2 * 8_000), how: how < 0.8 ? "break" : "end" };
      };
      const events: Event[] = [];
      const threads = new Threads({ url: server.url });
      const compare = async (seed: number) => {
        const start = { initialMessages: [user(String(seed))] };
        const stock = new HttpAgent({ url: runURL(server), threadId: `stock-${seed}`, ...start });
        const ours = new PgaguiAgent({ url: runURL(proxy), threadId: `ours-${seed}`, ...start, retry: quick });
        const tab = new PgaguiAgent({ url: runURL(proxy), threadId: `ours-${seed}`, retry: quick });
        const ends = [stock, ours].map((agent) => {
          const seen: string[] = [];
          agent.subscribe({
            onRunErrorEvent: ({ event }) => void seen.push(`${event.code}: ${event.message}`),
            onRunFinishedEvent: () => void seen.push("finished"),
          });
          return seen;
        });
        const begun = new Promise<void>((resolve) => ours.subscribe({ onRunStartedEvent: () => resolve() }));
        const running = ours.runAgent();
        await Promise.all([stock.runAgent(), running, begun.then(() => tab.connectAgent())]);
        expect(ends[1], `end of ${seed}`).toEqual(ends[0]);
        expect(plain(ours.messages), `messages of ${seed}`).toEqual(plain(stock.messages));
        expect(plain(ours.state), `state of ${seed}`).toEqual(plain(stock.state));
        const stored = await threads.conversation(`ours-${seed}`);
        expect(plain(ours.messages), `stored messages of ${seed}`).toEqual(stored.messages);
        expect(plain(ours.state), `stored state of ${seed}`).toEqual(stored.state);
        expect(plain(tab.messages), `messages of the other tab of ${seed}`).toEqual(stored.messages);
        expect(plain(tab.state), `state of the other tab of ${seed}`).toEqual(stored.state);
        events.push(...generate(seed, { threadId: "", runId: "" }));
      };
      const seeds = Array.from({ length: streams }, (_, index) => index + 1);
      await Promise.all(Array.from({ length: 8 }, async () => {
        for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) await compare(seed);
      }));
      const resumed = proxy.requests.filter((request) => request.headers["last-event-id"]).length;
      const repeated = proxy.requests.filter((request) => request.url!.endsWith("/run")).length - streams;
      console.log(`${events.length} events, ${proxy.cuts} cuts, ${resumed} streams resumed, ${repeated} requests repeated`);
      expect(proxy.cuts).toBeGreaterThan(1.5 * streams);
      expect(resumed).toBeGreaterThan(streams);
      expect(repeated).toBeGreaterThan(streams / 50 - 1);
    }, 300_000);

    test("a stream that ends as if it were complete, without the end of its run, is resumed", async () => {
      const agent = await gatedAgent();
      const server = await serve(await database(), { assistant: agent.url });
      const proxy = await startProxy(server.url);
      proxy.cut = () => (proxy.requests.length === 1 ? { after: 250, how: "end" } : undefined);
      const ours = new PgaguiAgent({ url: runURL(proxy), initialMessages: [user("Rome")], retry: { ...quick, onRetry: agent.release } });
      await ours.runAgent();
      expect(texts(ours)).toEqual(["Rome", "Hello, Rome"]);
      expect(proxy.cuts).toBe(1);
    });

    test("a connection on which nothing arrives is given up", async () => {
      const agent = await gatedAgent();
      const server = await serve(await database(), { assistant: agent.url });
      const proxy = await startProxy(server.url);
      proxy.cut = () => (proxy.requests.length === 1 ? { after: 250, how: "stall" } : undefined);
      const failures: unknown[] = [];
      const ours = new PgaguiAgent({
        url: runURL(proxy), initialMessages: [user("Rome")],
        retry: { ...quick, silence: 500, onRetry: ({ error }) => { failures.push(String(error)); agent.release(); } },
      });
      await ours.runAgent();
      expect(texts(ours)).toEqual(["Rome", "Hello, Rome"]);
      expect(failures[0]).toContain("nothing arrived for 500 ms");
    });

    test("an agent gives up after maxAttempts, with the cause", async () => {
      const proxy = await startProxy(undefined);
      let pauses = 0;
      const ours = new PgaguiAgent({ url: runURL(proxy), initialMessages: [user("Rome")], retry: { ...quick, maxAttempts: 3, onRetry: () => pauses++ } });
      const error = await ours.runAgent().catch((error: unknown) => error);
      expect(error).toBeInstanceOf(PgaguiError);
      expect(String(error)).toContain("gave up after 3 failures in succession, the last one: fetch failed");
      expect((error as Error).cause).toBeInstanceOf(TypeError);
      expect([pauses, proxy.requests.length]).toEqual([2, 3]);
    });
  });

  describe("a page", () => {
    test("that is reloaded in mid-run continues with the stored position", async () => {
      const agent = await gatedAgent();
      const server = await serve(await database(), { assistant: agent.url });
      const tab = storage();
      const before = new PgaguiAgent({ url: runURL(server), initialMessages: [user("Rome")], storage: tab });
      const running = before.runAgent();
      await shows(before, "Hello, ");
      before.abortRun(); // the page goes away, the run stays
      await running;
      expect(before.position).toMatchObject({ threadId: before.threadId, lastEventId: expect.stringMatching(/^\d+-\d+$/) });

      const proxy = await startProxy(server.url);
      const after = new PgaguiAgent({ url: runURL(server), fetch: (url, init) => fetch(url.replace(server.url, proxy.url), init), storage: tab, restore: true });
      expect(after.threadId).toBe(before.threadId);
      expect(after.position).toEqual(before.position);
      const connecting = after.connectAgent();
      await shows(after, "Hello, ");
      agent.release();
      await connecting;
      expect(texts(after)).toEqual(["Rome", "Hello, Rome"]);
      expect(after.state).toEqual({ turns: 1 });
      expect(proxy.requests[0]!.headers["pgagui-position"]).toBe(before.position.lastEventId);
      expect(JSON.parse([...tab.items.values()][0]!)).toEqual(after.position);

      const other = new PgaguiAgent({ url: runURL(server), storage: tab });
      expect(other.threadId, "without restore a new conversation begins").not.toBe(before.threadId);
    });

    test("in two tabs shows the same, and the second one waits for later runs", async () => {
      const agent = await gatedAgent();
      const server = await serve(await database(), { assistant: agent.url });
      const first = new PgaguiAgent({ url: runURL(server), threadId: "thread-1", initialMessages: [user("Rome")] });
      const running = first.runAgent();
      await agent.called;
      const second = new PgaguiAgent({ url: runURL(server), threadId: "thread-1" });
      const watching = second.connectAgent({ stay: true });
      await shows(second, "Hello, ");
      agent.release();
      await running;
      await shows(second, "Hello, Rome");
      first.addMessage(user("Oslo", "u2"));
      await first.runAgent();
      await shows(second, "Hello, Oslo");
      await second.detachActiveRun();
      await watching;
      expect(plain(second.messages)).toEqual(plain(first.messages));
      expect(second.state).toEqual({ turns: 3 });
      expect(second.isRunning).toBe(false);
    });

    test("connects to a thread without runs", async () => {
      const server = await serve(await database(), { assistant: await politeAgent() });
      const answers: number[] = [];
      const observed: typeof fetch = async (url, init) => {
        const response = await fetch(url, init);
        answers.push(response.status);
        return response;
      };
      const ours = new PgaguiAgent({ url: runURL(server), threadId: "empty", initialMessages: [user("draft")], fetch: observed });
      await ours.connectAgent();
      expect(texts(ours)).toEqual(["draft"]);
      expect(answers, "browsers log other answers as errors").toEqual([200]);
    });

    test("keeps what it was aborted with, and can connect afterwards", async () => {
      const agent = await gatedAgent();
      const server = await serve(await database(), { assistant: agent.url });
      const ours = new PgaguiAgent({ url: runURL(server), initialMessages: [user("Rome")] });
      const codes: unknown[] = [];
      ours.subscribe({ onRunErrorEvent: ({ event }) => void codes.push(event.code) });
      const running = ours.runAgent();
      await shows(ours, "Hello, ");
      ours.abortRun();
      await running;
      expect(codes, "as HttpAgent does").toEqual(["abort"]);
      agent.release();
      await ours.connectAgent();
      expect(texts(ours)).toEqual(["Rome", "Hello, Rome"]);
    });
  });

  describe("a server", () => {
    test("that is killed in mid-run and started once more: the run ends with its lease", async () => {
      const agent = await gatedAgent();
      const url = await database();
      await sql(url, "select agui.set_setting('heartbeat_lease', '2 s')", "select agui.set_setting('lease', '2 s')");
      const start = () => serve(url, { assistant: agent.url }, ["--worker", "--worker-reap", "@every 1s"]);
      const killed = await start();
      const proxy = await startProxy(killed.url);
      const ours = new PgaguiAgent({ url: runURL(proxy), initialMessages: [user("Rome")], retry: quick });
      const errors: unknown[] = [];
      ours.subscribe({ onRunErrorEvent: ({ event }) => void errors.push(event.message) });
      const running = ours.runAgent();
      await shows(ours, "Hello, ");
      await killed.end("SIGKILL");
      proxy.target = (await start()).url;
      await running;
      expect(texts(ours)).toEqual(["Rome", "Hello, "]);
      expect(errors).toHaveLength(1);
      const stored = await ours.threads.conversation(ours.threadId);
      expect(stored.status).toBe("cut_off");
      expect(stored.messages).toEqual(plain(ours.messages));
      agent.release();
      await ours.runAgent();
      expect(ours.messages).toHaveLength(3);
    });

    test("another server continues a stream", async () => {
      const agent = await gatedAgent();
      const url = await database();
      const [first, second] = [await serve(url, { assistant: agent.url }), await serve(url, { assistant: agent.url })];
      const proxy = await startProxy(first.url);
      let connections: import("node:net").Socket[] = [];
      proxy.cut = (request) => { connections.push(request.socket); return undefined; };
      const ours = new PgaguiAgent({ url: runURL(proxy), initialMessages: [user("Rome")], retry: quick });
      const running = ours.runAgent();
      await shows(ours, "Hello, ");
      proxy.target = second.url;
      for (const socket of connections) socket.destroy();
      agent.release();
      await running;
      expect(texts(ours)).toEqual(["Rome", "Hello, Rome"]);
      expect(proxy.requests.at(-1)!.url).toContain("/events?run=");
    });

    test("that cannot be reached at first", async () => {
      const server = await serve(await database(), { assistant: await politeAgent() });
      const proxy = await startProxy(undefined);
      const ours = new PgaguiAgent({
        url: runURL(proxy), initialMessages: [user("Rome")],
        retry: { ...quick, onRetry: ({ attempt }) => { if (attempt === 4) proxy.target = server.url; } },
      });
      await ours.runAgent();
      expect(texts(ours)).toEqual(["Rome", "Hello, Rome"]);
      expect(proxy.requests).toHaveLength(5);
      expect(await ours.threads.runs(ours.threadId)).toHaveLength(1);
    });

    test("that can be reached when the browser is online: the pause ends early", async () => {
      const server = await serve(await database(), { assistant: await politeAgent() });
      const proxy = await startProxy(undefined);
      const browser = new EventTarget();
      vi.stubGlobal("addEventListener", browser.addEventListener.bind(browser));
      const online = () => {
        proxy.target = server.url;
        browser.dispatchEvent(new Event("online"));
      };
      const ours = new PgaguiAgent({
        url: runURL(proxy), initialMessages: [user("Rome")],
        retry: { minDelay: 3_600_000, maxDelay: 3_600_000, onRetry: () => void setTimeout(online) },
      });
      await ours.runAgent().finally(() => vi.unstubAllGlobals());
      expect(texts(ours)).toEqual(["Rome", "Hello, Rome"]);
    });

    test("whose silence may last forever", async () => {
      const server = await serve(await database(), { assistant: await politeAgent() });
      const proxy = await startProxy(server.url);
      const ours = new PgaguiAgent({ url: runURL(proxy), initialMessages: [user("Rome")], retry: { ...quick, silence: Infinity } });
      await ours.runAgent();
      expect(texts(ours)).toEqual(["Rome", "Hello, Rome"]);
      expect(proxy.requests).toHaveLength(1);
    });

    test("an answer that is lost does not run the agent twice", async () => {
      const server = await serve(await database(), { assistant: await politeAgent() });
      const proxy = await startProxy(server.url);
      proxy.cut = () => (proxy.requests.length === 1 ? { after: 0 } : undefined);
      const ours = new PgaguiAgent({ url: runURL(proxy), initialMessages: [user("Rome")], retry: quick });
      await ours.runAgent();
      expect(texts(ours)).toEqual(["Rome", "Hello, Rome"]);
      expect(proxy.requests).toHaveLength(2);
      expect(await ours.threads.runs(ours.threadId)).toHaveLength(1);
    });
  });

  describe("refusals", () => {
    /** Expects an error of the server at once. */
    async function refused(run: Promise<unknown>, status: number, pauses: unknown[]): Promise<InstanceType<typeof PgaguiError>> {
      const error = await run.then(() => undefined, (error: unknown) => error);
      expect(error).toBeInstanceOf(PgaguiError);
      expect(error).toMatchObject({ status, problem: { status } });
      expect(pauses).toEqual([]);
      return error as InstanceType<typeof PgaguiError>;
    }

    test("401, 404, 409 and 410 are errors at once", async () => {
      const agent = await gatedAgent();
      const server = await serve(await database(), { assistant: agent.url });
      const pauses: unknown[] = [];
      const retry = { ...quick, onRetry: (pause: unknown) => void pauses.push(pause) };
      const at = (threadId: string, name = "assistant", to: { url: string } = server) =>
        new PgaguiAgent({ url: runURL(to, name), threadId, initialMessages: [user("Rome")], retry });

      const error = await refused(at("t1", "nobody").runAgent(), 404, pauses);
      expect(error.message).toBe(`POST ${server.url}/agent/nobody/run: 404: the server has no agent "nobody"`);

      const first = at("t2");
      const running = first.runAgent({ runId: "run-1" });
      await agent.called;
      expect((await refused(at("t2").runAgent(), 409, pauses)).problem!.runId).toBe("run-1");
      agent.release();
      await running;

      await first.threads.erase("t2");
      await refused(at("t2").runAgent(), 410, pauses);
      await refused(first.threads.get("t2"), 410, pauses).catch(() => refused(first.threads.get("t2"), 404, pauses));

      const secret = "a secret of at least thirty-two bytes";
      const guarded = await serveWithTokens(secret, agent.url);
      await refused(at("t3", "assistant", guarded).runAgent(), 401, pauses);
      await refused(at("t3", "assistant", guarded).connectAgent(), 401, pauses);
    });

    class LoginNeeded extends Error {}
    const page = (text: string) => new Response(text, { headers: { "Content-Type": "text/html" } });
    // [what, settings of the agent, the error]
    const hopeless: [string, Partial<client.PgaguiAgentConfig>, unknown][] = [
      ["headers that throw", { headers: () => { throw new LoginNeeded("log in"); } }, LoginNeeded],
      ["headers that reject", { headers: () => Promise.reject(new LoginNeeded("log in")) }, LoginNeeded],
      ["a header that cannot be sent", { headers: { Authorization: "Bearer a\nb" } }, TypeError],
      ["an address that is none", { url: "http://[/agent/assistant/run" }, TypeError],
      ["an address without a server", { url: "/agent/assistant/run" }, TypeError],
      ["a page in place of an answer", { fetch: async () => page("<!doctype html>") }, PgaguiError],
    ];

    test.each(hopeless)("%s: rejects at once", async (_, settings, expected) => {
      const retries: unknown[] = [];
      const sent = vi.spyOn(globalThis, "fetch");
      const retry = { minDelay: 3_600_000, onRetry: ({ error }: { error: unknown }) => void retries.push(error) };
      const ours = new PgaguiAgent({ url: "http://127.0.0.1:1/agent/assistant/run", threadId: "t", retry, ...settings });
      const calls = [() => ours.runAgent(), () => ours.connectAgent(), () => ours.threads.list()];
      for (const call of calls) {
        const outcome = await Promise.race([call().catch((error: unknown) => error), vi.waitFor(() => expect(retries).not.toEqual([]), 10_000)]);
        expect(retries).toEqual([]);
        expect(outcome).toBeInstanceOf(expected);
      }
      sent.mockRestore();
    });

    test("Retry-After is respected", async () => {
      const agent = await gatedAgent();
      const server = await serve(await database(), { assistant: agent.url }, ["--limits-streams", "1"]);
      const first = new PgaguiAgent({ url: runURL(server), threadId: "t1", initialMessages: [user("Rome")] });
      const running = first.runAgent();
      await agent.called;
      const pauses: { error: unknown; delay: number }[] = [];
      const second = new PgaguiAgent({
        url: runURL(server), threadId: "t1",
        retry: { ...quick, onRetry: (pause) => { pauses.push(pause); agent.release(); } },
      });
      await second.connectAgent();
      await running;
      expect(texts(second)).toEqual(["Rome", "Hello, Rome"]);
      expect(pauses[0]!.error).toMatchObject({ status: 429, retryAfter: expect.any(Number) });
      expect(pauses[0]!.delay).toBeGreaterThanOrEqual((pauses[0]!.error as client.PgaguiError).retryAfter!);
      expect(pauses[0]!.delay).toBeGreaterThanOrEqual(1000);
    });

    test("a Retry-After of months does not end the pause", async () => {
      vi.useFakeTimers();
      const controller = new AbortController();
      let requests = 0;
      const threads = new Threads({
        url: "http://pgagui.test",
        fetch: async () => {
          requests++;
          return new Response(null, { status: 503, headers: { "Retry-After": "9999999999" } });
        },
      });
      try {
        const list = expect(threads.list({}, { signal: controller.signal })).rejects.toThrow("enough");
        await vi.advanceTimersByTimeAsync(60_000);
        expect(requests).toBe(1);
        controller.abort(new Error("enough"));
        await list;
      } finally {
        vi.useRealTimers();
      }
    });

    test("an abort in onRetry ends the call at once", async () => {
      const controller = new AbortController();
      const threads = new Threads({
        url: "http://pgagui.test",
        fetch: async () => { throw new TypeError("down"); },
        retry: { minDelay: 3_600_000, maxDelay: 3_600_000, onRetry: () => controller.abort(new Error("enough")) },
      });
      await expect(threads.list({}, { signal: controller.signal })).rejects.toThrow("enough");
    });

    test("a database that cannot be reached is 503 until it can", async () => {
      const url = await database();
      const name = new URL(url).pathname.slice(1);
      const other = new URL(url);
      other.pathname = "/postgres";
      const server = await serve(url, { assistant: await politeAgent() });
      await sql(other.href, `alter database ${name} allow_connections false`,
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
      const allowed: Promise<void>[] = [];
      const pauses: { error: unknown; delay: number }[] = [];
      const ours = new PgaguiAgent({
        url: runURL(server), initialMessages: [user("Rome")],
        retry: { ...quick, onRetry: (pause) => { pauses.push(pause); allowed.push(sql(other.href, `alter database ${name} allow_connections true`)); } },
      });
      await ours.runAgent();
      await Promise.all(allowed);
      expect(texts(ours)).toEqual(["Rome", "Hello, Rome"]);
      expect(pauses[0]!.error).toMatchObject({ status: 503, retryAfter: expect.any(Number) });
    });

    async function serveWithTokens(secret: string, agentURL: string): Promise<Server> {
      const file = join(tmpdir(), `pgagui-secret-${process.pid}-${Math.random()}`);
      writeFileSync(file, secret);
      return serve(await database(), { assistant: agentURL }, [
        "--insecure=false", "--jwt-key-file", file, "--jwt-algorithms", "HS256", "--jwt-any-audience", "--jwt-default-rights", "read,write,stop,delete",
      ]);
    }

    test("a token that expires in mid-run: the stream goes on with the next one", async () => {
      const agent = await gatedAgent();
      const secret = "a secret of at least thirty-two bytes";
      const server = await serveWithTokens(secret, agent.url);
      let tokens = 0;
      const ours = new PgaguiAgent({
        url: runURL(server), initialMessages: [user("Rome")],
        headers: async () => ({ Authorization: `Bearer ${jwt(secret, Math.floor(Date.now() / 1000) + (tokens++ === 0 ? 2 : 600))}` }),
        retry: { ...quick, onRetry: agent.release },
      });
      await ours.runAgent();
      expect(texts(ours)).toEqual(["Rome", "Hello, Rome"]);
      expect(tokens).toBe(2);
      expect((await ours.threads.list()).threads).toHaveLength(1);
    });
  });

  describe("branches", () => {
    async function conversation() {
      const server = await serve(await database(), { assistant: await politeAgent() });
      const ours = new PgaguiAgent({ url: runURL(server), threadId: "thread-1", initialMessages: [user("Rome")] });
      await ours.runAgent({ runId: "run-1" });
      ours.addMessage(user("Oslo", "u2"));
      await ours.runAgent({ runId: "run-2" });
      expect(texts(ours)).toEqual(["Rome", "Hello, Rome", "Oslo", "Hello, Oslo"]);
      return { server, ours };
    }

    /** Expects that the client shows what the server has at the head. */
    async function isAtHead(ours: InstanceType<typeof PgaguiAgent>) {
      const stored = await ours.threads.conversation(ours.threadId);
      expect(plain(ours.messages)).toEqual(stored.messages);
      expect(ours.state).toEqual(stored.state);
    }

    test("an edit makes a branch", async () => {
      const { ours } = await conversation();
      await ours.editMessage("u2", { content: "Bern" }, { runId: "run-3" });
      expect(texts(ours)).toEqual(["Rome", "Hello, Rome", "Bern", "Hello, Bern"]);
      expect(ours.messages[2]!.id).not.toBe("u2");
      await isAtHead(ours);
      const branches = await ours.threads.branches("thread-1");
      expect(branches.map(({ runId, forkedFrom, isHead }) => ({ runId, forkedFrom, isHead }))).toEqual([
        { runId: "run-2", forkedFrom: "run-1", isHead: false }, { runId: "run-3", forkedFrom: "run-1", isHead: true },
      ]);
      await ours.editMessage("u1", { content: "Lima" }, { runId: "run-4" });
      expect(texts(ours)).toEqual(["Lima", "Hello, Lima"]);
      expect(ours.state).toEqual({ turns: 1 });
      await isAtHead(ours);
      expect((await ours.threads.runs("thread-1")).at(-1)!.parentRunId).toBeUndefined();
    });

    test("regenerate answers once more, on a branch", async () => {
      const { ours } = await conversation();
      await ours.regenerate(undefined, { runId: "run-3" });
      expect(ours.messages.map(({ id }) => id)).toEqual(["u1", "a-run-1", "u2", "a-run-3"]);
      await isAtHead(ours);
      await ours.regenerate("a-run-1", { runId: "run-4" });
      expect(ours.messages.map(({ id }) => id)).toEqual(["u1", "a-run-4"]);
      await isAtHead(ours);
      expect((await ours.threads.runs("thread-1")).map(({ runId, parentRunId }) => [runId, parentRunId])).toEqual([
        ["run-1", undefined], ["run-2", "run-1"], ["run-3", "run-1"], ["run-4", undefined],
      ]);
    });

    test("an edit of a message that the server does not have runs from the head", async () => {
      const { ours } = await conversation();
      ours.addMessage(user("Lima", "u3"));
      await ours.editMessage("u3", { content: "Bern" }, { runId: "run-3" });
      expect(texts(ours).slice(-2)).toEqual(["Bern", "Hello, Bern"]);
      expect((await ours.threads.runs("thread-1")).at(-1)).toMatchObject({ runId: "run-3", parentRunId: "run-2" });
      await isAtHead(ours);
    });

    test("fork goes back, and the next run continues there", async () => {
      const { ours } = await conversation();
      await ours.fork({ parentRunId: "run-1", runId: "fork-1" });
      expect(texts(ours)).toEqual(["Rome", "Hello, Rome"]);
      expect(ours.state).toEqual({ turns: 1 });
      ours.addMessage(user("Bern", "u3"));
      await ours.runAgent({ runId: "run-3" });
      expect(texts(ours)).toEqual(["Rome", "Hello, Rome", "Bern", "Hello, Bern"]);
      await isAtHead(ours);
      await ours.fork({ beforeMessageId: "u3" });
      expect(texts(ours)).toEqual(["Rome", "Hello, Rome"]);
    });

    test("parentRunId continues any run, and connectAgent shows any branch", async () => {
      const { server, ours } = await conversation();
      ours.setMessages([...ours.messages.slice(0, 2), user("Bern", "u3")]);
      await ours.runAgent({ runId: "run-3", parentRunId: "run-1" });
      await isAtHead(ours);
      const other = new PgaguiAgent({ url: runURL(server), threadId: "thread-1" });
      await other.connectAgent({ branchRunId: "run-2" });
      expect(texts(other)).toEqual(["Rome", "Hello, Rome", "Oslo", "Hello, Oslo"]);
      other.setMessages([user("Lima", "u4")]);
      await other.runAgent({ runId: "run-4", parentRunId: "" });
      expect((await other.threads.runs("thread-1")).at(-1)).toMatchObject({ runId: "run-4", depth: 1 });
    });

    test("open interrupts come with the history, and an edit leaves them behind", async () => {
      const interrupts = [{ id: "i1", reason: "confirm" }];
      const agent = await serveAgent(async ({ input, send }) => {
        const run = { threadId: input.threadId, runId: input.runId };
        const asks = input.messages.at(-1)!.content === "Rome";
        send({ type: "RUN_STARTED", ...run });
        send({ type: "RUN_FINISHED", ...run, ...(asks && { outcome: { type: "interrupt", interrupts } }) });
      });
      const server = await serve(await database(), { assistant: agent });
      const ours = new PgaguiAgent({ url: runURL(server), threadId: "thread-1", initialMessages: [user("Rome")] });
      await ours.runAgent();
      expect(ours.pendingInterrupts).toEqual(interrupts);
      await ours.connectAgent();
      expect(ours.pendingInterrupts).toEqual(interrupts);
      await ours.editMessage("u1", { content: "Oslo" });
      expect(ours.pendingInterrupts).toEqual([]);
      expect(texts(ours)).toEqual(["Oslo"]);
    });

    test("a clone has the settings, and a position and connections of its own", async () => {
      const { ours } = await conversation();
      const cloned = ours.clone();
      expect(cloned).toBeInstanceOf(PgaguiAgent);
      expect(cloned.position).toEqual(ours.position);
      cloned.addMessage(user("Bern", "u3"));
      await cloned.runAgent();
      expect(texts(cloned).slice(-2)).toEqual(["Bern", "Hello, Bern"]);
      expect(ours.messages).toHaveLength(4);
      expect(ours.position.runId).toBe("run-2");
      cloned.url = "http://127.0.0.1:1/agent/x/run";
      cloned.headers = { "X-Own": "1" };
      expect((await ours.threads.get("thread-1")).runs).toBe(3);
    });
  });

  describe("stop", () => {
    test("ends the run at the server", async () => {
      const agent = await gatedAgent();
      const server = await serve(await database(), { assistant: agent.url });
      const ours = new PgaguiAgent({ url: runURL(server), initialMessages: [user("Rome")] });
      const running = ours.runAgent();
      await shows(ours, "Hello, ");
      expect(await ours.stopRun("enough")).toBe(1);
      const { gone } = await agent.called;
      await gone;
      // A client of AG-UI 1.0 has no result of a run that was cancelled; older ones do not learn the outcome.
      expect([undefined, { stopped: true, reason: "enough" }]).toContainEqual((await running).result);
      expect((await ours.threads.get(ours.threadId)).status).toBe("cancelled");
    });

    test("abortRun stops too, if the agent was made so", async () => {
      const agent = await gatedAgent();
      const server = await serve(await database(), { assistant: agent.url });
      const ours = new PgaguiAgent({ url: runURL(server), initialMessages: [user("Rome")], abort: "stop" });
      const ends: unknown[] = [];
      ours.subscribe({
        onRunErrorEvent: ({ event }) => void ends.push(event.message),
        onRunFailed: ({ error }) => void ends.push(error.name), // which clients do not show
      });
      const running = ours.runAgent();
      await shows(ours, "Hello, ");
      ours.abortRun();
      await running;
      expect(ends).toEqual(["AbortError"]);
      await (await agent.called).gone;
    });
  });

  test("threads can be listed, named, archived and erased", async () => {
    const server = await serve(await database(), { assistant: await politeAgent() });
    const threads = new Threads({ url: server.url });
    for (const threadId of ["a/b", "c?d"]) {
      await new PgaguiAgent({ url: runURL(server), threadId, initialMessages: [user("Rome")] }).runAgent({ runId: `run of ${threadId}` });
    }
    const page = await threads.list({ limit: 1 });
    expect(page).toMatchObject({ hasMore: true, threads: [{ threadId: "c?d", title: "Rome", agent: "assistant" }] });
    expect((await threads.list({ limit: 1, cursor: page.cursor! })).threads[0]!.threadId).toBe("a/b");
    expect((await threads.rename("a/b", "A trip")).title).toBe("A trip");
    await threads.archive("a/b");
    expect((await threads.list({ archived: "only" })).threads).toMatchObject([{ threadId: "a/b", archived: true }]);
    await threads.archive("a/b", false);
    expect(await threads.get("a/b")).toMatchObject({ archived: false });
    expect((await threads.runs("a/b"))[0]!.runId).toBe("run of a/b");
    expect((await threads.conversation("a/b", { at_seq: 1 })).seq).toBe(1);
    await threads.erase("a/b");
    await expect(threads.conversation("a/b")).rejects.toBeInstanceOf(PgaguiError);
    const controller = new AbortController();
    controller.abort(new Error("the user left"));
    await expect(threads.list({}, { signal: controller.signal })).rejects.toThrow("the user left");
  });

  test("all threads can be asked at once", async () => {
    const url = await database();
    const server = await serve(url, { assistant: await politeAgent() });
    const threads = new Threads({ url: server.url });
    for (const threadId of ["one", "two"]) {
      await new PgaguiAgent({ url: runURL(server), threadId, initialMessages: [user("Rome in spring")] }).runAgent({ runId: "r" });
    }
    const changes = await threads.changes();
    expect(changes.map((change) => (change.isErased ? "erased" : change.threadId)).sort()).toEqual(["one", "two"]);
    expect((await threads.changes({ after: changes[0]!.position, limit: 1 })).map(({ threadUid }) => threadUid)).toEqual([changes[1]!.threadUid]);
    expect(await threads.waiting()).toEqual([]);
    expect((await threads.report(new Date("2020-01-01"))).tools).toEqual([]);
    await expect(threads.search("spring")).rejects.toMatchObject({ status: 501 }); // at once
    const owner = new Client(url);
    await owner.connect();
    try {
      await owner.query("select agui.enable_search('english')");
      await owner.query("call agui.project()");
    } finally {
      await owner.end();
    }
    const { messages, cursor } = await threads.search("springs", { role: "user", limit: 1 });
    expect(messages).toMatchObject([{ role: "user", messageId: "u1", snippet: [{ text: "Rome in " }, { text: "spring", isMatch: true }] }]);
    expect((await threads.search("springs", { role: "user", cursor: cursor! })).messages).toHaveLength(1);
  });

  test("a storage that is broken is not used", async () => {
    const broken = { getItem: () => "{", setItem: () => { throw new Error("full"); } };
    const server = await serve(await database(), { assistant: await politeAgent() });
    const ours = new PgaguiAgent({ url: runURL(server), initialMessages: [user("Rome")], storage: broken, restore: true });
    await ours.runAgent({ runId: "run-1" });
    expect(ours.position).toMatchObject({ threadId: ours.threadId, runId: "run-1" });
  });

  test("the address must be that of an agent", () => {
    expect(() => new PgaguiAgent({ url: "http://localhost:8080" })).toThrow("http://localhost:8080 is not the address of an agent of pgagui serve");
    expect(new PgaguiAgent({ url: "/api/agent/a%2Fb/run" }).serverUrl).toBe("/api");
  });
}
