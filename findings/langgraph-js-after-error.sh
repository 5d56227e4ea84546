#!/usr/bin/env bash
# @ag-ui/langgraph 0.0.43 (npm), with @langchain/langgraph 1.7.3
#
# Behaviour: when a node throws, the adapter sends RUN_ERROR and goes on: STEP_FINISHED, STATE_SNAPSHOT, MESSAGES_SNAPSHOT, and
# RUN_FINISHED as for a success.
#
# Why it matters: one would guess that RUN_ERROR is the last event, as the protocol says. The stock client fails at what follows; a store
# that takes the last event for the outcome has a success, and one that stops at RUN_ERROR lacks the snapshots, which have the messages
# of the nodes before.
#
# Output:
#   behind RUN_ERROR: STEP_FINISHED,STATE_SNAPSHOT,MESSAGES_SNAPSHOT,RUN_FINISHED
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --silent --no-audit --no-fund --prefix "$dir" @ag-ui/langgraph@0.0.43 @ag-ui/client@1.0.0 @ag-ui/core@1.0.0 rxjs@7.8.1 \
  @langchain/core@1.4.0 @langchain/langgraph@1.7.3 @langchain/langgraph-api@1.5.1 @langchain/langgraph-sdk@1.15.0 hono@4.13.19
cat > "$dir/run.mjs" <<'END'
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { LangGraphAgent } from "@ag-ui/langgraph";
import { AIMessage } from "@langchain/core/messages";
import { END, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { createEmbedServer } from "@langchain/langgraph-api/experimental/embed";
import { Client } from "@langchain/langgraph-sdk";
import { HTTPException } from "hono/http-exception";

const graph = new StateGraph(MessagesAnnotation)
  .addNode("first", async () => ({ messages: [new AIMessage("One.")] }))
  .addNode("second", async () => { throw new Error("The node is out of order."); })
  .addEdge(START, "first").addEdge("first", "second").addEdge("second", END).compile();

// LangGraph's server within this process: the client calls it without a network. It has no assistants, so we describe the graph.
const threads = new Map();
const api = createEmbedServer({
  graph: { scripted: graph },
  checkpointer: new MemorySaver(),
  threads: {
    get: async (id) => threads.get(id) ?? Promise.reject(new HTTPException(404)),
    set: async (id, { metadata }) => { threads.set(id, { thread_id: id, metadata: metadata ?? {} }); return threads.get(id); },
    delete: async (id) => { threads.delete(id); },
    search: async function* () { yield* []; },
  },
});
const callerOptions = { fetch: (...request) => api.fetch(new Request(...request)), maxRetries: 0 };
const client = new Client({ apiUrl: "http://embedded", callerOptions });
Object.assign(client.assistants, {
  search: async () => [{ assistant_id: "scripted", graph_id: "scripted" }],
  getGraph: async () => graph.getGraph().toJSON(),
  getSchemas: async () => ({ input_schema: { properties: { messages: {} } }, output_schema: { properties: { messages: {} } } }),
});

const agent = new LangGraphAgent({ client, deploymentUrl: "http://embedded", graphId: "scripted" });
const messages = [{ id: "u", role: "user", content: "Count." }];
const input = { threadId: randomUUID(), runId: randomUUID(), state: {}, messages, tools: [], context: [], forwardedProps: {} };
const events = [];
await agent.run(input).forEach((event) => events.push(event));
const types = events.map(({ type }) => type);
const error = types.indexOf("RUN_ERROR");
assert.ok(error > 0);
const behind = types.slice(error + 1).join();
console.log(`behind RUN_ERROR: ${behind}`);
assert.equal(events[error].message, "The node is out of order.");
assert.equal(behind, "STEP_FINISHED,STATE_SNAPSHOT,MESSAGES_SNAPSHOT,RUN_FINISHED");
assert.equal(events.at(-1).outcome, undefined);
process.exit();
END
LANGSMITH_TRACING=false node "$dir/run.mjs"
