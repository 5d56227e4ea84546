import { listen } from "./listen.ts";

/** What an agent receives, and how it answers. */
export interface Call {
  input: { threadId: string; runId: string; messages: { id: string; role: string; content?: unknown }[]; [member: string]: unknown };
  /** Sends an event. */
  send(event: { type: string; [member: string]: unknown }): void;
  /** Resolves when the client of the agent has gone away. */
  gone: Promise<void>;
}

/** Serves an agent over HTTP for the current test, and returns its address. The answer ends when `answer` resolves. */
export async function serveAgent(answer: (call: Call) => Promise<void>): Promise<string> {
  const url = await listen(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.flushHeaders();
    const gone = new Promise<void>((resolve) => response.on("close", resolve));
    await answer({ input: JSON.parse(body), send: (event) => void response.write(`data: ${JSON.stringify(event)}\n\n`), gone });
    response.end();
  });
  return `${url}/`;
}
