import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { Client } from "pg";
import { at, binary, serverURL } from "./server.ts";

/** The name of the database that tests copy. */
const template = `pgagui_js_template_${process.pid}`;

/** Prepares a database with the schema agui once, for all test files. Vitest calls it. */
export default async function setup() {
  if (process.env.PGAGUI_TEST_TEMPLATE) return; // of another project of the same run
  process.env.PGAGUI_TEST_TEMPLATE = template;
  if (!existsSync(binary)) {
    throw new Error(`${binary} is missing (run: make build)`);
  }
  const server = new Client(serverURL());
  await server.connect();
  await server.query(`create database ${template}`);
  execFileSync(binary, ["migrate", "up", "--database-url", at(template)], { stdio: "pipe" });
  return async () => {
    await server.query(`drop database ${template} with (force)`);
    await server.end();
  };
}
