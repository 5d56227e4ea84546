import { gzipSync } from "node:zlib";
import { readFileSync } from "node:fs";
import type { Message } from "@ag-ui/client";
import { createMessageRepositorySession } from "@assistant-ui/core/internal";
import type { RemoteThreadListAdapter, ThreadHistoryAdapter } from "@assistant-ui/react";
import { database, serve, serveAgent, type Call } from "@pgagui/testing";
import { PgaguiAgent, PgaguiError, Threads } from "@pgagui/client";
import { historyAdapter, threadListAdapter } from "@pgagui/client/assistant-ui";
import { transformSync } from "esbuild";
import { expect, test } from "vitest";

test("the entry has at most 5 KB, and what it shares comes from the main entry", () => {
  const read = (name: string) => readFileSync(new URL(`../node_modules/@pgagui/client/${name}`, import.meta.url), "utf8");
  const entry = read("dist/assistant-ui.js");
  const imports = [...entry.matchAll(/^(?:import|} from) (?:.* from )?"(.+)";$/gm)].map(([, name]) => name!);
  expect(imports).not.toEqual([]);
  const { peerDependencies } = JSON.parse(read("package.json")) as { peerDependencies: object };
  for (const name of imports) {
    expect(name.startsWith("./") ? read("dist/index.js").includes(`"${name}"`) : name in peerDependencies, name).toBe(true);
  }
  expect(gzipSync(transformSync(entry, { minify: true, format: "esm" }).code).length).toBeLessThanOrEqual(5 * 1024);
});

test("a message that another branch has at another place is shown on both", async () => {
  const { agent, run } = await thread(async ({ input, send }) => {
    if (input.runId === "r2") {
      // An agent that shortens the conversation.
      send({ type: "MESSAGES_SNAPSHOT", messages: [user("u2"), { id: "s", role: "assistant", content: "All of it" }] });
    }
  });
  await run("r1", [user("u1")]);
  await run("r2", [user("u2")]);
  await run("r3", [user("u2")], "r1");
  const shown = await load(historyAdapter(agent));
  expect(shown.messages()).toEqual(["u1", "a-r1", "u2", "a-r3"]);
  expect(shown.siblings("a-r1")).toBe(1);
  expect(shown.paths()).toEqual([["u1", "a-r1", "u2", "a-r3"], ["u2", "s"]]);
});

test("the head can be in the middle of another branch", async () => {
  const { agent, run, threads } = await thread();
  await run("r1", [user("u1")]);
  await run("r2", [user("u2")]);
  await threads.fork("t", { runId: "f", parentRunId: "r1" });
  const history = historyAdapter(agent);
  const shown = await load(history);
  expect(shown.messages()).toEqual(["u1", "a-r1"]);
  expect(shown.paths()).toContainEqual(["u1", "a-r1", "u2", "a-r2"]);
  agent.setMessages([...shown.input(), user("u3")]);
  await agent.runAgent({ runId: "r3" });
  expect((await threads.runs("t")).at(-1)).toMatchObject({ runId: "r3", parentRunId: "f" });
  expect((await load(history)).paths()).toEqual([["u1", "a-r1", "u2", "a-r2"], ["u1", "a-r1", "u3", "a-r3"]]);
});

test("an interrupt waits for its answer after a reload, and the answer continues the run", async () => {
  const interrupt = { id: "i1", reason: "confirmation", message: "Really?" };
  const { agent, run, threads, calls } = await thread(async ({ input, send }) => {
    if (input.runId === "r1") {
      send({ type: "RUN_FINISHED", threadId: "t", runId: "r1", outcome: { type: "interrupt", interrupts: [interrupt] } });
    }
  });
  await run("r1", [user("u1")]);
  const shown = await load(historyAdapter(agent));
  expect(shown.last()).toMatchObject({
    id: "a-r1", status: { type: "requires-action", reason: "interrupt" }, metadata: { custom: { agui: { interrupts: [interrupt] } } },
  });
  agent.setMessages(shown.input());
  await agent.runAgent({ runId: "r2", resume: [{ interruptId: "i1", status: "resolved", payload: true }] });
  expect((await threads.runs("t")).at(-1)).toMatchObject({ runId: "r2", parentRunId: "r1" });
  expect(calls.at(-1)).toMatchObject({ messages: [{ id: "u1" }, { id: "a-r1" }], resume: [{ interruptId: "i1" }] });
});

test("a run in progress is followed over broken connections", async () => {
  let release = () => {};
  const { agent, run } = await thread(async ({ input, send }) => {
    await new Promise<void>((resolve) => (release = resolve));
    send({ type: "TEXT_MESSAGE_START", messageId: "b", role: "assistant" });
    send({ type: "TEXT_MESSAGE_CONTENT", messageId: "b", delta: "more" });
    send({ type: "TEXT_MESSAGE_END", messageId: "b" });
    send({ type: "RUN_FINISHED", threadId: "t", runId: input.runId });
  });
  const running = run("r1", [user("u1")]);
  await expect.poll(() => agent.threads.conversation("t").then(({ messages }) => messages.length, () => 0)).toBe(2);
  let connections = 0;
  agent.fetch = async (url, init) => {
    const response = await fetch(url, init);
    if (!String(url).includes("/events?") || ++connections > 3) {
      return response;
    }
    // The first connections break after one piece.
    const reader = response.body!.getReader();
    return new Response(new ReadableStream({
      start: async (controller) => controller.enqueue((await reader.read()).value),
      pull: (controller) => {
        release();
        controller.error(new TypeError("the network is gone"));
      },
    }), response);
  };
  const shown = await load(historyAdapter(agent));
  expect(shown.messages()).toEqual(["u1"]);
  agent.setMessages(shown.input());
  await agent.runAgent({ runId: "ignored" });
  expect(connections).toBeGreaterThan(1);
  expect(agent.messages.map(({ id, content }) => [id, content])).toEqual([["u1", "u1"], ["a-r1", "Answer of r1"], ["b", "more"]]);
  await running;
  expect((await agent.threads.runs("t")).length).toBe(1);
});

test("a failed run is shown as such", async () => {
  const { agent, run } = await thread(async ({ send }) => send({ type: "RUN_ERROR", message: "no" }));
  await run("r1", [user("u1")]);
  const shown = await load(historyAdapter(agent));
  expect(shown.last()).toMatchObject({ id: "a-r1", status: { type: "incomplete", reason: "error" } });
});

test("a run without an answer continues, and can be repeated", async () => {
  const { agent, run, threads } = await thread(async ({ input, send }) => {
    if (input.runId === "r1") {
      send({ type: "RUN_ERROR", message: "no" });
    }
  }, false);
  await run("r1", [user("u1")]);
  const shown = await load(historyAdapter(agent));
  agent.setMessages([...shown.input(), user("u2")]);
  await agent.runAgent({ runId: "r2" });
  agent.setMessages(shown.input());
  await agent.runAgent({ runId: "r3" });
  expect((await threads.runs("t")).map(({ parentRunId }) => parentRunId)).toEqual([undefined, "r1", undefined]);
});

test("messages are as useAgUiRuntime shows them while they stream", async () => {
  const { agent, run, threads } = await thread(async ({ input, send }) => {
    const say = (messageId: string) => {
      send({ type: "TEXT_MESSAGE_START", messageId, role: "assistant" });
      send({ type: "TEXT_MESSAGE_CONTENT", messageId, delta: messageId });
      send({ type: "TEXT_MESSAGE_END", messageId });
    };
    const look = (toolCallId: string, parentMessageId?: string) => {
      send({ type: "TOOL_CALL_START", toolCallId, toolCallName: "look", ...(parentMessageId && { parentMessageId }) });
      send({ type: "TOOL_CALL_END", toolCallId });
      send({ type: "TOOL_CALL_RESULT", messageId: `${toolCallId}-result`, toolCallId, content: "seen", role: "tool" });
    };
    send({ type: "REASONING_START", messageId: "think" });
    send({ type: "REASONING_MESSAGE_START", messageId: "think", role: "reasoning" });
    send({ type: "REASONING_MESSAGE_CONTENT", messageId: "think", delta: "Hm" });
    send({ type: "REASONING_MESSAGE_END", messageId: "think" });
    send({ type: "REASONING_END", messageId: "think" });
    look("c1");
    say("first");
    look("c2");
    say("second"); // another text of the agent, so another message
    look("c3", "third");
    say("fourth");
    send({ type: "RUN_FINISHED", threadId: "t", runId: input.runId });
  }, false);
  await run("r1", [user("u1")]);
  await threads.fork("t", { runId: "f", parentRunId: "r1" });
  const history = historyAdapter(agent);
  const { messages } = await history.load();
  expect(messages.map(({ message }) => [message.id, ...message.content.map((part) => part.type)])).toEqual([
    ["u1", "text"], ["first", "reasoning", "tool-call", "text", "tool-call"], ["second", "text", "tool-call"], ["fourth", "text"],
  ]);
});

test("only the newest branches are loaded, and the head", async () => {
  const { agent, run } = await thread();
  for (const number of [1, 2, 3, 4]) {
    await run(`r${number}`, [user(`u${number}`)], "");
  }
  expect((await load(historyAdapter(agent, { maxBranches: 2 }))).paths()).toEqual([["u3", "a-r3"], ["u4", "a-r4"]]);
});

test("an edit at the first message begins a new root, with the state of the beginning", async () => {
  const { agent, run, calls } = await thread(async ({ send }) => send({ type: "STATE_SNAPSHOT", snapshot: { count: 1 } }));
  await run("r1", [user("u1")]);
  await load(historyAdapter(agent));
  agent.setMessages([user("u1b")]);
  agent.setState({ count: 1 });
  await agent.runAgent({ runId: "r2" });
  expect(calls.at(-1)!.state ?? {}).toEqual({});
});

test("a new thread is not asked for until it has a run", async () => {
  const { agent } = await thread();
  const requests: string[] = [];
  agent.fetch = (url, init) => {
    requests.push(String(url));
    return fetch(url, init);
  };
  const history = historyAdapter(agent, { isNew: true });
  expect(await history.load()).toEqual({ messages: [] });
  expect(requests).toEqual([]);
  agent.setMessages([user("u1")]);
  await agent.runAgent({ runId: "r1" });
  expect((await load(history)).messages()).toEqual(["u1", "a-r1"]);
});

test("a thread that does not exist is empty, and what the server refuses is an error", async () => {
  const { agent } = await thread();
  const history: ThreadHistoryAdapter = historyAdapter(agent);
  expect(historyAdapter(agent)).toBe(history);
  expect(await history.load()).toEqual({ messages: [] });
  agent.url = agent.url.replace("/agent", "/elsewhere/agent");
  await expect(history.load()).rejects.toBeInstanceOf(PgaguiError);
});

test("the list of threads in pages, with metadata", async () => {
  const { agent, run, threads } = await thread();
  const list: RemoteThreadListAdapter = threadListAdapter(threads, { pageSize: 1, agent: "assistant" });
  await run("r1", [user("u1")]);
  agent.threadId = "t2";
  await run("r1", [user("u2")], "");
  const first = await list.list();
  expect(first.threads).toEqual([
    { remoteId: "t2", status: "regular", title: "u2", custom: {}, lastMessageAt: expect.any(Date) },
  ]);
  const second = await list.list({ after: first.nextCursor });
  expect(second.threads.map(({ remoteId }) => remoteId)).toEqual(["t"]);
  expect(second.nextCursor).toBeUndefined();
  await list.updateCustom!("t", { a: 1, b: 2 });
  await list.updateCustom!("t", { b: 3 });
  expect(await list.fetch("t")).toMatchObject({ custom: { b: 3 } });
  expect((await list.fetch("t")).custom).toEqual({ b: 3 });
  await expect(list.fetch("unknown")).rejects.toMatchObject({ status: 404 });
});

const user = (id: string): Message => ({ id, role: "user", content: id });

/** A thread "t" whose agent answers each run with one message; then `then` sends more, and may end the run. */
async function thread(then: (call: Call) => Promise<void> = async () => {}, answers = true) {
  const calls: Call["input"][] = [];
  const address = await serveAgent(async (call) => {
    const { input, send } = call;
    const { threadId, runId } = input;
    calls.push(input);
    send({ type: "RUN_STARTED", threadId, runId });
    if (answers) {
      send({ type: "TEXT_MESSAGE_START", messageId: `a-${runId}`, role: "assistant" });
      send({ type: "TEXT_MESSAGE_CONTENT", messageId: `a-${runId}`, delta: `Answer of ${runId}` });
      send({ type: "TEXT_MESSAGE_END", messageId: `a-${runId}` });
    }
    let hasEnded = false;
    await then({ ...call, send: (event) => { hasEnded ||= event.type === "RUN_FINISHED" || event.type === "RUN_ERROR"; send(event); } });
    if (!hasEnded) {
      send({ type: "RUN_FINISHED", threadId, runId });
    }
  });
  const { url } = await serve(await database(), { assistant: address });
  const agent = new PgaguiAgent({ url: `${url}/agent/assistant/run`, threadId: "t" });
  /** Runs the agent as another client. */
  const run = async (runId: string, messages: Message[], parentRunId?: string) => {
    const other = new PgaguiAgent({ url: agent.url, threadId: agent.threadId, initialMessages: messages });
    await other.runAgent({ runId, forwardedProps: { pgagui: { parentRunId, history: "new" } } }).catch(() => {});
  };
  return { agent, run, calls, threads: new Threads({ url }) };
}

/** Loads a history into assistant-ui. */
async function load(history: ThreadHistoryAdapter) {
  const loaded = await history.load();
  const session = createMessageRepositorySession();
  session.applyExternalMessageRepository(loaded);
  const original = (id: string) => id.replace(/~\d+$/, "");
  const parents = new Map(session.export().messages.map(({ message, parentId }) => [message.id, parentId]));
  return {
    messages: () => session.getMessages().map(({ id }) => original(id)),
    last: () => session.getMessages().at(-1),
    siblings: (id: string) => [...parents].filter(([, parentId]) => parentId === parents.get(id)).length,
    /** The messages that useAgUiRuntime sends. */
    input: (): Message[] => session.getMessages().map(({ id, role, content }) => {
      const [part] = content;
      return { id, role: role as "user", content: part?.type === "text" ? part.text : "" };
    }),
    /** The ids of each branch, from its first message to its last. */
    paths: () => [...parents.keys()].filter((id) => ![...parents.values()].includes(id)).map((leaf) => {
      const path: string[] = [];
      for (let id: string | null | undefined = leaf; id; id = parents.get(id)) {
        path.unshift(original(id));
      }
      return path;
    }).sort(),
  };
}
