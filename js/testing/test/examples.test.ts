// The examples in TypeScript and for psycopg2 work: see examples/README.md.

import { execFile, spawnSync } from "node:child_process";
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

/** The Python that has Debian's python3-psycopg2, python3-psycopg and python3-asyncpg. */
const python = "/usr/bin/python3";
const hasModule = (name: string) => spawnSync(python, ["-c", `import ${name}`]).status === 0;

test.skipIf(isMissing("psycopg2", hasModule("psycopg2")))("examples/python/append_psycopg2.py runs, also when a connection breaks", async () => {
  const file = join(examples, "python/append_psycopg2.py");
  const env = { DATABASE_URL: await database(), PYTHONPATH: join(examples, "python") };
  for (const url of await addresses()) {
    expect(await run(python, ["-B", "-W", "error", file], { ...env, DATABASE_URL: url })).toBe("seq 6: Three days in Lisbon\n");
  }
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

/** How drivers of Python connect with the setting of docs/operations.md, and ask for a value. */
const drivers = {
  psycopg: `
import psycopg, re
connect = lambda url: psycopg.AsyncConnection.connect(url, prepare_threshold=None, autocommit=True)
async def value(connection, statement, *values):
    return (await (await connection.execute(re.sub(r"[$]\\d", "%s", statement), values)).fetchone())[0]`,
  asyncpg: `
import asyncpg
connect = lambda url: asyncpg.connect(url, statement_cache_size=0)
value = lambda connection, statement, *values: connection.fetchval(statement, *values)`,
};

test.skipIf(isMissing("pgbouncer", hasPooler)).each(["psycopg", "asyncpg"] as const)("%s goes through PgBouncer in transaction mode", async (name) => {
  if (isMissing(name, hasModule(name))) return;
  const program = `${drivers[name]}
import asyncio, json, os

async def write(thread):
    connection, seq = await connect(os.environ["DATABASE_URL"]), 0
    for kind in ["RUN_STARTED", *["TEXT_MESSAGE_CHUNK"] * 20, "RUN_FINISHED"]:
        event = json.dumps([{"type": kind, "messageId": "m", "delta": "x"}])
        seq = await value(connection, "select agui.append($1, 'r', $2::json, after_seq => $3)", thread, event, seq)
    message = await value(connection, "select message::text from agui.messages($1)", thread)
    await connection.close()
    return seq, json.loads(message)["content"]

async def main(): # more than the pooler has connections
    print(set(await asyncio.gather(*[write(f"t{n}") for n in range(8)])))

asyncio.run(main())`;
  expect(await run(python, ["-c", program], { DATABASE_URL: await pooler(await database()) })).toBe(`{(22, '${"x".repeat(20)}')}\n`);
});
