// TanStack AI with a scripted model.

import { chat, chatParamsFromRequest, toolDefinition, toServerSentEventsResponse } from "@tanstack/ai";
import { pieces, textOf, tool } from "./script.mjs";

const look = toolDefinition({
  name: tool.name, description: "Looks", inputSchema: { type: "object", properties: { at: { type: "string" } } },
}).server(async () => tool.result);

let lastID = 0;

const adapter = {
  kind: "text", name: "scripted", model: "scripted", "~types": {},
  async *chatStream({ messages, threadId, runId }) {
    const about = { model: "scripted", threadId, runId };
    const event = (type, members) => ({ type, timestamp: Date.now(), ...about, ...members });
    const last = messages.at(-1);
    const messageId = `message ${++lastID}`;
    yield event("RUN_STARTED", {});
    if (last.role === "user") {
      const toolCallId = `call ${lastID}`;
      yield event("TOOL_CALL_START", { toolCallId, toolCallName: tool.name, toolName: tool.name, index: 0 });
      yield event("TOOL_CALL_ARGS", { toolCallId, delta: tool.args, args: tool.args });
      yield event("TOOL_CALL_END", { toolCallId, toolCallName: tool.name, toolName: tool.name, input: JSON.parse(tool.args) });
      yield event("RUN_FINISHED", { finishReason: "tool_calls" });
      return;
    }
    const asked = textOf(messages.findLast(({ role }) => role === "user").content);
    yield event("TEXT_MESSAGE_START", { messageId, role: "assistant" });
    let content = "";
    for await (const delta of pieces(asked)) yield event("TEXT_MESSAGE_CONTENT", { messageId, delta, content: (content += delta) });
    yield event("TEXT_MESSAGE_END", { messageId });
    yield event("RUN_FINISHED", { finishReason: "stop", usage: { promptTokens: 1, completionTokens: 1, totalTokens: 2 } });
  },
  structuredOutput: () => Promise.reject(new Error("not scripted")),
};

export async function handle(request) {
  const { messages, threadId, runId } = await chatParamsFromRequest(request);
  return toServerSentEventsResponse(chat({ adapter, messages, threadId, runId, tools: [look] }));
}
