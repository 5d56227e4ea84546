import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { onTestFinished } from "vitest";
import { at, serverURL } from "./server.ts";

/** Creates a database with the schema agui for the current test, and returns its address. */
export async function database(): Promise<string> {
  const template = process.env.PGAGUI_TEST_TEMPLATE;
  const name = `pgagui_js_${randomBytes(6).toString("hex")}`;
  await onServer(`create database ${name} template ${template}`);
  onTestFinished(() => onServer(`drop database ${name} with (force)`));
  return at(name);
}

async function onServer(statement: string): Promise<void> {
  const client = new Client(serverURL());
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
