// TanStack AI: chat() with its OpenAI adapter, served over HTTP on a free port of this machine. The adapter's OpenAI client gets its
// answers from the script instead of from OpenAI.

import { once } from "node:events";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { json } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { chat, chatParamsFromRequestBody, toServerSentEventsResponse } from "@tanstack/ai";
import { createOpenaiChat } from "@tanstack/ai-openai";
import { eventsOf } from "./client.mjs";
import { openAIFetch } from "./scripted-model.mjs";

/** Serves a chat with these tools while `use` runs; `use` gets a function that posts a RunAgentInput and gives the events as JSON. */
export async function withTanStack({ script, tools, prompt }, use) {
  const adapter = createOpenaiChat("gpt-4o-mini", "no key needed", { fetch: openAIFetch(script), maxRetries: 0 });
  const server = createServer(async (request, response) => {
    const { messages, threadId, runId, parentRunId, state, resume } = await chatParamsFromRequestBody(await json(request));
    const events = chat({ adapter, tools, systemPrompts: [prompt], messages, threadId, runId, parentRunId, state, resume });
    const answer = toServerSentEventsResponse(events);
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    await pipeline(Readable.fromWeb(answer.body), response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    await use(async (input) => {
      const response = await fetch(`http://127.0.0.1:${server.address().port}/`, { method: "POST", body: JSON.stringify(input) });
      return eventsOf(await response.text());
    });
  } finally {
    server.close();
    server.closeAllConnections();
  }
}
