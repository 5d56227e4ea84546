import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** A proxy in front of a server, which cuts connections or makes them silent. */
export interface CutProxy {
  /** The address of the server, through the proxy. */
  url: string;
  /** Cuts all connections now. */
  cut(): void;
  /** From now on, decides for each piece of an answer whether to cut the connection instead of passing it on. */
  cutAnswers(decide: (piece: Buffer) => boolean): void;
  /**
   * From now on, decides for each piece of a request whether its connection, which stays open, passes nothing on any more: as
   * when a host vanishes.
   */
  swallow(decide: (piece: Buffer) => boolean): void;
}

/** Starts a proxy in front of the server at an address (postgres: or http:), for the current test. */
export async function cutProxy(url: string): Promise<CutProxy> {
  const { port, hostname } = new URL(url);
  const sockets = new Set<Socket>();
  let decide = (_: Buffer) => false;
  let swallows = (_: Buffer) => false;
  const server = createServer((client) => {
    const upstream = connect(Number(port || 5432), hostname);
    const end = () => {
      for (const socket of [client, upstream]) {
        sockets.delete(socket);
        socket.destroy();
      }
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", end).on("close", end);
    }
    let isSilent = false;
    client.on("data", (piece) => void ((isSilent ||= swallows(piece)) || upstream.write(piece)));
    upstream.on("data", (piece) => void (isSilent || (decide(piece) ? end() : client.write(piece))));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(() => {
    cut();
    server.close();
  });
  const address = new URL(url);
  address.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url: address.href, cut, cutAnswers: (decider) => void (decide = decider), swallow: (decider) => void (swallows = decider) };
}
