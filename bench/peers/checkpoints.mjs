// The checkpointers of LangGraph that are compared: pgagui's and LangGraph's own for PostgreSQL. A
// graph writes the same conversations through each, in the same database.

import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Annotation, DeltaChannel, END, MessagesAnnotation, START, StateGraph, messagesDeltaReducer } from "@langchain/langgraph";
import { uuid6 } from "@langchain/langgraph-checkpoint";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { PgaguiSaver } from "@pgagui/langgraph-checkpoint";
import pg from "pg";
import { seconds, secondsEach } from "./measure.mjs";

const schema = "bench_checkpoints";
const savers = {
  pgagui: {
    make: (pool) => new PgaguiSaver({ pool }),
    tables: ["thread", "thread_activity", "checkpoint", "checkpoint_write", "channel", "channel_part", "channel_value"].map((name) => `agui.${name}`),
  },
  langgraph: {
    make: (pool) => new PostgresSaver(pool, undefined, { schema }),
    tables: ["checkpoints", "checkpoint_blobs", "checkpoint_writes"].map((name) => `${schema}.${name}`),
  },
};

/** The pools, by the address of the database. */
const pools = new Map();

function poolAt(url) {
  if (!pools.has(url)) {
    const pool = new pg.Pool({ connectionString: url, idleTimeoutMillis: 0 });
    pool.on("error", () => {}); // the server may close idle connections, for example to drop the database
    pools.set(url, pool);
  }
  return pools.get(url);
}

export async function end() {
  await Promise.all([...pools.values()].map((pool) => pool.end()));
}

/** The ids of threads are usually UUIDs. */
const config = (thread) => ({ configurable: { thread_id: `8f14e45f-ceea-467f-a6b1-${String(thread).padStart(12, "0")}` } });

/**
 * Writes a number of threads with a saver into an empty database, and measures the size of its tables
 * after a vacuum. Each thread has a conversation with so many turns: a question, a call of a tool, its
 * result, an answer. A graph writes it, or (puts) each message, of so many words, is a checkpoint with
 * all messages so far, and nothing else.
 */
export async function put({ url, saver, deltas, puts, words, threads, turns }) {
  const pool = poolAt(url);
  const { make, tables } = savers[saver];
  const checkpointer = make(pool);
  if (saver === "langgraph") {
    await pool.query(`drop schema if exists ${schema} cascade`);
    await checkpointer.setup();
  }
  const size = async () => {
    await pool.query(`vacuum (analyze) ${tables.join(", ")}`);
    const { rows } = await pool.query("select sum(pg_total_relation_size(name::regclass))::float8 as bytes from unnest($1::text[]) as name", [tables]);
    return rows[0].bytes;
  };
  const before = await size();
  const took = await seconds(async () => {
    for (let thread = 0; thread < threads; thread++) {
      if (puts) {
        await putGrowing(checkpointer, thread, 5 * turns, words);
        continue;
      }
      const graph = agent(checkpointer, deltas, thread);
      for (let turn = 0; turn < turns; turn++) {
        await graph.invoke({ messages: [new HumanMessage({ id: `question-${turn}`, content: text(thread, turn, 40) })] }, config(thread));
      }
      const { values } = await graph.getState(config(thread));
      if (values.messages.length !== 4 * turns) throw new Error(`thread ${thread} has ${values.messages.length} messages, not ${4 * turns}`);
    }
  });
  const { rows } = await pool.query(`select count(*)::int as checkpoints from ${saver === "pgagui" ? "agui.checkpoint" : `${schema}.checkpoints`}`);
  return { seconds: took, bytes: (await size()) - before, checkpoints: rows[0].checkpoints };
}

/** Puts checkpoints whose list of messages grows by one. */
async function putGrowing(checkpointer, thread, count, words) {
  const messages = [];
  let next = config(thread);
  for (let n = 1; n <= count; n++) {
    const Message = n % 2 ? HumanMessage : AIMessage;
    messages.push(new Message({ id: `message-${n}`, content: text(thread, n, words) }));
    const checkpoint = {
      v: 4, id: uuid6(n), ts: new Date().toISOString(), channel_values: { messages: [...messages] }, channel_versions: { messages: n },
      versions_seen: { __input__: {}, model: { messages: n - 1 } },
    };
    next = await checkpointer.put(next, checkpoint, { source: "loop", step: n, parents: {} }, { messages: n });
  }
}

/** Reads the latest checkpoints of the threads, as LangGraph does when a run continues. */
export async function getTuple({ url, saver, threads, times }) {
  const checkpointer = savers[saver].make(poolAt(url));
  let next = 0;
  const read = () => checkpointer.getTuple(config(next++ % threads));
  await read(); // not measured: it opens a connection and warms the server
  return { seconds: await secondsEach(times, read) };
}

/** A model that calls a tool, gets its result, and answers. */
function agent(checkpointer, deltas, thread) {
  const state = Annotation.Root({ messages: deltas ? () => new DeltaChannel(messagesDeltaReducer) : MessagesAnnotation.spec.messages });
  return new StateGraph(state)
    .addNode("model", ({ messages }) => {
      const n = messages.length;
      return {
        messages: [
          ToolMessage.isInstance(messages.at(-1))
            ? new AIMessage({ id: `answer-${n}`, content: text(thread, n, 120) })
            : new AIMessage({ id: `call-${n}`, content: "", tool_calls: [{ id: `tool-${n}`, name: "search", args: { query: text(thread, n, 10) } }] }),
        ],
      };
    })
    .addNode("tools", ({ messages }) => {
      const n = messages.length;
      return { messages: [new ToolMessage({ id: `result-${n}`, tool_call_id: `tool-${n - 1}`, content: text(thread, n, 80) })] };
    })
    .addEdge(START, "model")
    .addConditionalEdges("model", ({ messages }) => (messages.at(-1).tool_calls?.length > 0 ? "tools" : END), ["tools", END])
    .addEdge("tools", "model")
    .compile({ checkpointer });
}

/** Text of so many words, the same for the same place. */
function text(thread, place, words) {
  let seed = thread * 7919 + place * 104729 + 1;
  return Array.from({ length: words }, () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return vocabulary[seed % vocabulary.length];
  }).join(" ");
}

const vocabulary = Array.from({ length: 2000 }, (_, n) => {
  const syllables = ["ka", "to", "mi", "re", "su", "lo", "ven", "dar", "pil", "ost", "qua", "ber"];
  return syllables[n % 12] + syllables[Math.floor(n / 12) % 12] + (n > 1000 ? syllables[(n * 7) % 12] : "");
});
