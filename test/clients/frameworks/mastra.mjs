// Mastra with a scripted model, behind its AG-UI agent.

import { EventEncoder } from "@ag-ui/encoder";
import { MastraAgent } from "@ag-ui/mastra";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { z } from "zod";
import { pieces, textOf, tool } from "../script.mjs";

const look = createTool({
  id: tool.name, description: "Looks", inputSchema: z.object({ at: z.string() }), execute: async () => tool.result,
});

let lastID = 0;

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };

async function* says(prompt) {
  yield { type: "stream-start", warnings: [] };
  yield { type: "response-metadata", id: `response ${++lastID}`, modelId: "scripted", timestamp: new Date() };
  if (prompt.at(-1).role === "user") {
    yield { type: "tool-call", toolCallId: `call ${lastID}`, toolName: tool.name, input: tool.args };
    yield { type: "finish", finishReason: "tool-calls", usage };
    return;
  }
  const asked = textOf(prompt.findLast(({ role }) => role === "user").content);
  const id = `text ${lastID}`;
  yield { type: "text-start", id };
  for await (const delta of pieces(asked)) yield { type: "text-delta", id, delta };
  yield { type: "text-end", id };
  yield { type: "finish", finishReason: "stop", usage };
}

const model = {
  specificationVersion: "v2", provider: "scripted", modelId: "scripted", supportedUrls: {},
  doGenerate: () => Promise.reject(new Error("not scripted")),
  doStream: async ({ prompt }) => ({ stream: ReadableStream.from(says(prompt)) }),
};

const agent = new Agent({ id: "scripted", name: "scripted", instructions: "Say what the script says.", model, tools: { look } });

export async function handle(request) {
  const input = await request.json();
  const encoder = new EventEncoder();
  const events = new MastraAgent({ agentId: "scripted", agent, resourceId: "user", threadId: input.threadId }).run(input);
  const body = new ReadableStream({
    start(controller) {
      events.subscribe({
        next: (event) => controller.enqueue(new TextEncoder().encode(encoder.encodeSSE(event))),
        error: (error) => controller.error(error),
        complete: () => controller.close(),
      });
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}
