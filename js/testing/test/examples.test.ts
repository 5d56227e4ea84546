// The examples in TypeScript and for psycopg2 work: see examples/README.md.

import { execFile, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { database, isMissing } from "../src/index.ts";

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
  const out = await run(process.execPath, [join(folder, "main.js")], { DATABASE_URL: await database() });
  expect(out.match(/content: 'Three days in Lisbon'/g)).toHaveLength(2);
});

/** The Python that has Debian's python3-psycopg2. */
const python = "/usr/bin/python3";
const hasPsycopg = spawnSync(python, ["-c", "import psycopg2"]).status === 0;

test.skipIf(isMissing("psycopg2", hasPsycopg))("examples/python/append_psycopg2.py runs, also when a connection breaks", async () => {
  const file = join(examples, "python/append_psycopg2.py");
  const env = { DATABASE_URL: await database(), PYTHONPATH: join(examples, "python") };
  expect(await run(python, ["-B", "-W", "error", file], env)).toBe("seq 6: Three days in Lisbon\n");
  expect(await run(python, ["-B", "-W", "error", "-c", `
import os, psycopg2
from append_psycopg2 import Recorder, agent

def broken():
    for number, event in enumerate(agent("thread", "run")):
        if number == 4:
            with psycopg2.connect(os.environ["DATABASE_URL"]) as other, other.cursor() as cursor:
                cursor.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
                print(cursor.fetchall())
            other.close()
        yield event

recorder = Recorder(os.environ["DATABASE_URL"])
print(recorder.record("thread", "run", broken(), batch=2), len(recorder.messages("thread")))
recorder.close()
`], env)).toBe("[(True,)]\n6 1\n");
});
