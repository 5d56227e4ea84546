import { cutProxy, database } from "@pgagui/testing";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { classOf, codeOf, Database, isTransient, retry, states } from "../src/index.ts";

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

const errorOf = (code: string, message = "a message") => Object.assign(new Error(message), { severity: "ERROR", code });

test("the wait for a connection of a caller's pool has a bound, and one that comes late goes back", async () => {
  const pool = new pg.Pool({ connectionString: await database(), max: 1 });
  pool.on("error", () => {});
  onTestFinished(() => pool.end());
  const busy = await pool.connect();
  const all = new Database({ pool, timeout: 50 });
  for (const on of [all, all.inScope("acme")]) {
    const error: unknown = await on.query("select 1").catch((error: unknown) => error);
    expect(isTransient(error), String(error)).toBe(true);
  }
  busy.release();
  expect(await all.within(5_000).query("select 1 as one")).toEqual([{ one: 1 }]);
  expect([pool.totalCount, pool.idleCount, pool.waitingCount]).toEqual([1, 1, 0]);
});

test("the classes of errors are those of the table", () => {
  const others = ["UI005", "UI027", "22023", "23505", "28P01", "42501", "0A000", "XX000", "3D000"].map((code) => [code, "something else", "permanent"]);
  for (const [code, message, stated] of [...states.retries, ["57P01", "", "transient"], ["42883", "", "uncertain"], ...others] as [string, string, string][]) {
    const error = errorOf(`${code}006`.slice(0, 5), message);
    expect([code, message, classOf(error)]).toEqual([code, message, stated]);
    expect(isTransient(error)).toBe(stated !== "permanent");
  }
});

test("a failure that is uncertain is retried a few times", async () => {
  const upgrade = errorOf("XX000", "cache lookup failed for type 1");
  const failures = [upgrade, upgrade, upgrade];
  const call = async () => {
    const failure = failures.pop();
    if (failure) throw failure;
    return "done";
  };
  expect(await retry(call)).toBe("done");
  for (const code of ["53200", "57014"]) {
    let attempts = 0;
    const costly = errorOf(code);
    await expect(retry(() => (attempts++, Promise.reject(costly)))).rejects.toBe(costly);
    expect(attempts).toBe(4);
  }
  // Failures between the attempts, such as those of heartbeats, say that the database is away, not that the call is the cause.
  let attempts = 0;
  const onRetry = () => {
    if (attempts % 2 === 0) {
      attempts++;
      throw errorOf("53200");
    }
  };
  expect(await retry(async () => {
    if (attempts++ < 7) throw errorOf("53200");
    return "done";
  }, { onRetry })).toBe("done");
});

test("a call is retried while its errors are transient, and each attempt is reported", async () => {
  const errors = ["57P01", "40001", "08006"].map((code) => errorOf(code));
  const reported: unknown[] = [];
  let calls = 0;
  const call = async () => {
    if (calls < errors.length) throw errors[calls++];
    return "done";
  };
  expect(await retry(call, { onRetry: (error) => void reported.push(error) })).toBe("done");
  expect(reported).toEqual(errors);

  const permanent = errorOf("UI005");
  await expect(retry(() => Promise.reject(permanent))).rejects.toBe(permanent);
  expect(codeOf(permanent)).toBe("UI005");
  await expect(retry(() => Promise.reject(errors[0]!), { forAtMost: 100 })).rejects.toBe(errors[0]);
  await expect(retry(() => Promise.reject(errors[0]!), { signal: AbortSignal.abort(new Error("left")) })).rejects.toThrow("left");
});
