// The example in TypeScript works: see examples/README.md.

import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { database, hasPooler, isMissing, pooler } from "../src/index.ts";

const examples = fileURLToPath(new URL("../../../examples", import.meta.url));
const modules = fileURLToPath(new URL("../../node_modules", import.meta.url));

/** Runs a program and returns what it printed. A failure has all that it printed. */
async function run(program: string, args: string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const ended = promisify(execFile)(program, args, { env: { ...process.env, ...env }, timeout: 60_000 });
  return (await ended.catch((error) => {
    throw new Error(`${error.message}\n${error.stdout}\n${error.stderr}`);
  })).stdout;
}

test("examples/typescript compiles and runs", async () => {
  const folder = mkdtempSync(join(tmpdir(), "pgagui-example-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "node_modules"));
  for (const name of ["@ag-ui", "@types", "pg", "@ag-ui/client/node_modules/rxjs"]) { // npm gives an application the rxjs that the client pins
    symlinkSync(join(modules, name), join(folder, "node_modules", basename(name)));
  }
  for (const name of readdirSync(join(examples, "typescript"))) {
    if (name !== "node_modules") copyFileSync(join(examples, "typescript", name), join(folder, name));
  }
  // Node.js 20 does not run TypeScript.
  await run(process.execPath, [join(modules, "typescript/bin/tsc"), "-p", folder, "--noEmit", "false", "--rewriteRelativeImportExtensions"]);
  for (const url of await addresses()) {
    const out = await run(process.execPath, [join(folder, "main.js")], { DATABASE_URL: url });
    expect(out.match(/content: 'Three days in Lisbon'/g)).toHaveLength(2);
  }
});

/** The address of a database, and where PgBouncer is installed that of another one through it. */
const addresses = async () => [await database(), ...(isMissing("pgbouncer", hasPooler) ? [] : [await pooler(await database())])];
