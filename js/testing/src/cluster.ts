import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";
import { database, statement } from "./database.ts";
import { binary } from "./server.ts";

/** Three databases, as the nodes a, b and c. */
export interface TestCluster {
  nodes: { name: string; connectionString: string }[];
  /** Runs a command of `pgagui cluster`. */
  run(command: string, ...more: string[]): Promise<void>;
  /** Moves a thread alone. */
  move(threadId: string, to: string, scope?: string): Promise<void>;
}

const map = JSON.stringify({ buckets: [["a", 0, 341], ["b", 342, 682], ["c", 683, 1023]].map(([node, first, last]) => ({ node, first, last, epoch: 1 })) });

/** Makes a cluster for the current test. Each node has a third of the buckets. */
export async function cluster(): Promise<TestCluster> {
  const nodes = await Promise.all(["a", "b", "c"].map(async (name) => {
    const connectionString = await database();
    await statement(connectionString, "call agui.join_cluster($1, $2)", [name, map]);
    return { name, connectionString };
  }));
  const folder = mkdtempSync(join(tmpdir(), "pgagui-cluster-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "nodes.json");
  writeFileSync(file, JSON.stringify({ nodes: nodes.map(({ name, connectionString }) => ({ name, url: connectionString })) }));
  const run = async (command: string, ...more: string[]): Promise<void> => {
    await promisify(execFile)(binary, ["cluster", command, "--nodes", file, ...more]).catch((error: Error) => {
      if (error.message.includes("another move is in progress")) { // the server still ends the connection of the one before
        return run(command, ...more);
      }
      throw error;
    });
  };
  return { nodes, run, move: (threadId, to, scope = "") => run("move", "--thread", threadId, "--to", to, "--scope", scope) };
}
