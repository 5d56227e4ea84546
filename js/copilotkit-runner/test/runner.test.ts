import type { AguiEvent } from "@pgagui/postgres";
import { database } from "@pgagui/testing";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  close, CountingPool, finished, inputOf, logOf, open, PlayedAgent, process, receive, request, sql, started, talk, talked, token, types,
  type Received,
} from "./harness.ts";

test("a run is stored as the agent sent it, and its subscriber sees it", async () => {
  const connectionString = await database();
  const runner = process({ connectionString });
  const received = await talked(runner, "t", "r", "Hello.");
  expect(received.error).toBeUndefined();
  expect(received.events).toEqual(talk("t", "r", "Hello."));
  expect(received.inputs).toEqual([inputOf("t", "r")]);
  expect(await logOf(connectionString, "t")).toEqual(talk("t", "r", "Hello."));
});

test("RUN_STARTED carries the messages that the branch does not have, and all of them if it cannot be read", async () => {
  const connectionString = await database();
  const pool = new CountingPool({ connectionString });
  const runner = process({ pool });
  await talked(runner, "t", "r1", "One.");
  await talked(runner, "t", "r2", "Two.");
  const messages = ["r1-question", "r2-question", "r3-question"].map((id) => ({ id, role: "user", content: "Hello?" }));
  const idsOf = ({ inputs }: { inputs: unknown[] }) => (inputs[0] as { messages: { id: string }[] }).messages.map(({ id }) => id);
  expect(idsOf(await talked(runner, "t", "r3", "Three.", { messages }))).toEqual(["r3-question"]);
  expect(idsOf(await talked(runner, "t", "r4", "Other two.", { messages, parentRunId: "r1" }))).toEqual(["r2-question", "r3-question"]);
  pool.fail = (text) => (text.includes("agui.messages(") ? Object.assign(new Error("over a limit"), { severity: "ERROR", code: "UI023" }) : undefined);
  const unread = await talked(runner, "t", "r5", "Five.", { messages });
  expect(idsOf(unread)).toEqual(["r1-question", "r2-question", "r3-question"]);
  expect(unread.events).toEqual(talk("t", "r5", "Five."));
});

test("the input is kept beside the events, unless RUN_STARTED carries one", async () => {
  const connectionString = await database();
  const runner = process({ connectionString });
  await talked(runner, "t", "r", "Hello.");
  const [row] = await sql<{ roles: string[] }>(connectionString, "select array_agg(role order by position) as roles from agui.messages('t')");
  expect(row!.roles).toEqual(["user", "assistant"]);

  const agent = new PlayedAgent();
  const received = receive(runner.run(request("t", "r2", agent)));
  await agent.send({ ...started("t", "r2"), input: inputOf("t", "r2", { messages: [{ id: "other", role: "user", content: "Else." }] }) });
  await agent.send(finished("t", "r2"));
  await agent.end();
  await received.done;
  const inputs = await sql<{ n: string }>(connectionString, "select count(*) as n from agui.run_input");
  expect(inputs[0]!.n).toBe("1");
});

test("a client sees an event only when it is stored", async () => {
  const connectionString = await database();
  const runner = process({ connectionString });
  const agent = new PlayedAgent();
  const received = receive(runner.run(request("t", "r", agent)));
  await agent.send(started("t", "r"), open("m"));
  await received.until("TEXT_MESSAGE_START");
  expect(types(await logOf(connectionString, "t"))).toEqual(["RUN_STARTED", "TEXT_MESSAGE_START"]);
  await agent.end();
  await received.done;
});

test("a second run of a thread in progress is refused, in any process, before its agent is called", async () => {
  const connectionString = await database();
  const [one, other] = [process({ connectionString }), process({ connectionString })];
  const agent = new PlayedAgent();
  const received = receive(one.run(request("t", "r", agent)));
  await agent.called;
  // Before its first event, the run is claimed.
  expect(() => one.run(request("t", "r2", new PlayedAgent()))).toThrow("Thread already running");
  const second = receive(other.run(request("t", "r2", new PlayedAgent())));
  await second.done;
  expect(second.events).toEqual([{ type: "RUN_ERROR", message: "Thread already running", code: "NOT_STORED" }]);
  for (const runner of [one, other]) {
    expect(await runner.isRunning({ threadId: "t" })).toBe(true);
  }
  await agent.send(...talk("t", "r", "Hello."));
  await agent.end();
  await received.done;
  expect(await other.isRunning({ threadId: "t" })).toBe(false);
  expect((await talked(other, "t", "r3", "And?")).error).toBeUndefined();
});

test("a client that receives the end of a run can begin the next one at once", async () => {
  const runner = process({ connectionString: await database() });
  const agent = new PlayedAgent();
  const next = new Promise<Received>((resolve) => {
    runner.run(request("t", "r", agent)).subscribe((event) => {
      if (event.type as string === "RUN_FINISHED") {
        resolve(talked(runner, "t", "r2", "And?"));
      }
    });
  });
  await agent.send(...talk("t", "r", "Hello."));
  await agent.end();
  expect((await next).error).toBeUndefined();
});

test("with supersede, the last of several runs gets the thread, and those before it end as stopped, also in other processes", async () => {
  const connectionString = await database();
  const one = process({ connectionString, heartbeatInterval: 50 });
  const other = process({ connectionString, onConcurrentRun: "supersede" });
  const agents = Array.from({ length: 4 }, () => new PlayedAgent());
  const first = receive(one.run(request("t", "r0", agents[0]!)));
  await agents[0]!.send(started("t", "r0"), open("m"), token("m", "It"));
  await first.until("TEXT_MESSAGE_CONTENT");
  const later = [1, 2, 3].map((n) => receive(other.run(request("t", `r${n}`, agents[n]!))));
  await Promise.all([first.done, later[0]!.done, later[1]!.done]);
  expect(agents.map(({ isAborted }) => isAborted)).toEqual([true, true, true, false]);
  await agents[3]!.send(...talk("t", "r3", "Hello."));
  await agents[3]!.end();
  await later[2]!.done;
  expect(later.map(({ error }) => error)).toEqual([undefined, undefined, undefined]);
  expect(types(first.events).slice(-2)).toEqual(["TEXT_MESSAGE_END", "RUN_FINISHED"]);
  expect(later[2]!.events).toEqual(talk("t", "r3", "Hello."));
  const runs = await sql<{ run_id: string; status: string }>(connectionString, "select run_id, status from agui.runs('t')");
  expect(runs.map(({ run_id, status }) => `${run_id} ${status}`)).toEqual(["r0 cancelled", "r1 cancelled", "r2 cancelled", "r3 finished"]);
  expect(await sql(connectionString, "select stop_reason from agui.status('t', 'r0')")).toEqual([{ stop_reason: "superseded by another run" }]);
});

test("with supersede, a run that waits for another one ends when the runner is closed", async () => {
  const connectionString = await database();
  const [one, other] = [process({ connectionString, heartbeatInterval: 5000 }), process({ connectionString, onConcurrentRun: "supersede" })];
  const agent = new PlayedAgent("ignored");
  receive(one.run(request("t", "r", agent)));
  await agent.called;
  const waiting = receive(other.run(request("t", "r2", new PlayedAgent())));
  await other.close();
  await waiting.done;
  expect(waiting.events).toEqual([{ type: "RUN_ERROR", message: "the process shuts down", code: "NOT_STORED" }]);
});

test("an agent that takes the abort for a failure ends as stopped", async () => {
  const connectionString = await database();
  const runner = process({ connectionString });
  const agent = new PlayedAgent("ignored");
  const received = receive(runner.run(request("t", "r", agent)));
  await agent.send(started("t", "r"));
  await received.until("RUN_STARTED");
  expect(await runner.stop({ threadId: "t" })).toBe(true);
  await agent.send({ type: "RUN_ERROR", message: "This operation was aborted", code: "abort" });
  await agent.end();
  await received.done;
  expect(types(received.events)).toEqual(["RUN_STARTED", "RUN_FINISHED"]);
  expect(await sql(connectionString, "select status from agui.status('t')")).toEqual([{ status: "cancelled" }]);
});

test("connect to an unknown thread is empty and completes", async () => {
  const runner = process({ connectionString: await database() });
  const received = receive(runner.connect({ threadId: "unknown" }));
  await received.done;
  expect(received.events).toEqual([]);
  expect(received.error).toBeUndefined();
});

test("connect sends the history as a snapshot", async () => {
  const runner = process({ connectionString: await database() });
  await talked(runner, "t", "r", "Hello.");
  await talked(runner, "t", "r2", "Bye.");
  const received = receive(runner.connect({ threadId: "t" }));
  await received.done;
  expect(types(received.events)).toEqual(["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED"]);
  const { messages } = received.events[1] as unknown as { messages: { content: string }[] };
  expect(messages.map((message) => message.content)).toEqual(["Hello?", "Hello.", "Hello?", "Bye."]);
});

test("a client of another process joins a run in mid-message, and sees the rest live", async () => {
  const connectionString = await database();
  const [one, other] = [process({ connectionString }), process({ connectionString })];
  const agent = new PlayedAgent();
  const poster = receive(one.run(request("t", "r", agent)));
  await agent.send(started("t", "r"), open("m"), token("m", "Hel"));
  await poster.until("TEXT_MESSAGE_CONTENT");
  const follower = receive(other.connect({ threadId: "t" }));
  await follower.until("TEXT_MESSAGE_START");
  await agent.send(token("m", "lo."));
  await follower.until("TEXT_MESSAGE_CONTENT");
  await agent.send(close("m"), finished("t", "r"));
  await agent.end();
  await follower.done;
  expect(types(follower.events)).toEqual([
    "RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED",
  ]);
  expect(follower.events[4]!.delta).toBe("lo.");
});

test("a client gets no piece of a message that is not there, as after a reload", async () => {
  const connectionString = await database();
  const [runner, other] = [process({ connectionString }), process({ connectionString })];
  const before = new PlayedAgent();
  const first = receive(runner.run(request("t", "r1", before)));
  await before.send(...talk("t", "r1", "One"));
  await before.end();
  await first.done;
  const known = first.events.find(({ type }) => type === "TEXT_MESSAGE_START")!.messageId as string;

  const agent = new PlayedAgent();
  const piece = (messageId: string, delta: string): AguiEvent => ({ type: "TEXT_MESSAGE_CONTENT", messageId, delta });
  const run = receive(runner.run(request("t", "r2", agent)));
  await agent.send(started("t", "r2"), { type: "STATE_SNAPSHOT", snapshot: 1 });
  const joined = receive(other.connect({ threadId: "t" } as never));
  await vi.waitFor(() => expect(types(joined.events)).toContain("STATE_SNAPSHOT"));
  await agent.send(
    piece("unknown", "wrong"), { type: "REASONING_MESSAGE_CONTENT", messageId: "unknown", delta: "wrong" }, piece(known, " and a half"),
    { type: "TOOL_CALL_START", toolCallId: "c", toolCallName: "f", parentMessageId: "m" }, piece("m", "of a call"), { type: "TEXT_MESSAGE_END", messageId: "m" },
    { type: "MESSAGES_SNAPSHOT", messages: [{ id: "listed", role: "assistant", content: "" }] }, piece("m", "wrong"), piece("listed", "last"),
    { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: "{}" }, finished("t", "r2"),
  );
  await agent.end();
  await Promise.all([run.done, joined.done]);
  for (const { events } of [run, joined]) {
    const deltas = events.flatMap(({ delta }) => delta ?? []);
    expect(deltas.slice(-4)).toEqual([" and a half", "of a call", "last", "{}"]);
    expect(JSON.stringify(events)).not.toContain("wrong");
  }
  const [restored] = await sql<{ messages: { id: string; content?: string }[] }>(connectionString, "select agui.restore('t') -> 'messages' as messages");
  expect(restored!.messages).toEqual([expect.objectContaining({ id: "listed", content: "last" })]);
});

test("a client that connects before the first event of a run waits for it", async () => {
  const connectionString = await database();
  const [one, other] = [process({ connectionString }), process({ connectionString })];
  const agent = new PlayedAgent();
  receive(one.run(request("t", "r", agent)));
  await agent.called;
  const follower = receive(other.connect({ threadId: "t" }));
  await agent.send(...talk("t", "r", "Hello."));
  await agent.end();
  await follower.done;
  expect(types(follower.events).at(-1)).toBe("RUN_FINISHED");
  expect(JSON.stringify(follower.events)).toContain("Hello");
});

test("a run goes on when its subscriber leaves", async () => {
  const connectionString = await database();
  const runner = process({ connectionString });
  const agent = new PlayedAgent();
  const received = receive(runner.run(request("t", "r", agent)));
  await agent.send(started("t", "r"), open("m"));
  await received.until("TEXT_MESSAGE_START");
  received.leave();
  await agent.send(token("m", "Hello."), close("m"), finished("t", "r"));
  await agent.end();
  await runner.idle();
  expect(types(await logOf(connectionString, "t"))).toEqual(types(talk("t", "r", "")));
});

test("an agent that fails ends its run as failed, with the input", async () => {
  const connectionString = await database();
  const runner = process({ connectionString });
  const agent = new PlayedAgent();
  const received = receive(runner.run(request("t", "r", agent)));
  await agent.end(new Error("no model today"));
  await received.done;
  expect(received.events).toEqual([started("t", "r"), { type: "RUN_ERROR", message: "no model today", code: "INCOMPLETE_STREAM" }]);
  expect(await logOf(connectionString, "t")).toEqual(received.events);
  const [question] = await sql<{ message: { content: string } }>(connectionString, "select message from agui.messages('t')");
  expect(question!.message.content).toBe("Hello?");
});

const snapshotOf = (message: object): AguiEvent => ({ type: "MESSAGES_SNAPSHOT", messages: [{ id: "1", content: "x", ...message }] });

test.each<[string, AguiEvent]>([
  ["a user with a call that is none", snapshotOf({ role: "user", toolCalls: [{}] })],
  ["a user with calls that are no list", snapshotOf({ role: "user", toolCalls: 1 })],
  ["a role of the prototype", snapshotOf({ role: "__proto__" })],
  ["another role of the prototype", snapshotOf({ role: "constructor" })],
  ["a role that has no text", snapshotOf({ role: { toString: 1 } })],
  ["a path that has no text", { type: "STATE_DELTA", delta: [{ op: "move", from: "/a", path: { toString: 1 } }] }],
  ["an input with a call that is none", {
    ...started("t", "r"), input: inputOf("t", "r", { messages: [{ id: "1", role: "user", content: "x", toolCalls: [{}] }] }),
  }],
])("%s harms no run of the process", async (_, malformed) => {
  const rejections: unknown[] = [];
  const note = (reason: unknown) => void rejections.push(reason);
  globalThis.process.on("unhandledRejection", note);
  onTestFinished(() => void globalThis.process.off("unhandledRejection", note));
  const connectionString = await database();
  const [runner, other] = [process({ connectionString }), process({ connectionString })];
  const [agent, untouched] = [new PlayedAgent(), new PlayedAgent()];
  const received = receive(runner.run(request("t", "r", agent)));
  const second = receive(runner.run(request("t2", "r", untouched)));
  await untouched.send(started("t2", "r"));
  await second.until("RUN_STARTED");
  await agent.send(...(malformed.type === "RUN_STARTED" ? [malformed] : [started("t", "r"), malformed]), open("m"));
  await received.until("TEXT_MESSAGE_START");
  await agent.send(close("m"), finished("t", "r"));
  await agent.end();
  await received.done;
  expect(received.events.at(-1)).toEqual(finished("t", "r"));
  const roles = received.events.flatMap(({ messages = [] }) => messages as { role: unknown }[]).map(({ role }) => role);
  expect(roles.filter((role) => role !== "user")).toEqual([]);
  const follower = receive(other.connect({ threadId: "t" }));
  await follower.done;
  expect(types(follower.events).at(-1)).toBe("RUN_FINISHED");
  await untouched.send(finished("t2", "r"));
  await untouched.end();
  await second.done;
  expect(second.events).toEqual([started("t2", "r"), finished("t2", "r")]);
  expect(rejections).toEqual([]);
});

test.each<[string, AguiEvent]>([
  ["an end that is no JSON", { ...finished("t", "r"), result: 1n }],
  ["an event that is no JSON", { type: "CUSTOM", name: "n", value: 1n }],
])("%s fails the run, behind what the agent sent before, and the next one begins", async (_, unstorable) => {
  const connectionString = await database();
  const runner = process({ connectionString });
  const agent = new PlayedAgent();
  const received = receive(runner.run(request("t", "r", agent)));
  await agent.send(started("t", "r"), open("m"), token("m", "x"), close("m"), finished("t", "r"), unstorable, token("m", "too late"));
  await agent.end();
  await received.done;
  expect(agent.isAborted).toBe(true);
  expect(received.events.slice(0, 4)).toEqual([started("t", "r"), open("m"), token("m", "x"), close("m")]);
  expect(received.events.at(-1)).toEqual({
    type: "RUN_ERROR", code: "NOT_STORED", message: expect.stringContaining("The agent sent an event that is no JSON: ") as string,
  });
  expect(await logOf(connectionString, "t")).toEqual(received.events);
  expect(await sql(connectionString, "select status from agui.status('t')")).toEqual([{ status: "failed" }]);
  expect((await talked(runner, "t", "r2", "Hello.")).error).toBeUndefined();
});

test("an agent that goes on without end after its error is stopped", async () => {
  const connectionString = await database();
  const runner = process({ connectionString });
  const agent = new PlayedAgent();
  const received = receive(runner.run(request("t", "r", agent)));
  const failure = { type: "RUN_ERROR", message: "no model today" };
  await agent.send(started("t", "r"), failure);
  const late = token("m", "x".repeat(1 << 20));
  let sent = 0;
  while (!agent.isAborted) {
    await agent.send(late);
    expect(++sent).toBeLessThan(17);
  }
  await received.done;
  expect(received.events).toEqual([started("t", "r"), failure]);
  expect(await logOf(connectionString, "t")).toEqual([
    started("t", "r"), failure, { type: "RUN_ERROR", message: "The agent sent more than 16 MB after an end of its run.", code: "EVENTS_AFTER_END" },
  ]);
});

test("an end that the agent changes after it sent it, and types of the prototype, hold no thread", async () => {
  const runner = process({ connectionString: await database() });
  const agent = new PlayedAgent();
  const received = receive(runner.run(request("t", "r", agent)));
  const end: AguiEvent = finished("t", "r");
  await agent.send(started("t", "r"), end);
  await received.until("RUN_STARTED");
  end.result = end;
  await agent.end();
  await received.done;
  expect(received.events.at(-1)).toMatchObject({ type: "RUN_ERROR", code: "NOT_STORED" });

  const odd = new PlayedAgent();
  const second = receive(runner.run(request("t", "r2", odd)));
  await odd.send(started("t", "r2"), { type: "constructor" }, { type: "__proto__" });
  await odd.end();
  await second.done;
  expect(second.events.at(-1)).toMatchObject({ type: "RUN_ERROR", code: "INCOMPLETE_STREAM" });
  expect((await talked(runner, "t", "r3", "Hello.")).error).toBeUndefined();
});

test("ends of turns do not end the run, and events after the end are stored", async () => {
  const connectionString = await database();
  const runner = process({ connectionString });
  const agent = new PlayedAgent();
  const received = receive(runner.run(request("t", "r", agent)));
  const turn = (n: number) => [started("t", "agent's own"), open(`m${n}`), token(`m${n}`, "x"), close(`m${n}`), finished("t", "agent's own")];
  await agent.send(...turn(1));
  await received.until("TEXT_MESSAGE_END");
  expect(await runner.isRunning({ threadId: "t" })).toBe(true);
  await agent.send(...turn(2));
  await agent.end();
  await received.done;
  expect(types(await logOf(connectionString, "t"))).toEqual([
    "RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
    "RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED", "RUN_FINISHED",
  ]);
  expect(types(received.events).filter((type) => type.startsWith("RUN_"))).toEqual(["RUN_STARTED", "RUN_FINISHED"]);
});

test("stop reaches the agent from another process, and ends the run as CopilotKit does", async () => {
  const connectionString = await database();
  const [one, other] = [process({ connectionString, heartbeatInterval: 50 }), process({ connectionString })];
  const agent = new PlayedAgent();
  const received = receive(one.run(request("t", "r", agent)));
  const call = [{ type: "TOOL_CALL_START", toolCallId: "c", toolCallName: "search" }, { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: "{" }];
  await agent.send(started("t", "r"), open("m"), ...call);
  await received.until("TOOL_CALL_ARGS");
  expect(await other.stop({ threadId: "t", runId: "not this one" })).toBe(false);
  expect(await other.stop({ threadId: "t" })).toBe(true);
  await received.done;
  expect(agent.isAborted).toBe(true);
  expect(types(received.events).slice(4)).toEqual(["TEXT_MESSAGE_END", "TOOL_CALL_END", "TOOL_CALL_RESULT", "RUN_FINISHED"]);
  expect(JSON.parse(received.events[6]!.content as string)).toEqual({ status: "stopped", reason: "stop_requested", message: "aborted" });
  // The client of CopilotKit refuses the outcome, which the log has.
  expect(received.events.at(-1)).toEqual({ type: "RUN_FINISHED", threadId: "t", runId: "r" });
  expect((await logOf(connectionString, "t")).at(-1)).toMatchObject({ type: "RUN_FINISHED", outcome: { type: "cancelled" } });
  expect(await sql(connectionString, "select status, stop_reason from agui.status('t')")).toEqual([{ status: "cancelled", stop_reason: "by the user" }]);
  expect((await logOf(connectionString, "t")).slice(0, -1)).toEqual(received.events.slice(0, -1));
  expect(await other.stop({ threadId: "t" })).toBe(false);
  expect(await other.stop({ threadId: "unknown" })).toBe(false);
});

test("an agent that does not end when it is aborted does not hold its thread", async () => {
  const connectionString = await database();
  const runner = process({ connectionString, stopTimeout: 100 });
  const agent = new PlayedAgent("ignored");
  const received = receive(runner.run(request("t", "r", agent)));
  await agent.send(started("t", "r"), open("m"));
  await received.until("TEXT_MESSAGE_START");
  expect(await runner.stop({ threadId: "t", runId: "r" })).toBe(true);
  await received.done;
  await agent.send(token("m", "too late"));
  expect(types(await logOf(connectionString, "t")).at(-1)).toBe("RUN_FINISHED");
  expect((await talked(runner, "t", "r2", "Hello.")).error).toBeUndefined();
});

test("an agent may have forever to end after a stop", async () => {
  const connectionString = await database();
  const runner = process({ connectionString, stopTimeout: Infinity });
  const agent = new PlayedAgent("ignored");
  const received = receive(runner.run(request("t", "r", agent)));
  await agent.send(started("t", "r"), open("m"));
  await received.until("TEXT_MESSAGE_START");
  expect(await runner.stop({ threadId: "t", runId: "r" })).toBe(true);
  await vi.waitFor(() => expect(agent.isAborted).toBe(true));
  await talked(runner, "another", "r", "Hello."); // takes longer than a timer that overflows
  await agent.send(token("m", "last words"), close("m"));
  await agent.end();
  await received.done;
  expect(JSON.stringify(await logOf(connectionString, "t"))).toContain("last words");
});

test("a run that stop reaches before its agent is called ends without it", async () => {
  const connectionString = await database();
  const runner = process({ connectionString });
  const agent = new PlayedAgent();
  const received = receive(runner.run(request("t", "r", agent)));
  expect(await runner.isRunning({ threadId: "t" })).toBe(true);
  expect(await runner.stop({ threadId: "t", runId: "another" })).toBe(false);
  expect(await runner.stop({ threadId: "t" })).toBe(true); // directly after run
  await received.done;
  expect(types(await logOf(connectionString, "t")).at(-1)).toBe("RUN_FINISHED");
});

test("close ends the runs of the process as failed, and its streams", async () => {
  const connectionString = await database();
  const [one, other] = [process({ connectionString }), process({ connectionString })];
  const agent = new PlayedAgent("ignored");
  const received = receive(one.run(request("t", "r", agent)));
  await agent.send(started("t", "r"), open("m"));
  await received.until("TEXT_MESSAGE_START");
  const own = receive(one.connect({ threadId: "t" }));
  const others = receive(other.connect({ threadId: "t" }));
  await Promise.all([own.until("TEXT_MESSAGE_START"), others.until("TEXT_MESSAGE_START")]);
  await one.close();
  await Promise.all([received.done, own.done, others.done]);
  for (const { events } of [received, own, others]) {
    expect(events.at(-1)).toMatchObject({ type: "RUN_ERROR", message: expect.stringContaining("the process shuts down") as string });
  }
  const refused = receive(one.run(request("t2", "r", new PlayedAgent())));
  await refused.done;
  expect(refused.events).toMatchObject([{ type: "RUN_ERROR", code: "NOT_STORED" }]);
});

test("a run may name its parent, as a branch", async () => {
  const connectionString = await database();
  const runner = process({ connectionString });
  await talked(runner, "t", "r1", "One.");
  await talked(runner, "t", "r2", "Two.");
  await talked(runner, "t", "r3", "Other two.", { forwardedProps: { pgagui: { parentRunId: "r1" } } });
  await talked(runner, "t", "r4", "Anew.", { parentRunId: "" });
  const runs = await sql<{ run_id: string; parent_run_id: string | null }>(connectionString, "select run_id, parent_run_id from agui.runs('t')");
  expect(runs.map((run) => [run.run_id, run.parent_run_id])).toEqual([["r1", null], ["r2", "r1"], ["r3", "r1"], ["r4", null]]);
  const unknown = receive(runner.run(request("t", "r5", new PlayedAgent(), { parentRunId: "missing" })));
  await unknown.done;
  expect(unknown.events).toMatchObject([{ type: "RUN_ERROR", message: expect.stringContaining("missing") as string }]);
});

test("events that arrive together share a batch", async () => {
  const connectionString = await database();
  const pool = new CountingPool({ connectionString });
  const runner = process({ pool });
  const agent = new PlayedAgent();
  const received = receive(runner.run(request("t", "r", agent)));
  await agent.send(started("t", "r"), open("m"));
  await Promise.all(Array.from({ length: 1200 }, (_, i) => agent.send(token("m", String(i)))));
  await agent.send(close("m"), finished("t", "r"));
  await agent.end();
  await received.done;
  expect(received.events).toHaveLength(1204);
  expect(pool.calls("agui.append(")).toBeLessThan(10);
  const stored = await logOf(connectionString, "t");
  expect(stored).toEqual(received.events);
});

test("all followers of a process poll with one query, and followers at one position with one item", async () => {
  const connectionString = await database();
  const writer = process({ connectionString });
  const pool = new CountingPool({ connectionString });
  const reader = process({ pool });
  const threads = await Promise.all(Array.from({ length: 30 }, async (_, i) => {
    const agent = new PlayedAgent();
    const poster = receive(writer.run(request(`t${i}`, "r", agent)));
    await agent.send(started(`t${i}`, "r"), open("m"));
    await poster.until("TEXT_MESSAGE_START");
    const followers = [receive(reader.connect({ threadId: `t${i}` })), receive(reader.connect({ threadId: `t${i}` }))];
    await Promise.all(followers.map((follower) => follower.until("TEXT_MESSAGE_START")));
    return { agent, followers, i };
  }));
  pool.statements.length = 0;
  const begin = Date.now();
  for (let round = 1; round <= 10; round++) {
    await Promise.all(threads.map(({ agent }) => agent.send(token("m", "x"))));
    await Promise.all(threads.flatMap(({ followers }) => followers.map((follower) => follower.until("TEXT_MESSAGE_CONTENT", round))));
  }
  const most = (Date.now() - begin) / 20 + 2; // one each interval
  expect(pool.statements.filter((statement) => !statement.includes("agui.poll") && !statement.includes("agui.status"))).toEqual([]);
  expect(pool.calls("agui.poll")).toBeLessThan(most);
  await Promise.all(threads.map(async ({ agent, i }) => {
    await agent.send(close("m"), finished(`t${i}`, "r"));
    await agent.end();
  }));
  await Promise.all(threads.flatMap(({ followers }) => followers.map((follower) => follower.done)));
});

test("one heartbeat serves all runs of a process", async () => {
  const connectionString = await database();
  const pool = new CountingPool({ connectionString });
  const runner = process({ pool, heartbeatInterval: 30 });
  const agents = Array.from({ length: 20 }, () => new PlayedAgent());
  const posters = agents.map((agent, i) => receive(runner.run(request(`t${i}`, "r", agent))));
  await Promise.all(agents.map((agent) => agent.called));
  const before = pool.calls("agui.keep_alive");
  const begin = Date.now();
  while (pool.calls("agui.keep_alive") < before + 5) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(pool.calls("agui.keep_alive") - before).toBeLessThanOrEqual((Date.now() - begin) / 30 + 2);
  await Promise.all(agents.map((agent) => agent.end()));
  await Promise.all(posters.map((poster) => poster.done));
  const after = pool.calls("agui.keep_alive"); // the timer has ended
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(pool.calls("agui.keep_alive")).toBe(after);
});

test("a thread that is larger than a frame is sent whole, with the CUSTOM events of its last run", async () => {
  const connectionString = await database();
  const messages = Array.from({ length: 11 }, (_, i) => ({ id: `m${i}`, role: "assistant", content: String(i % 10).repeat(1_000_000) }));
  const custom = { type: "CUSTOM", name: "note", value: 1 };
  const log = [
    started("t", "r"), { type: "MESSAGES_SNAPSHOT", messages }, { type: "STATE_SNAPSHOT", snapshot: { n: 1 } }, custom,
    { ...finished("t", "r"), result: { answer: 42 } },
  ];
  await sql(connectionString, `select agui.append('t', 'r', $1)`, [JSON.stringify(log)]);
  const received = receive(process({ connectionString }).connect({ threadId: "t" }));
  await received.done;
  expect(received.error).toBeUndefined();
  const inputs = received.inputs.flatMap((input) => (input as { messages: object[] }).messages);
  const [list] = received.events.flatMap((event) => (event.type === "MESSAGES_SNAPSHOT" ? [event.messages as object[]] : []));
  expect(list!.length).toBeLessThan(messages.length);
  expect([...list!, ...inputs]).toEqual(messages);
  expect(received.events.slice(-2)).toEqual([custom, log.at(-1)]);
  const without = receive(process({ connectionString, customEvents: "none" }).connect({ threadId: "t" }));
  await without.done;
  expect(types(without.events)).not.toContain("CUSTOM");
});
