// The scripted model as the AI SDK has models, for the frameworks that build on it.

import { randomUUID } from "node:crypto";
import { reply } from "../script.mjs";

function turns(prompt) {
  return prompt.flatMap(({ role, content }) => role === "tool"
    ? content.map(({ output }) => ({ role, text: typeof output.value === "string" ? output.value : JSON.stringify(output.value) }))
    : [{ role, text: typeof content === "string" ? content : content.map((part) => part.text ?? "").join("") }]);
}

async function* parts(prompt) {
  yield { type: "stream-start", warnings: [] };
  const id = randomUUID();
  let isText = false, finishReason = "stop";
  for await (const part of reply(turns(prompt))) {
    if (typeof part === "string") {
      if (!isText) yield { type: "text-start", id };
      isText = true;
      yield { type: "text-delta", id, delta: part };
      continue;
    }
    yield { type: "tool-input-start", id: part.id, toolName: part.name };
    for (const delta of [part.args.slice(0, 4), part.args.slice(4)]) yield { type: "tool-input-delta", id: part.id, delta };
    yield { type: "tool-input-end", id: part.id };
    yield { type: "tool-call", toolCallId: part.id, toolName: part.name, input: part.args };
    finishReason = "tool-calls";
  }
  if (isText) yield { type: "text-end", id };
  yield { type: "finish", finishReason, usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } };
}

export const model = {
  specificationVersion: "v2", provider: "scripted", modelId: "scripted", supportedUrls: {},
  doGenerate: () => Promise.reject(new Error("not scripted")),
  doStream: async ({ prompt }) => ({ stream: ReadableStream.from(parts(prompt)) }),
};
