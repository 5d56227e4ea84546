import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";
import { binary } from "./server.ts";

/** A process of pgagui serve. */
export interface Server {
  /** Its address, without a slash at the end. */
  url: string;
  process: ChildProcess;
  /** Sends a signal, and waits until the process has ended. */
  end(signal?: NodeJS.Signals): Promise<void>;
}

/** Starts pgagui serve on a database, without tokens, for the current test. Agents are names and addresses. */
export async function serve(databaseURL: string, agents: Record<string, string> = {}, flags: string[] = []): Promise<Server> {
  const named = Object.entries(agents).flatMap(([name, url]) => ["--agent", `${name}=${url}`]);
  const child = spawn(
    binary,
    ["serve", "--insecure", "--listen", "127.0.0.1:0", "--limits-requests-per-second", "-1", "--limits-streams", "-1", "--grace", "1ms",
      ...named, ...flags],
    { env: { ...process.env, DATABASE_URL: databaseURL }, stdio: ["ignore", "ignore", "pipe"] },
  );
  const ended = once(child, "exit");
  const end = async (signal: NodeJS.Signals = "SIGTERM") => {
    child.kill(signal);
    await ended;
  };
  onTestFinished(() => end("SIGKILL")); // SIGTERM would wait for connections on which clients have sent nothing yet
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stderr })) {
    lines.push(line);
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
    if (url) {
      child.stderr.resume(); // a full pipe would stop the process
      return { url, process: child, end };
    }
  }
  throw new Error(`pgagui serve ended: ${lines.join("\n")}`);
}
