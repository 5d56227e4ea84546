// LangGraph in TypeScript with a scripted model, behind its AG-UI adapter. It asks by an interrupt, which its adapter sends as
// CUSTOM on_interrupt.

import { LangGraphAgent } from "@ag-ui/langgraph";
import { AIMessageChunk } from "@langchain/core/messages";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { tool } from "@langchain/core/tools";
import { Annotation, END, interrupt, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { createEmbedServer } from "@langchain/langgraph-api/experimental/embed";
import { Client } from "@langchain/langgraph-sdk";
import { HTTPException } from "hono/http-exception";
import { reply, serve } from "./script.mjs";

const roles = { human: "user", ai: "assistant" };

class Scripted extends BaseChatModel {
  _llmType() { return "scripted"; }
  _generate() { return Promise.reject(new Error("not scripted")); }

  async *_streamResponseChunks(messages, options, manager) {
    const history = messages.map((message) => ({ role: roles[message.getType()] ?? message.getType(), text: message.text }));
    let index = 0;
    for await (const part of reply(history)) {
      const isText = typeof part === "string";
      const pieces = isText ? [{}] : [{ ...part, args: "" }, { args: part.args.slice(0, 4) }, { args: part.args.slice(4) }];
      for (const piece of pieces) {
        const message = new AIMessageChunk(isText ? part : { content: "", tool_call_chunks: [{ ...piece, index }] });
        const chunk = new ChatGenerationChunk({ message, text: isText ? part : "" });
        yield chunk;
        await manager?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk });
      }
      if (!isText) index++;
    }
  }
}

const schema = { type: "object", properties: { at: { type: "string" } }, required: ["at"] };

const tools = [
  tool(({ at }) => `seen ${at}`, { name: "look", description: "Looks", schema }),
  tool(({ at }) => `the answer is ${JSON.stringify(interrupt({ message: `Erase ${at}?` }))}`, { name: "erase", description: "Erases, if the user agrees", schema }),
  tool(({ at }) => { throw new Error(`no tool for ${at}`); }, { name: "shatter", description: "Fails", schema }),
];

const State = Annotation.Root({ ...MessagesAnnotation.spec, turns: Annotation(), tools: Annotation() });

async function answer({ messages, turns }) {
  if (messages.at(-1).text.split(" ").includes("node")) throw new Error("the node is out of order");
  return { messages: [await new Scripted({}).invoke(messages)], turns: (turns ?? 0) + 1 };
}

function after({ messages }) {
  const calls = messages.at(-1).tool_calls ?? [];
  return calls.length > 0 && calls.every(({ name }) => tools.some((tool) => tool.name === name)) ? "act" : END;
}

const graph = new StateGraph(State)
  .addNode("answer", answer).addNode("act", new ToolNode(tools, { handleToolErrors: false }))
  .addEdge(START, "answer").addConditionalEdges("answer", after, ["act", END]).addEdge("act", "answer").compile();

// LangGraph's server within this process. It has no assistants: those of a deployment describe the graph.
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
const client = new Client({ apiUrl: "http://embedded", callerOptions: { fetch: (...request) => api.fetch(new Request(...request)), maxRetries: 0 } });
const properties = { messages: {}, tools: {}, turns: {} };
Object.assign(client.assistants, {
  search: async () => [{ assistant_id: "scripted", graph_id: "scripted" }],
  getGraph: async () => graph.getGraph().toJSON(),
  getSchemas: async () => ({ input_schema: { properties }, output_schema: { properties } }),
});

serve(() => new LangGraphAgent({ client, deploymentUrl: "http://embedded", graphId: "scripted" }));
