import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { onTestFinished } from "vitest";
import { at, serverURL } from "./server.ts";

/** Creates a database with the schema agui for the current test, and returns its address. */
export async function database(): Promise<string> {
  const { url, drop } = await createDatabase();
  onTestFinished(drop);
  return url;
}

/** Creates a database with the schema agui, which the caller drops. */
export async function createDatabase(): Promise<{ url: string; drop: () => Promise<void> }> {
  const name = `pgagui_js_${randomBytes(6).toString("hex")}`;
  await onServer(`create database ${name} template ${process.env.PGAGUI_TEST_TEMPLATE}`);
  // The connections of a pool that was just ended are still there for a moment: the first statement waits for them, for 5 seconds.
  const drop = () => onServer(`drop database ${name}`).catch(() => onServer(`drop database ${name} with (force)`));
  return { url: at(name), drop };
}

const onServer = (text: string) => statement(serverURL(), text);

/** Runs a statement on a connection of its own. */
export async function statement(url: string, text: string, values: unknown[] = []): Promise<void> {
  const client = new Client(url);
  await client.connect();
  try {
    await client.query(text, values);
  } finally {
    await client.end();
  }
}
