import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { HttpAgent, type BaseEvent } from "@ag-ui/client-0";
import { CopilotRuntime, createCopilotRuntimeHandler, InMemoryAgentRunner, type AgentRunner } from "@copilotkit/runtime/v2";
import { PgaguiAgentRunner, threadHooks, type DatabaseOptions } from "@pgagui/copilotkit-runner";
import { database, serve } from "@pgagui/testing";
import pg from "pg";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { App, begin, finish, say, startAgent, startRuntime, type Helper, type Settings } from "./copilotkit-stage.ts";

/** The class is an AgentRunner of CopilotKit, by its types. */
export const asRunner = (runner: PgaguiAgentRunner): AgentRunner => runner;

export const asHooks = (options: DatabaseOptions): NonNullable<Parameters<typeof createCopilotRuntimeHandler>[0]["hooks"]> => threadHooks(options);

async function stage(runner: Settings["runner"], pgModule?: string): Promise<Settings & { agent: Helper }> {
  const databaseURL = await database();
  const client = new pg.Client(databaseURL);
  await client.connect();
  await client.query("select agui.set_setting('heartbeat_lease', '2 seconds')");
  await client.end();
  const agent = await startAgent();
  return { runner, databaseURL, agentURL: agent.url, agent, ...(pgModule && { pg: pgModule }) };
}

/** A run with one answer. */
async function converse(app: App, agent: Helper, id: string, question: string, answer: string): Promise<void> {
  const sent = app.send(id, question);
  const call = await agent.call();
  begin(call, answer);
  finish(call);
  await sent;
}

describe.each(["pg", "pg-8.12"])("with the pool of %s", (pgModule) => {
  test("run, reload, connect twice, run on", async () => {
    const settings = await stage("pgagui", pgModule);
    const runtime = await startRuntime(settings);
    const app = await App.open(runtime, "t");
    await app.connect();
    expect(app.texts).toEqual([]);
    await converse(app, settings.agent, "q1", "Who?", "Me.");
    expect(app.texts).toEqual(["Who?", "Me."]);

    const reloaded = await App.open(runtime, "t");
    await reloaded.connect();
    await reloaded.connect();
    expect(reloaded.texts).toEqual(["Who?", "Me."]);
    await converse(reloaded, settings.agent, "q2", "Why?", "Because.");
    expect(reloaded.texts).toEqual(["Who?", "Me.", "Why?", "Because."]);
    await app.connect();
    expect(app.texts).toEqual(reloaded.texts);
    expect([...app.errors, ...reloaded.errors]).toEqual([]);
  });

  test("kill -9 in mid-run: what was streamed is kept, clients see an error, and the thread is free when the lease ends", async () => {
    const settings = await stage("pgagui", pgModule);
    const [dying, other] = await Promise.all([startRuntime(settings), startRuntime(settings)]);
    const app = await App.open(dying, "t");
    const sent = app.send("q1", "Who?");
    const call = await settings.agent.call();
    begin(call, "It is");
    await app.shows("It is");
    const watcher = await App.open(other, "t");
    const watching = watcher.connect();
    say(call, " me");
    await watcher.shows("It is me");
    await dying.kill();
    await sent;

    const impatient = await App.open(other, "t");
    await impatient.send("q2", "Still there?");
    expect(settings.agent.calls).toBe(1); // refused: the run may be alive

    await watching; // it ends because the writer of the run is gone
    expect(watcher.errors.join()).toContain("the process that wrote the run is gone");
    const patient = await App.open(other, "t");
    await patient.connect();
    expect(patient.texts).toEqual(["Who?", "It is me"]);
    await converse(patient, settings.agent, "q3", "And now?", "Here.");
    const reloaded = await App.open(await startRuntime(settings), "t");
    await reloaded.connect();
    expect(reloaded.texts).toEqual(["Who?", "It is me", "And now?", "Here."]);
    expect(reloaded.errors).toEqual([]);
  });
});

test("pages show what they show after a reload: thinking as reasoning, and no patch that RFC 6902 refuses", async () => {
  const settings = await stage("pgagui");
  const [one, two] = await Promise.all([startRuntime(settings), startRuntime(settings)]);
  const app = await App.open(one, "t");
  const sent = app.send("q1", "Who?");
  const call = await settings.agent.call();
  const { threadId, runId } = call.input;
  const send = (...events: { type: string; [member: string]: unknown }[]) => events.forEach((event) => call.send(event));
  send({ type: "RUN_STARTED", threadId, runId }, { type: "STATE_SNAPSHOT", snapshot: { a: 1 } }, { type: "THINKING_START" });
  send({ type: "THINKING_TEXT_MESSAGE_START" }, { type: "THINKING_TEXT_MESSAGE_CONTENT", delta: "Hm" });
  await app.shows("Hm");
  const other = await App.open(two, "t");
  const connected = other.connect();
  await other.shows("Hm");
  send({ type: "THINKING_TEXT_MESSAGE_CONTENT", delta: ", well" }, { type: "THINKING_TEXT_MESSAGE_END" }, { type: "THINKING_END" });
  send({ type: "STATE_DELTA", delta: [{ op: "replace", path: "/a", value: 2 }, { op: "_get", path: "/a" }] }, { type: "STATE_DELTA", delta: [{ op: "add", path: "/b", value: 1 }] });
  send({ type: "TEXT_MESSAGE_START", messageId: `${String(runId)}-answer`, role: "assistant" });
  say(call, "Me.");
  finish(call);
  await Promise.all([sent, connected]);
  const reloaded = await App.open(two, "t");
  await reloaded.connect();
  for (const { agent, errors } of [app, other, reloaded]) {
    expect(errors).toEqual([]);
    expect(agent.state).toEqual({ a: 1, b: 1 });
    expect(agent.messages).toMatchObject([
      { id: "q1", role: "user" }, { id: `${String(runId)}-thinking-4`, role: "reasoning", content: "Hm, well" }, { role: "assistant", content: "Me." },
    ]);
  }
});

test("two instances serve one thread: a client of the other joins in mid-run, and may not run beside it", async () => {
  const settings = await stage("pgagui");
  const [one, two] = await Promise.all([startRuntime(settings), startRuntime(settings)]);
  const app = await App.open(one, "t");
  const sent = app.send("q1", "Who?");
  const call = await settings.agent.call();
  begin(call, "It");
  await app.shows("It");
  const other = await App.open(two, "t");
  const connected = other.connect();
  await other.shows("It");
  say(call, " is me");
  await other.shows("It is me");
  const third = await App.open(two, "t");
  await third.send("q2", "Me too?");
  expect(settings.agent.calls).toBe(1);
  finish(call);
  await Promise.all([sent, connected]);
  expect(other.texts).toEqual(["Who?", "It is me"]);
  await converse(other, settings.agent, "q3", "Next?", "Yes.");
  await app.connect();
  expect(app.texts).toEqual(["Who?", "It is me", "Next?", "Yes."]);
});

test("stop from another process reaches the agent", async () => {
  const settings = await stage("pgagui");
  const [one, two] = await Promise.all([startRuntime(settings), startRuntime(settings)]);
  const app = await App.open(one, "t");
  const sent = app.send("q1", "Who?");
  const call = await settings.agent.call();
  begin(call, "It");
  await app.shows("It");
  expect(await (await App.open(two, "t")).stop()).toBe(true);
  await Promise.all([sent, call.gone]);
  const reloaded = await App.open(two, "t");
  await reloaded.connect();
  expect(reloaded.texts).toEqual(["Who?", "It"]);
  expect(await reloaded.stop()).toBe(false);
});

test("the list of threads, names, archive and deletion", async () => {
  const settings = await stage("pgagui");
  const runtime = await startRuntime(settings);
  const app = await App.open(runtime, "t");
  await converse(app, settings.agent, "q1", "Who?", "Me.");
  await converse(await App.open(runtime, "t2"), settings.agent, "q2", "Why?", "Because.");
  expect(await app.list()).toEqual(["t2 Why? false", "t Who? false"]);
  await app.threads.renameThread("t", "A name");
  await app.threads.archiveThread("t2");
  expect(await app.list()).toEqual(["t A name false"]);
  expect(await app.list(true)).toEqual(["t2 Why? true", "t A name false"]);
  await app.threads.deleteThread("t");
  expect(await app.list(true)).toEqual(["t2 Why? true"]);
  const get = async (path: string) => (await fetch(`${runtime.url}/threads/${path}`)).json() as Promise<Record<string, unknown>>;
  expect(await get("t2/messages")).toEqual({ messages: [{ id: "q2", role: "user", content: "Why?" }, expect.objectContaining({ content: "Because." })] });
  expect(await get("t2/state")).toEqual({ state: {} });
  expect(((await get("t2/events")).events as { type: string }[]).at(-1)!.type).toBe("RUN_FINISHED");
  expect(await get("t/messages")).toEqual({ messages: [] });
  const rename = await fetch(`${runtime.url}/threads/unknown`, { method: "PATCH", body: JSON.stringify({ agentId: "helper", name: "x" }) });
  expect(rename.status).toBe(404);
});

test("the list of threads, names, archive and deletion over a single path, of the runtime and of pgagui serve", async () => {
  const settings = { ...(await stage("pgagui")), transport: "single" as const };
  const runtime = await startRuntime(settings);
  const server = await serve(settings.databaseURL, { helper: settings.agentURL });
  for (const url of [runtime.url, `${server.url}/copilotkit`]) {
    const app = await App.open({ url }, "t", "single");
    await converse(app, settings.agent, "q1", "Who?", "Me.");
    await converse(await App.open({ url }, "t2", "single"), settings.agent, "q2", "Why?", "Because.");
    expect(await app.list()).toEqual(["t2 Why? false", "t Who? false"]);
    await app.threads.renameThread("t", "A name");
    await app.threads.archiveThread("t2");
    expect(await app.list()).toEqual(["t A name false"]);
    await app.threads.deleteThread("t");
    expect(await app.list(true)).toEqual(["t2 Why? true"]);
    expect(app.errors).toEqual([]);
    await app.threads.deleteThread("t2");
    const client = new pg.Client(settings.databaseURL);
    await client.connect();
    await client.query("select agui.lift_erasure(id) from unnest(array['t', 't2']) as id");
    await client.end();
  }
});

test("a list of threads shows those that its user began", async () => {
  const { databaseURL, agent } = await stage("pgagui");
  const users = new AsyncLocalStorage<string>();
  const options = { connectionString: databaseURL, user: () => users.getStore() };
  const runner = new PgaguiAgentRunner(options);
  const hooks = threadHooks(options);
  onTestFinished(() => Promise.all([runner.close(), hooks.close()]).then(() => {}));
  const runtime = new CopilotRuntime({ agents: { helper: new HttpAgent({ url: agent.url }) as never }, runner });
  const handler = createCopilotRuntimeHandler({ runtime, basePath: "/copilotkit", hooks });
  const ask = (user: string, method: string, path: string, body?: object) => users.run(user, () =>
    handler(new Request(`http://localhost/copilotkit${path}`, { method, ...(body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }) })));
  for (const user of ["ada", "bo"]) {
    const messages = [{ id: "q", role: "user", content: `I am ${user}` }];
    const input = { threadId: `t-${user}`, runId: "r", messages, state: {}, tools: [], context: [], forwardedProps: {} };
    const answer = (await ask(user, "POST", "/agent/helper/run", input)).text();
    const call = await agent.call();
    begin(call, "Hello.");
    finish(call);
    await answer;
  }
  for (const user of ["ada", "bo"]) {
    const { threads } = (await (await ask(user, "GET", "/threads?agentId=helper")).json()) as { threads: object[] };
    expect(threads).toMatchObject([{ id: `t-${user}`, name: `I am ${user}`, agentId: "helper", createdById: user }]);
  }
});

/** The events of a stream, when it has completed. */
function collected(stream: ReturnType<AgentRunner["run"]>, events: BaseEvent[] = []): Promise<BaseEvent[]> {
  return new Promise((resolve, reject) => {
    stream.subscribe({ next: (event) => void events.push(event as BaseEvent), complete: () => resolve(events), error: reject });
  });
}

/** What both runners do, as the runtime calls them. */
describe.each(["memory", "pgagui"])("the runner %s", (kind) => {
  async function stageOf(onConcurrentRun?: "throw" | "supersede") {
    const { databaseURL, agent } = await stage("pgagui");
    const runner = kind === "memory" ? new InMemoryAgentRunner({ onConcurrentRun }) : new PgaguiAgentRunner({ connectionString: databaseURL, onConcurrentRun });
    onTestFinished(() => (runner instanceof PgaguiAgentRunner ? runner.close() : undefined));
    const threadId = randomUUID(); // the runner in memory has one store
    const run = (runId: string, messages: object[]) => {
      const own = new HttpAgent({ url: agent.url, agentId: "helper", threadId });
      own.setMessages(messages as never);
      const input = { threadId, runId, messages, state: {}, tools: [], context: [], forwardedProps: {} };
      return runner.run({ threadId, agent: own, input } as unknown as Parameters<AgentRunner["run"]>[0]);
    };
    return { runner, agent, threadId, run };
  }
  const question = (id: string) => ({ id, role: "user", content: `${id}?` });

  test("RUN_STARTED carries the input, with the messages that are new to the thread", async () => {
    const { agent, run } = await stageOf();
    const first = collected(run("r1", [question("q1")]));
    const call = await agent.call();
    begin(call, "One.");
    finish(call);
    const [started] = await first;
    expect(started).toMatchObject({ type: "RUN_STARTED", input: { runId: "r1", messages: [question("q1")], tools: [], context: [] } });

    const messages = [question("q1"), { id: "r1-answer", role: "assistant", content: "One." }, question("q2")];
    const second = collected(run("r2", messages));
    const next = await agent.call();
    begin(next, "Two.");
    finish(next);
    const [restarted] = await second;
    expect(restarted).toMatchObject({ type: "RUN_STARTED", input: { runId: "r2", messages: [question("q2")] } });
  });

  test("a run is in progress as soon as run has returned, and a second one is refused at once", async () => {
    const { runner, agent, threadId, run } = await stageOf();
    const first = collected(run("r1", [question("q1")]));
    expect(await runner.isRunning({ threadId })).toBe(true);
    expect(() => run("r2", [question("q2")])).toThrow("Thread already running");
    const call = await agent.call();
    begin(call, "One.");
    finish(call);
    await first;
    expect(await runner.isRunning({ threadId })).toBe(false);
    expect(agent.calls).toBe(1);
  });

  test("with supersede, a run takes the place of the one in progress, whose agent is aborted", async () => {
    const { agent, threadId, run, runner } = await stageOf("supersede");
    const firstEvents: BaseEvent[] = [];
    const first = collected(run("r1", [question("q1")]), firstEvents);
    const call = await agent.call();
    begin(call, "One");
    await vi.waitFor(() => expect(firstEvents.map(({ type }) => type as string)).toContain("TEXT_MESSAGE_CONTENT"));
    const second = collected(run("r2", [question("q1"), question("q2")]));
    await Promise.all([first, call.gone]);
    // The runner in memory passes on that HttpAgent takes the abort for a failure.
    expect(firstEvents.slice(3).map(({ type }) => type as string)).toEqual(kind === "memory" ? ["RUN_ERROR"] : ["TEXT_MESSAGE_END", "RUN_FINISHED"]);
    const next = await agent.call();
    begin(next, "Two.");
    finish(next);
    expect((await second).map(({ type }) => type as string)).toEqual([
      "RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED",
    ]);
    const shown = await collected(runner.connect({ threadId }));
    expect(JSON.stringify(shown)).toContain("Two.");
  });
});

test("what the runner in memory loses", async () => {
  const settings = await stage("memory");
  const [one, two] = await Promise.all([startRuntime(settings), startRuntime(settings)]);
  const app = await App.open(one, "t");
  await converse(app, settings.agent, "q1", "Who?", "Me.");
  const other = await App.open(two, "t");
  await other.connect();
  expect(other.texts).toEqual([]); // another instance has no history

  const sent = app.send("q2", "Why?");
  const call = await settings.agent.call();
  begin(call, "Because");
  await app.shows("Because");
  expect(await other.stop()).toBe(false); // and cannot stop
  const beside = other.send("q3", "Me too?");
  const second = await settings.agent.call(); // but runs beside
  begin(second, "Yes");
  finish(second);
  await beside;
  await one.kill();
  await sent;
  const reloaded = await App.open(await startRuntime(settings), "t");
  await reloaded.connect();
  expect(reloaded.texts).toEqual([]); // a crash loses everything
});
