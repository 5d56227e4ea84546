import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

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
  const server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.flushHeaders();
    const gone = new Promise<void>((resolve) => response.on("close", resolve));
    await answer({ input: JSON.parse(body), send: (event) => void response.write(`data: ${JSON.stringify(event)}\n\n`), gone });
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}
