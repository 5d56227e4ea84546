import { cutProxy, database } from "@pgagui/testing";
import { expect, onTestFinished, test } from "vitest";
import { codeOf, Database, isTransient, retry } from "../src/index.ts";

function open(connectionString: string, timeout?: number): Database {
  const opened = new Database({ connectionString, timeout });
  onTestFinished(() => opened.close());
  return opened;
}

const scopeOf = async (on: Database) => (await on.query<{ scope: string }>("select coalesce(current_setting('agui.scope', true), '') as scope"))[0]!.scope;

test("a tenant's database sets its scope in each transaction, and shares the pool", async () => {
  const all = open(await database());
  const acme = all.inScope("acme's");
  expect(await scopeOf(acme)).toBe("acme's");
  expect(await scopeOf(all)).toBe("");
  expect(acme.inScope("acme's")).toBe(acme);
  await acme.close(); // the pool is not its own
  expect(await scopeOf(all)).toBe("");
});

test("a statement without an answer fails in time, with an error that is transient", async () => {
  const proxy = await cutProxy(await database());
  const hanging = open(proxy.url, 100);
  const error: unknown = await hanging.query("select pg_sleep(60)").catch((error: unknown) => error);
  expect(isTransient(error), String(error)).toBe(true);
  proxy.cutAnswers(() => true);
  const lost: unknown = await hanging.query("select 1").catch((error: unknown) => error);
  expect(isTransient(lost), String(lost)).toBe(true);
});

test("a call is retried while its errors are transient, and each attempt is reported", async () => {
  const errors = ["57P01", "40001", "08006"].map((code) => Object.assign(new Error(code), { severity: "ERROR", code }));
  const reported: unknown[] = [];
  let calls = 0;
  const call = async () => {
    if (calls < errors.length) throw errors[calls++];
    return "done";
  };
  expect(await retry(call, { onRetry: (error) => void reported.push(error) })).toBe("done");
  expect(reported).toEqual(errors);

  const permanent = Object.assign(new Error("no"), { severity: "ERROR", code: "UI005" });
  await expect(retry(() => Promise.reject(permanent))).rejects.toBe(permanent);
  expect(codeOf(permanent)).toBe("UI005");
  await expect(retry(() => Promise.reject(errors[0]!), { forAtMost: 100 })).rejects.toBe(errors[0]);
  await expect(retry(() => Promise.reject(errors[0]!), { signal: AbortSignal.abort(new Error("left")) })).rejects.toThrow("left");
  const canceled = Object.assign(new Error("statement timeout"), { severity: "ERROR", code: "57014" });
  await expect(retry(() => Promise.reject(canceled))).rejects.toBe(canceled);
});
