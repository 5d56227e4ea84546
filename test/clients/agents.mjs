// Agents of frameworks that others wrote, over HTTP.

import { createServer } from "node:http";
import { Readable } from "node:stream";
import { release } from "./script.mjs";

const modules = { tanstack: "./tanstack.mjs", mastra: "./frameworks/mastra.mjs" };
const servers = [];

export const operations = {
  /** Serves the agent of a framework: its handler takes a Request and returns a Response. Returns the address. */
  async start({ framework }) {
    const { handle } = await import(modules[framework]);
    const server = createServer(async (incoming, outgoing) => {
      const request = new Request(`http://localhost${incoming.url}`, {
        method: incoming.method, headers: incoming.headers, body: Readable.toWeb(incoming), duplex: "half",
      });
      const response = await handle(request);
      outgoing.writeHead(response.status, Object.fromEntries(response.headers));
      outgoing.flushHeaders();
      Readable.fromWeb(response.body).on("error", () => outgoing.destroy()).pipe(outgoing);
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    servers.push(server);
    return `http://127.0.0.1:${server.address().port}`;
  },
  release: ({ text }) => release(text),
};
