import { randomUUID } from "node:crypto";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import * as newest from "@langchain/langgraph";
import * as langgraph14 from "@langchain/langgraph-1.4";
import { Annotation, Command, DeltaChannel, interrupt, MemorySaver, MessagesAnnotation, messagesDeltaReducer, StateGraph } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { PgaguiSaver } from "@pgagui/langgraph-checkpoint";
import { database, hasPooler, isMissing, pooler } from "@pgagui/testing";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";

function saverAt(url: string, scope?: string): PgaguiSaver {
  const saver = PgaguiSaver.fromConnString(url, scope === undefined ? {} : { scope });
  onTestFinished(() => saver.end());
  return saver;
}

async function poolAt(url: string): Promise<pg.Pool> {
  const pool = new pg.Pool({ connectionString: url });
  onTestFinished(() => pool.end());
  return pool;
}

const lists = { list: () => MessagesAnnotation.spec.messages, deltas: () => () => new DeltaChannel(messagesDeltaReducer) };

/** A graph whose two writers run in parallel; then it asks, and answers. */
function graphOn(checkpointer: BaseCheckpointSaver, kind: keyof typeof lists = "list") {
  const State = Annotation.Root({ messages: lists[kind]() as (typeof MessagesAnnotation)["spec"]["messages"], seen: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }) });
  return new StateGraph(State)
    .addNode("left", () => ({ seen: ["left"] }))
    .addNode("right", ({ messages }) => ({ seen: [`right saw ${messages.length}`] }))
    .addNode("ask", () => ({ messages: [new AIMessage({ id: randomUUID(), content: `You chose ${interrupt("Which one?")}.` })] }))
    .addEdge("__start__", "left")
    .addEdge("__start__", "right")
    .addEdge(["left", "right"], "ask")
    .compile({ checkpointer });
}

const question = (text: string) => ({ messages: [new HumanMessage({ id: randomUUID(), content: text })] });
const textsOf = (values: { messages: { content: unknown }[] }) => values.messages.map(({ content }) => content);

test.each(["list", "deltas"] as const)("a graph goes on in another process, with a channel of %s", async (kind) => {
  const url = await database();
  const config = { configurable: { thread_id: randomUUID() } };
  for (const [turn, choice] of ["tea", "coffee"].entries()) {
    // Each call has a saver of its own, as in another process.
    const stopped = await graphOn(saverAt(url), kind).invoke(question(`Question ${turn}`), config);
    expect(stopped).toHaveProperty("__interrupt__");
    await graphOn(saverAt(url), kind).invoke(new Command({ resume: choice }), config);
  }
  const graph = graphOn(saverAt(url), kind);
  const { values, next } = await graph.getState(config);
  expect(next).toEqual([]);
  expect(textsOf(values)).toEqual(["Question 0", "You chose tea.", "Question 1", "You chose coffee."]);
  expect(values.seen).toEqual(["left", "right saw 1", "left", "right saw 3"]);

  // The same as in memory, step by step.
  const inMemory = graphOn(new MemorySaver(), kind);
  for (const [turn, choice] of ["tea", "coffee"].entries()) {
    await inMemory.invoke(question(`Question ${turn}`), config);
    await inMemory.invoke(new Command({ resume: choice }), config);
  }
  const steps = async (of: typeof graph) => {
    const found = [];
    for await (const { values, next, metadata, tasks } of of.getStateHistory(config)) {
      found.push({ texts: textsOf(values), seen: values.seen, next, step: metadata?.step, source: metadata?.source, asks: tasks.map(({ interrupts }) => interrupts.map(({ value }) => value)) });
    }
    return found;
  };
  expect(await steps(graph)).toEqual(await steps(inMemory));
});

type Durability = "exit" | "async" | "sync";
const versions = { "1.4.12": langgraph14 as unknown as typeof newest, "1.7.3": newest };

/**
 * A graph whose nested graph asks, in a namespace of its own, beside a node that is done at once. Then it answers, and a second
 * nested graph asks in the same way.
 */
function nestedOn(checkpointer: BaseCheckpointSaver, { Annotation, StateGraph, interrupt }: typeof newest) {
  const State = Annotation.Root({ seen: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }) });
  const asks = (name: string) => new StateGraph(State)
    .addNode("before", () => ({ seen: [`${name} before`] }))
    .addNode("ask", () => ({ seen: [`${name}: ${interrupt(name)}`] }))
    .addNode("after", () => ({ seen: [`${name} after`] }))
    .addEdge("__start__", "before").addEdge("before", "ask").addEdge("ask", "after")
    .compile();
  return new StateGraph(State)
    .addNode("first", asks("first"))
    .addNode("beside", () => ({ seen: ["beside"] }))
    .addNode("second", asks("second"))
    .addEdge("__start__", "first").addEdge("__start__", "beside").addEdge(["first", "beside"], "second")
    .compile({ checkpointer });
}

describe.each(Object.entries(versions))("LangGraph %s", (_, langgraph) => {
  test.each<Durability>(["exit", "async", "sync"])("a nested graph that asks beside a node, and time travel, with durability %s", async (durability) => {
    const url = await database();
    const conversation = async (saverFor: () => BaseCheckpointSaver) => {
      const configurable = { thread_id: "thread" };
      const options = { configurable, durability };
      const graph = () => nestedOn(saverFor(), langgraph); // as in another process
      const found: unknown[] = [await graph().invoke({ seen: ["input"] }, options)];
      const stopped = await graph().getState({ configurable }, { subgraphs: true });
      found.push(stopped.next, stopped.tasks.map(({ name, interrupts, state }) => ({ name, interrupts: interrupts.map(({ value }) => value as unknown), values: (state as typeof stopped | undefined)?.values as unknown })));
      found.push(await graph().invoke(new langgraph.Command({ resume: "yes" }), options));
      found.push(await graph().invoke(new langgraph.Command({ resume: "no" }), options));
      const history = [];
      for await (const state of graph().getStateHistory({ configurable })) history.push(state);
      found.push(history.map(({ values, next, metadata }) => ({ values, next, source: metadata?.source, step: metadata?.step })));
      // Back to each state, on a branch of its own.
      for (const { config, next } of history) {
        const forked = await graph().updateState(config, { seen: ["edited"] }, next.length > 0 ? "beside" : "second");
        found.push((await graph().getState(forked)).values, (await graph().getState(forked)).next);
        found.push(await graph().invoke(null, { ...forked, durability }));
      }
      return JSON.parse(JSON.stringify(found, (key, value: unknown) => (key === "id" ? "id" : value))) as unknown[];
    };
    const memory = new langgraph.MemorySaver() as unknown as BaseCheckpointSaver;
    const expected = await conversation(() => memory);
    expect(await conversation(() => saverAt(url))).toEqual(expected);
    expect(expected[0]).toHaveProperty("__interrupt__");
    const seen = ["input", "first before", "first: yes", "first after"];
    expect((expected[4] as { seen: string[] }).seen).toEqual(expect.arrayContaining([...seen, "second: no", "second after"]));
    expect((await (await poolAt(url)).query("select problem from agui.verify('thread')")).rows).toEqual([]);
  });
});

test("a node asks twice", async () => {
  const url = await database();
  const config = { configurable: { thread_id: randomUUID() } };
  const graphWith = () => new StateGraph(Annotation.Root({ answers: Annotation<string[]> }))
    .addNode("ask", () => ({ answers: [interrupt("From?"), interrupt("To?"), interrupt("When?")] as string[] }))
    .addEdge("__start__", "ask")
    .compile({ checkpointer: saverAt(url) });
  await graphWith().invoke({ answers: [] }, config);
  for (const answer of ["Lisbon", "Porto"]) {
    expect(await graphWith().invoke(new Command({ resume: answer }), config)).toHaveProperty("__interrupt__");
  }
  expect(await graphWith().invoke(new Command({ resume: "in May" }), config)).toEqual({ answers: ["Lisbon", "Porto", "in May"] });
});

test("a branch of the conversation leads to its checkpoint", async () => {
  const url = await database();
  const saver = saverAt(url);
  const threadId = randomUUID();
  const pool = await poolAt(url);
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("model", ({ messages }) => ({ messages: [new AIMessage({ id: randomUUID(), content: `Answer to ${messages.at(-1)!.content}` })] }))
    .addEdge("__start__", "model")
    .compile({ checkpointer: saver });
  const run = async (runId: string, parentRunId: string | null, text: string) => {
    const from = parentRunId === null ? undefined : await saver.checkpointAt({ threadId, runId: parentRunId });
    // The graph may be faster than the log.
    const { messages } = await graph.invoke(question(text), { configurable: { thread_id: threadId, ...from?.configurable, run_id: runId } });
    await pool.query("select agui.append($1, $2, $3, parent_run_id => $4)", [threadId, runId, '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]', parentRunId ?? ""]);
    return messages.map(({ content }) => content);
  };
  expect(await saver.checkpointAt({ threadId, runId: "run-1" })).toBeUndefined();
  await run("run-1", null, "1");
  await run("run-2", "run-1", "2");
  await run("run-3", "run-2", "3");
  expect(await run("edit", "run-1", "2, edited")).toEqual(["1", "Answer to 1", "2, edited", "Answer to 2, edited"]);
  expect(await run("run-4", "run-3", "4")).toEqual(["1", "Answer to 1", "2", "Answer to 2", "3", "Answer to 3", "4", "Answer to 4"]);
  expect(await run("edit-2", "edit", "3, edited")).toHaveLength(6);
  expect((await pool.query("select problem from agui.verify($1)", [threadId])).rows).toEqual([]);
});

test("a graph through PgBouncer in transaction mode", async ({ skip }) => {
  if (isMissing("pgbouncer", hasPooler)) skip();
  const saver = saverAt(await pooler(await database()), "a tenant's scope");
  const graph = graphOn(saver);
  await Promise.all(Array.from({ length: 6 }, async (_, n) => {
    const config = { configurable: { thread_id: `thread ${n}` } };
    await graph.invoke(question("Question"), config);
    await graph.invoke(new Command({ resume: n }), config);
    expect(textsOf((await graph.getState(config)).values)).toEqual(["Question", `You chose ${n}.`]);
  }));
});

test("a tenant sees its checkpoints alone", async () => {
  const url = await database();
  const owner = await poolAt(url);
  const role = `pgagui_tenant_${randomUUID().replaceAll("-", "")}`;
  await owner.query(`create role ${role} login password 'secret' in role agui_writer`);
  onTestFinished(async () => {
    await owner.query(`drop owned by ${role}; drop role ${role}`);
  });
  await owner.query("select agui.map_pool($1)", [role]);
  await owner.query("call agui.enable_row_security()");
  const address = new URL(url);
  [address.username, address.password] = [role, "secret"];
  const [a, b] = [saverAt(address.href, "a"), saverAt(address.href, "b")];
  const config = { configurable: { thread_id: "thread" } };
  for (const saver of [a, b]) {
    await graphOn(saver).invoke(question(`Question of ${saver === a ? "a" : "b"}`), config);
  }
  expect(textsOf((await graphOn(a).getState(config)).values)).toEqual(["Question of a"]);
  await b.deleteThread("thread");
  expect(await b.getTuple(config)).toBeUndefined();
  expect(await a.getTuple(config)).toBeDefined();
  // Without a scope, or with that of another role, nothing is to be had.
  await expect(saverAt(address.href).put(config, (await a.get(config))!, { source: "update", step: 0, parents: {} }, {})).rejects.toThrow(/scope/);
  expect(await saverAt(address.href).getTuple(config)).toBeUndefined();
});
