// LangGraph with its PostgreSQL checkpointer, unchanged. An agent graph of the usual shape
// (alternately a model node and a tools node) replays a recorded conversation: its nodes return the
// recorded answers, and LangGraph stores its checkpoints as usual.

import { isDeepStrictEqual } from "node:util";
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { Annotation, DeltaChannel, END, MessagesAnnotation, START, StateGraph, messagesDeltaReducer } from "@langchain/langgraph";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import pg from "pg";
import { Replay, countEvents } from "./client.mjs";
import { seconds, secondsEach } from "./measure.mjs";

// A benchmark must never send data to LangSmith, so ignore its environment variables.
for (const name of ["LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2"]) delete process.env[name];

const schema = "bench_langgraph";
// The tables with conversations; checkpoint_migrations has none.
const tables = ["checkpoints", "checkpoint_blobs", "checkpoint_writes"].map((table) => `${schema}.${table}`);

/** The pools, by the address of the database. */
const pools = new Map();

function pool(url) {
  if (!pools.has(url)) {
    // Connections stay open, so that no measurement includes the time to open one.
    const opened = new pg.Pool({ connectionString: url, idleTimeoutMillis: 0 });
    // The server may close idle connections, for example to drop the database. The pool replaces
    // them.
    opened.on("error", () => {});
    pools.set(url, opened);
  }
  return pools.get(url);
}

export async function end() {
  await Promise.all([...pools.values()].map((opened) => opened.end()));
}

/** The contents of each database, by its address: {threadId, checkpointer, graph}. */
const stored = new Map();

const config = (threadId) => ({ configurable: { thread_id: threadId } });

/**
 * Stores a conversation, run by run, in its own tables, and measures their size after a vacuum. At
 * each step it stores the list of all messages so far, which is the default of LangGraph. With
 * deltas it stores only the new messages, in a DeltaChannel.
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

/**
 * Reads the latest checkpoint of a thread repeatedly, as LangGraph does when a run continues from
 * it.
 */
export async function getTuple(url, runs, times) {
  const { threadId, checkpointer } = find(url, runs);
  const read = () => checkpointer.getTuple(config(threadId));
  const { checkpoint } = await read(); // not measured: it opens a connection and warms the server
  const messages = checkpoint.channel_values.messages?.length ?? 0; // without messages they are in a DeltaChannel
  return { seconds: await secondsEach(times, read), messages };
}

/**
 * Reads the state of a thread repeatedly. With deltas, LangGraph replays them here to return the
 * messages.
 */
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

/**
 * Alternates between a model and its tools, as the agents of LangGraph do. Their answers come from
 * the script.
 */
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
 * Returns the values for the channels of the graph, {messages, state}, for each run: its input,
 * then alternately the answers of the model and the tools. The client folds messages and state from
 * the events.
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
      // The state is set only if it has changed, once per run: with the answer of the tools, if
      // there is one.
      state = structuredClone(client.state);
      (updates.findLast(({ messages }) => messages.some(ToolMessage.isInstance)) ?? updates.at(-1)).state = state;
    }
    recorded.push(updates);
  }
  return recorded;
}

/**
 * Returns the messages of a run as updates: its input, then alternately those of the model and the
 * tools.
 */
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

/** Converts messages of AG-UI to messages of LangChain. */
function inLangChain(messages) {
  const converted = [];
  let reasoning = []; // becomes part of the answer that follows it
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
        break; // LangGraph has no equivalent
      default:
        throw new Error(`message ${id} has the role ${role}: langgraph.load does not know it`);
    }
  }
  if (reasoning.length > 0) assistant(messages.at(-1).id, "");
  return converted;
}

/** Checks that LangGraph returns the messages that it stored, so that the measurement is valid. */
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
