// LangGraph with its PostgreSQL checkpointer, unchanged. An agent graph of the usual shape (a model node and a tools node in turns) goes
// through a recorded conversation: its nodes answer what was recorded, and LangGraph stores its checkpoints as it always does.

import { isDeepStrictEqual } from "node:util";
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { Annotation, DeltaChannel, END, MessagesAnnotation, START, StateGraph, messagesDeltaReducer } from "@langchain/langgraph";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import pg from "pg";
import { Replay, countEvents } from "./client.mjs";
import { seconds, secondsEach } from "./measure.mjs";

// Nothing of a benchmark goes to LangSmith, whatever the environment says.
for (const name of ["LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2"]) delete process.env[name];

const schema = "bench_langgraph";
// The tables that hold conversations; checkpoint_migrations does not.
const tables = ["checkpoints", "checkpoint_blobs", "checkpoint_writes"].map((table) => `${schema}.${table}`);

/** The pools by the addresses of their databases. */
const pools = new Map();

function pool(url) {
  if (!pools.has(url)) {
    // Connections stay open, so that no measurement pays for one.
    const opened = new pg.Pool({ connectionString: url, idleTimeoutMillis: 0 });
    // A server may close idle connections, for instance to drop the database. The pool replaces them.
    opened.on("error", () => {});
    pools.set(url, opened);
  }
  return pools.get(url);
}

export async function end() {
  await Promise.all([...pools.values()].map((opened) => opened.end()));
}

/** What each database holds, by its address: {threadId, checkpointer, graph}. */
const stored = new Map();

const config = (threadId) => ({ configurable: { thread_id: threadId } });

/**
 * Stores a conversation, run by run, in tables of its own, and weighs them after a vacuum. At each step the list of messages so far is stored,
 * as LangGraph does unless told otherwise; with deltas only the new ones, in a DeltaChannel.
 */
export async function load(url, runs, deltas) {
  const { threadId } = runs[0];
  const recorded = await record(runs);
  const database = pool(url);
  stored.delete(url);
  await database.query(`drop schema if exists ${schema} cascade`);
  const checkpointer = new PostgresSaver(database, undefined, { schema });
  await checkpointer.setup();
  const script = [];
  const graph = agent(checkpointer, deltas, script);
  const took = await seconds(async () => {
    for (const [input, ...answers] of recorded) {
      script.push(...answers);
      await graph.invoke(input, { ...config(threadId), recursionLimit: answers.length + 10 });
    }
  });
  await requireTheSame(graph, threadId, recorded.flat());
  stored.set(url, { threadId, checkpointer, graph });
  await database.query(`vacuum (analyze) ${tables.join(", ")}`);
  const { rows } = await database.query(
    `select sum(pg_total_relation_size(name::regclass))::float8 as bytes, (select count(*) from ${tables[0]})::int as checkpoints
     from unnest($1::text[]) as name`, [tables]);
  return { seconds: took, events: countEvents(runs), messages: recorded.flat().flatMap(({ messages }) => messages).length, ...rows[0] };
}

/** Reads the latest checkpoint of a thread, so many times, as LangGraph does when a run goes on from there. */
export async function getTuple(url, runs, times) {
  const { threadId, checkpointer } = find(url, runs);
  const read = () => checkpointer.getTuple(config(threadId));
  const { checkpoint } = await read(); // not measured: it opens a connection and warms the server
  const messages = checkpoint.channel_values.messages?.length ?? 0; // none: they are in a DeltaChannel
  return { seconds: await secondsEach(times, read), messages };
}

/** Reads the state of a thread, so many times. With deltas this is what gives the messages back: LangGraph replays them. */
export async function getState(url, runs, times) {
  const { threadId, graph } = find(url, runs);
  const read = () => graph.getState(config(threadId));
  const { values } = await read();
  return { seconds: await secondsEach(times, read), messages: values.messages.length };
}

function find(url, [{ threadId }]) {
  const found = stored.get(url);
  if (found?.threadId !== threadId) throw new Error(`LangGraph has not stored thread ${threadId}: send {"do":"langgraph.load",…} first`);
  return found;
}

/** A model and its tools in turns, as in LangGraph's own agents. What they answer is taken from the script. */
function agent(checkpointer, deltas, script) {
  const state = Annotation.Root({
    messages: deltas ? () => new DeltaChannel(messagesDeltaReducer) : MessagesAnnotation.spec.messages,
    state: Annotation(),
  });
  const next = () => script.shift() ?? {};
  return new StateGraph(state)
    .addNode("model", next)
    .addNode("tools", next)
    .addEdge(START, "model")
    .addConditionalEdges("model", () => (script.length > 0 ? "tools" : END), ["tools", END])
    .addEdge("tools", "model")
    .compile({ checkpointer });
}

/**
 * What goes into the graph's channels, {messages, state}, for each run: its input, then the answers of model and tools in turns. Messages and
 * state are those that the client folds of the events.
 */
async function record(runs) {
  const client = new Replay({ threadId: runs[0].threadId });
  const recorded = [];
  let [folded, state] = [0, {}];
  for (const [number, run] of runs.entries()) {
    if (run.parentRunId && run.parentRunId !== runs[number - 1]?.runId) {
      throw new Error(`run ${run.runId} branches off: langgraph.load takes threads without branches`);
    }
    await client.fold(structuredClone(run.events));
    const updates = turns(inLangChain(client.messages.slice(folded)));
    folded = client.messages.length;
    if (!isDeepStrictEqual(client.state, state)) {
      // Only where it has changed, and once in a run: from its tools, if it has any.
      state = structuredClone(client.state);
      (updates.findLast(({ messages }) => messages.some(ToolMessage.isInstance)) ?? updates.at(-1)).state = state;
    }
    recorded.push(updates);
  }
  return recorded;
}

/** A run's messages as updates: what it begins with, then those of the model and of the tools in turns. */
function turns(messages) {
  const answer = messages.findIndex(AIMessage.isInstance);
  const updates = [{ messages: answer < 0 ? messages : messages.slice(0, answer) }];
  let ofTools = true;
  for (const message of answer < 0 ? [] : messages.slice(answer)) {
    if (ToolMessage.isInstance(message) !== ofTools) {
      updates.push({ messages: [] });
      ofTools = !ofTools;
    }
    updates.at(-1).messages.push(message);
  }
  return updates;
}

/** AG-UI's messages as LangChain has them. */
function inLangChain(messages) {
  const converted = [];
  let reasoning = []; // it goes into the answer that it led to
  const assistant = (id, content, calls = []) => {
    const tool_calls = calls.map(({ id, function: { name, arguments: text } }) => ({ type: "tool_call", id, name, args: JSON.parse(text) }));
    const blocks = [...reasoning, ...(content ? [{ type: "text", text: content }] : [])];
    converted.push(new AIMessage({ id, content: reasoning.length > 0 ? blocks : content, tool_calls }));
    reasoning = [];
  };
  for (const { role, id, content, toolCalls, toolCallId } of messages) {
    switch (role) {
      case "user":
        converted.push(new HumanMessage({ id, content }));
        break;
      case "system":
      case "developer":
        converted.push(new SystemMessage({ id, content }));
        break;
      case "reasoning":
        reasoning.push({ type: "reasoning", reasoning: content });
        break;
      case "assistant":
        assistant(id, content ?? "", toolCalls);
        break;
      case "tool":
        converted.push(new ToolMessage({ id, content, tool_call_id: toolCallId }));
        break;
      case "activity":
        break; // LangGraph has nothing like it
      default:
        throw new Error(`message ${id} has the role ${role}: langgraph.load does not know it`);
    }
  }
  if (reasoning.length > 0) assistant(messages.at(-1).id, "");
  return converted;
}

/** What was measured must have been the conversation: LangGraph gives back what went in. */
async function requireTheSame(graph, threadId, updates) {
  const { values } = await graph.getState(config(threadId));
  const plain = (messages) => JSON.parse(JSON.stringify(messages.map((message) => message.toDict())));
  if (!isDeepStrictEqual(plain(values.messages), plain(updates.flatMap(({ messages }) => messages)))) {
    throw new Error(`LangGraph gives back other messages of thread ${threadId} than it was given`);
  }
  if (!isDeepStrictEqual(values.state, updates.findLast(({ state }) => state)?.state)) {
    throw new Error(`LangGraph gives back another state of thread ${threadId} than it was given`);
  }
}
