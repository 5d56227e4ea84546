#!/usr/bin/env bash
# @ag-ui/langgraph 0.0.43 (npm), with @langchain/langgraph 1.7.3
#
# Behaviour: RUN_STARTED has the runId of the input; RUN_FINISHED has another one, which LangGraph's server gave to its run.
#
# Why it matters: one would guess that both name the same run. A store that files events by the runId that they carry has a run without
# an end and an end without a run; one that checks it refuses the end of each run. The run of RUN_FINISHED has to be that of the stream.
#
# Output:
#   RUN_STARTED has the runId of the input: true
#   RUN_FINISHED has the runId of the input: false
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
  .addEdge(START, "first").addEdge("first", END).compile();

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
const [started] = events.filter(({ type }) => type === "RUN_STARTED");
const [finished] = events.filter(({ type }) => type === "RUN_FINISHED");
console.log(`RUN_STARTED has the runId of the input: ${started.runId === input.runId}`);
console.log(`RUN_FINISHED has the runId of the input: ${finished.runId === input.runId}`);
assert.equal(started.runId, input.runId);
assert.equal(typeof finished.runId, "string");
assert.notEqual(finished.runId, input.runId);
assert.equal(finished.threadId, input.threadId);
process.exit();
END
LANGSMITH_TRACING=false node "$dir/run.mjs"
