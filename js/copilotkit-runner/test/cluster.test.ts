// Runners on a cluster of three databases: each thread is in one of them.

import { cluster } from "@pgagui/testing";
import { expect, onTestFinished, test } from "vitest";
import { threadHooks } from "../src/index.ts";
import { close, finished, open, PlayedAgent, process, receive, request, sql, started, talk, talked, token, types } from "./harness.ts";

const ids = Array.from({ length: 12 }, (_, i) => `thread ${i}`);

test("runs, clients of other processes, stops and the thread endpoints over a cluster", async () => {
  const { nodes } = await cluster();
  const [one, other] = [process({ nodes, heartbeatInterval: 50, user: "ann" }), process({ nodes })];
  for (const id of ids) {
    expect((await talked(one, id, "r", "Hello.")).events).toEqual(talk(id, "r", "Hello."));
  }
  const counts = await Promise.all(nodes.map(async ({ connectionString }) => (await sql(connectionString, "select from agui.run")).length));
  expect(counts.reduce((sum, n) => sum + n)).toBe(ids.length);
  expect(Math.min(...counts)).toBeGreaterThan(0);

  // All at a time: followed from another process, and stopped from there.
  const agents = ids.map(() => new PlayedAgent());
  const runs = ids.map((id, i) => receive(one.run(request(id, "r2", agents[i]!))));
  await Promise.all(agents.map((agent, i) => agent.send(started(ids[i]!, "r2"), open("m"), token("m", "Once"))));
  await Promise.all(runs.map((run) => run.until("TEXT_MESSAGE_CONTENT")));
  expect(await Promise.all(ids.map((threadId) => other.isRunning({ threadId })))).toEqual(ids.map(() => true));
  const clients = ids.map((threadId) => receive(other.connect({ threadId })));
  await Promise.all(clients.map((client) => client.until("TEXT_MESSAGE_START")));
  expect(await Promise.all(ids.map((threadId) => other.stop({ threadId })))).toEqual(ids.map(() => true));
  await Promise.all([...runs, ...clients].map(({ done }) => done));
  expect(agents.map(({ isAborted }) => isAborted)).toEqual(ids.map(() => true));
  for (const { events } of [...runs, ...clients]) {
    expect(types(events).at(-1)).toBe("RUN_FINISHED");
  }
  expect(await Promise.all(ids.map((threadId) => other.isRunning({ threadId })))).toEqual(ids.map(() => false));

  const hooks = threadHooks({ nodes, user: "ann" });
  onTestFinished(() => hooks.close());
  const ask = async (method: string, threadId?: string, init?: RequestInit, query = "") => {
    const route = threadId === undefined ? { method } : { method, threadId };
    const answer: unknown = await hooks.onBeforeHandler({ request: new Request(`http://localhost/threads${query}`, init), route })
      .catch((thrown: unknown) => thrown);
    expect(answer).toBeInstanceOf(Response);
    return (await (answer as Response).json()) as Record<string, any>;
  };
  const list = async (limit: number) => {
    const found: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page = await ask("threads/list", undefined, undefined, `?limit=${limit}${cursor && `&cursor=${cursor}`}`);
      expect(page.threads.length).toBeLessThanOrEqual(limit);
      found.push(...page.threads.map(({ id }: { id: string }) => id));
      cursor = page.nextCursor;
    }
    return found;
  };
  const whole = await ask("threads/list");
  const times = whole.threads.map(({ updatedAt }: { updatedAt: string }) => updatedAt);
  expect(times).toEqual(times.toSorted().reverse());
  expect(await list(5)).toEqual(whole.threads.map(({ id }: { id: string }) => id));
  expect((await list(1)).toSorted()).toEqual(ids.toSorted());

  await ask("threads/update", ids[0], { method: "PATCH", body: JSON.stringify({ name: "First" }) });
  await ask("threads/archive", ids[1]);
  expect(await ask("threads/update", ids[2], { method: "DELETE" })).toEqual({ threadId: ids[2], deleted: true });
  const left = (await ask("threads/list")).threads as { id: string; name: string }[];
  expect(left.map(({ id }) => id).toSorted()).toEqual(ids.filter((_, i) => i !== 1 && i !== 2).toSorted());
  expect(left.find(({ id }) => id === ids[0])!.name).toBe("First");
  for (const id of ids.slice(3)) {
    expect((await ask("threads/messages", id)).messages.map(({ role }: { role: string }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
    expect((await ask("threads/events", id)).events.at(-1)).toMatchObject({ type: "RUN_FINISHED" });
  }
});

test("a run and its clients go on while their thread moves", async () => {
  const three = await cluster();
  const [one, other] = [process({ nodes: three.nodes, heartbeatInterval: 50 }), process({ nodes: three.nodes })];
  await talked(one, "t", "r1", "Hello.");
  const agent = new PlayedAgent();
  const run = receive(one.run(request("t", "r2", agent)));
  await agent.send(started("t", "r2"), open("m"));
  await run.until("TEXT_MESSAGE_START");
  const client = receive(other.connect({ threadId: "t" }));
  await client.until("TEXT_MESSAGE_START");
  let isMoving = true;
  let sent = 0;
  const sending = (async () => {
    while (isMoving) {
      await agent.send(token("m", `${sent++} `));
      await run.until("TEXT_MESSAGE_CONTENT", sent);
    }
  })();
  for (const to of ["c", "a"]) await three.move("t", to);
  isMoving = false;
  await sending;
  await agent.send(close("m"), finished("t", "r2"));
  await agent.end();
  await Promise.all([run.done, client.done]);
  const text = Array.from({ length: sent }, (_, i) => `${i} `).join("");
  for (const { events, error } of [run, client]) {
    expect(error).toBeUndefined();
    expect(events.map(({ delta }) => delta ?? "").join("")).toBe(text);
    expect(events.at(-1)).toEqual(finished("t", "r2"));
  }
  expect((await talked(other, "t", "r3", "Go on.")).events).toEqual(talk("t", "r3", "Go on."));
});
