// Answers to what a run asks, as useInterrupt of CopilotKit sends them: with the id of the run that asks.

import { readFileSync } from "node:fs";
import type { AguiEvent } from "@pgagui/postgres";
import { database } from "@pgagui/testing";
import { expect, test } from "vitest";
import type { PgaguiAgentRunner } from "../src/index.ts";
import { finished, PlayedAgent, process, receive, request, sql, started, talk, types, type Received } from "./harness.ts";

const resume = (payload: string, interruptId = "i") => ({ resume: [{ interruptId, status: "resolved", payload }] });
const command = (answer: string, interruptEvent: string) => ({ forwardedProps: { command: { resume: answer, interruptEvent } } });
const asking = (runId: string, id = "i"): AguiEvent[] => [
  started("t", runId), { ...finished("t", runId), outcome: { type: "interrupt", interrupts: [{ id, reason: "approval" }] } },
];
const question = (runId: string, value: string): AguiEvent[] => [started("t", runId), { type: "CUSTOM", name: "on_interrupt", value }, finished("t", runId)];

/** Runs an agent that sends these events, and returns the id of the run that it got. */
async function run(runner: PgaguiAgentRunner, runId: string, events: AguiEvent[], more: object = {}): Promise<Received & { runId: string }> {
  const agent = new PlayedAgent();
  const received = receive(runner.run(request("t", runId, agent, more)));
  await agent.send(...events);
  await agent.end();
  await received.done;
  expect(received.error).toBeUndefined();
  return { ...received, runId: agent.input.runId };
}

/** Runs an agent that must not be called, and returns what the client receives in its place. */
async function refused(runner: PgaguiAgentRunner, runId: string, more: object): Promise<Received> {
  const received = receive(runner.run(request("t", runId, new PlayedAgent(), more)));
  await received.done;
  return received;
}

const runs = (databaseURL: string) =>
  sql<{ run_id: string; parent_run_id: string | null; status: string }>(databaseURL, "select run_id, parent_run_id, status from agui.runs('t')");

test("an answer is a run of its own, which the agent and the client see, and counts once", async () => {
  const connectionString = await database();
  const [runner, other] = [process({ connectionString }), process({ connectionString, onConcurrentRun: "supersede" })];
  await run(runner, "r1", asking("r1"));

  const agent = new PlayedAgent();
  const answered = receive(runner.run(request("t", "r1", agent, resume("yes"))));
  await agent.called;
  const id = agent.input.runId;
  expect(id).toMatch(/^r1-answer-/);
  // The same request follows it, in this process and in another one. Another answer is refused.
  const again = [runner, other].map((one) => receive(one.run(request("t", "r1", new PlayedAgent(), resume("yes")))));
  for (const one of [runner, other]) {
    expect((await refused(one, "r1", resume("no"))).events).toEqual([{ type: "RUN_ERROR", code: "ANSWER_REFUSED", message: expect.stringContaining(id) as string }]);
  }
  await agent.send(...talk("t", id, "Done."));
  await agent.end();
  await Promise.all([answered, ...again].map(({ done }) => done));
  expect(agent.isAborted).toBe(false);
  expect(answered.events).toEqual(talk("t", id, "Done."));
  expect(answered.inputs).toEqual([expect.objectContaining({ runId: id })]);
  for (const { events, error } of again) {
    expect(error).toBeUndefined();
    expect(JSON.stringify(events)).toContain("Done.");
    expect(events.at(-1)).toMatchObject({ type: "RUN_FINISHED" });
  }

  const repeated = await refused(other, "r1", resume("yes"));
  expect(JSON.stringify(repeated.events)).toContain("Done.");
  const [{ started_at: at }] = await sql<{ started_at: Date }>(connectionString, "select started_at from agui.runs('t') where run_id = $1", [id]) as [{ started_at: Date }];
  for (const [runId, payload] of [["r1", "no"], ["late", "no"], ["late", "yes"]] as const) {
    const { events, error } = await refused(runner, runId, resume(payload));
    expect(error).toBeUndefined();
    expect(events).toEqual([{ type: "RUN_ERROR", code: "ANSWER_REFUSED", message: expect.stringContaining(`run "r1"`) as string }]);
    expect(events[0]!.message).toContain(`"${id}"`);
    expect(events[0]!.message).toContain(at.toISOString().slice(0, 19));
  }
  expect(await runs(connectionString)).toEqual([
    { run_id: "r1", parent_run_id: null, status: "interrupted" }, { run_id: id, parent_run_id: "r1", status: "finished" },
  ]);
  expect(await sql(connectionString, "select from agui.claims('t')")).toEqual([]);
  // A client that names the parent means it.
  await run(runner, "branch", talk("t", "branch", "Undone."), { ...resume("no"), parentRunId: "r1" });
});

test("of two answers at once one counts", async () => {
  const connectionString = await database();
  const devices = [process({ connectionString }), process({ connectionString })];
  await run(devices[0]!, "r1", asking("r1"));
  const agents = [new PlayedAgent(), new PlayedAgent()];
  const answers = devices.map((device, i) => receive(device.run(request("t", "r1", agents[i]!, resume(["yes", "no"][i]!)))));
  const agent = await Promise.race(agents.map((one) => one.called.then(() => one)));
  await agent.send(...talk("t", agent.input.runId, "Done."));
  await agent.end();
  await Promise.all(answers.map(({ done }) => done));
  expect(answers.map(({ events, error }) => error === undefined && types(events).includes("TEXT_MESSAGE_CONTENT")).sort()).toEqual([false, true]);
  expect(await runs(connectionString)).toHaveLength(2);
});

test("an answer that failed is repeated with another id, which pgagui serve gives it, too", async () => {
  const cases = JSON.parse(readFileSync(new URL("../../../testdata/answers.json", import.meta.url), "utf8")) as { members: string; runIds: string[] }[];
  expect(cases.length).toBeGreaterThan(1);
  for (const { members, runIds } of cases) {
    const runner = process({ connectionString: await database() });
    await run(runner, "r1", asking("r1"));
    for (const runId of runIds) {
      const failed = await run(runner, "r1", [started("t", runId), { type: "RUN_ERROR", message: "no" }], JSON.parse(`{${members}}`) as object);
      expect(failed.runId).toBe(runId);
    }
  }
});

test.each<[string, (runId: string, id: string) => AguiEvent[], (answer: string, id: string) => object]>([
  ["an outcome", asking, resume],
  ["a CUSTOM event", question, command],
])("a page that is asked more by the run with its answer, by %s, names the first run and answers the later question; a page that has not seen that one answers nothing", async (_, ask, answer) => {
  const connectionString = await database();
  const runner = process({ connectionString });
  await run(runner, "r1", ask("r1", "i1"));
  const second = await run(runner, "r1", ask("r1", "i2"), answer("yes", "i1"));
  const late = await refused(runner, "r1", answer("no", "i1"));
  expect(late.events).toEqual([{ type: "RUN_ERROR", code: "ANSWER_REFUSED", message: expect.stringContaining(second.runId) as string }]);
  const third = await run(runner, "r1", talk("t", "r1", "Done."), answer("yes", "i2"));
  expect((await runs(connectionString)).map(({ run_id, parent_run_id }) => [run_id, parent_run_id])).toEqual([
    ["r1", null], [second.runId, "r1"], [third.runId, second.runId],
  ]);
});
