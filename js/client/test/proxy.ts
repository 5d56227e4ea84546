// A proxy that drops connections.

import { createServer, request, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** What happens to an answer behind so many bytes of its body; with 0 there is no answer at all. */
export interface Cut {
  after: number;
  /** The connection breaks, the answer ends as if it were complete, or nothing more comes. Default: break. */
  how?: "break" | "end" | "stall";
}

export interface Proxy {
  url: string;
  /** The address of the server, which may change. Undefined: connections break at once. */
  target: string | undefined;
  /** Decides about each answer. Default: no cuts. */
  cut: (request: IncomingMessage) => Cut | undefined;
  /** The requests so far. */
  requests: IncomingMessage[];
  /** How many answers were cut. */
  cuts: number;
}

/** Starts a proxy for the current test. */
export async function startProxy(target: string | undefined): Promise<Proxy> {
  const server = createServer((incoming, answer) => {
    proxy.requests.push(incoming);
    const cut = proxy.cut(incoming);
    const drop = (how: Cut["how"] = "break") => {
      proxy.cuts++;
      if (how === "break") incoming.socket.destroy();
      if (how === "end") answer.end();
    };
    if (!proxy.target) {
      incoming.socket.destroy();
      return;
    }
    const outgoing = request(proxy.target + incoming.url, { method: incoming.method, headers: { ...incoming.headers, host: new URL(proxy.target).host } });
    outgoing.on("error", () => incoming.socket.destroy());
    answer.on("close", () => outgoing.destroy());
    incoming.pipe(outgoing);
    outgoing.on("response", (response) => {
      response.on("error", () => incoming.socket.destroy());
      if (cut?.after === 0) {
        drop(cut.how);
        return;
      }
      answer.writeHead(response.statusCode!, response.headers);
      answer.flushHeaders();
      let left = cut?.after ?? Infinity;
      response.on("data", (piece: Buffer) => {
        if (left <= 0) return;
        left -= piece.length;
        const isLast = left <= 0;
        answer.write(isLast ? piece.subarray(0, piece.length + left) : piece, () => {
          if (isLast) drop(cut?.how);
        });
      });
      response.on("end", () => {
        if (left > 0) answer.end();
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const proxy: Proxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, target, cut: () => undefined, requests: [], cuts: 0,
  };
  return proxy;
}
