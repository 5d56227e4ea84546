// TanStack AI with a scripted model, behind its own server. It asks by an interrupt in RUN_FINISHED.

import { Readable } from "node:stream";
import { chat, chatParamsFromRequestBody, mergeAgentTools, toolDefinition, toServerSentEventsResponse } from "@tanstack/ai";
import { listen, reply } from "../script.mjs";

function text(content) {
  return Array.isArray(content) ? content.map((part) => part.content ?? "").join("") : content ?? "";
}

let last = 0;

const adapter = {
  kind: "text", name: "scripted", model: "scripted", "~types": {},
  structuredOutput: () => Promise.reject(new Error("not scripted")),
  async *chatStream({ messages, threadId, runId }) {
    const event = (type, members) => ({ type, timestamp: Date.now(), model: "scripted", threadId, runId, ...members });
    const messageId = `message-${++last}`;
    let content, calls = 0;
    yield event("RUN_STARTED");
    for await (const part of reply(messages.map(({ role, content }) => ({ role, text: text(content) })))) {
      if (typeof part === "string") {
        if (content === undefined) yield event("TEXT_MESSAGE_START", { messageId, role: "assistant" });
        content = (content ?? "") + part;
        yield event("TEXT_MESSAGE_CONTENT", { messageId, delta: part, content });
        continue;
      }
      const call = { toolCallId: part.id, toolCallName: part.name, toolName: part.name };
      yield event("TOOL_CALL_START", { ...call, parentMessageId: messageId, index: calls++ });
      for (const delta of [part.args.slice(0, 4), part.args.slice(4)]) yield event("TOOL_CALL_ARGS", { toolCallId: part.id, delta });
      yield event("TOOL_CALL_END", { ...call, input: JSON.parse(part.args) });
    }
    if (content !== undefined) yield event("TEXT_MESSAGE_END", { messageId });
    const usage = { promptTokens: 1, completionTokens: 1, totalTokens: 2 };
    yield event("RUN_FINISHED", { finishReason: calls > 0 ? "tool_calls" : "stop", usage });
  },
};

const inputSchema = { type: "object", properties: { at: { type: "string" } }, required: ["at"] };

const tools = [
  toolDefinition({ name: "look", description: "Looks", inputSchema }).server(({ at }) => `seen ${at}`),
  toolDefinition({ name: "erase", description: "Erases, if the user agrees", inputSchema, needsApproval: true }).server(({ at }) => `erased ${at}`),
  toolDefinition({ name: "shatter", description: "Fails", inputSchema }).server(({ at }) => { throw new Error(`no tool for ${at}`); }),
];

listen(async (input, response) => {
  const { tools: ofThePage, messages, threadId, runId, parentRunId, state, resume } = await chatParamsFromRequestBody(input);
  const abortController = new AbortController();
  const events = chat({
    adapter, tools: mergeAgentTools(tools, ofThePage), messages, threadId, runId, parentRunId, state, resume, abortController, debug: false,
  });
  const answer = toServerSentEventsResponse(events, { abortController });
  response.writeHead(answer.status, Object.fromEntries(answer.headers)).flushHeaders();
  Readable.fromWeb(answer.body).on("error", () => response.end()).pipe(response);
  response.on("close", () => abortController.abort());
});
