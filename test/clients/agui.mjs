// The AG-UI client in two versions, side by side.

import { readFileSync } from "node:fs";
import { readingAlong, splicing } from "./frames.mjs";

const versions = {};
for (const name of ["@ag-ui/client", "@ag-ui/client-0"]) {
  const module = await import(name);
  versions[JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url))).version] = withConnect(module);
}

/** HttpAgent with connectAgent, which needs the one method that HttpAgent does not have. */
function withConnect({ HttpAgent, runHttpRequest, transformHttpEventStream }) {
  return class extends HttpAgent {
    connect(input) {
      const { method, url } = this.connection;
      const { body, ...init } = this.requestInit(input);
      return transformHttpEventStream(runHttpRequest(() => this.fetch(url, method === "GET" ? { ...init, method } : { ...init, body })));
    }
  };
}

const clients = new Map();
let lastKey = 0;

async function outcome(promise) {
  try {
    const { result } = await promise;
    return { result };
  } catch (thrown) {
    return { error: thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown) };
  }
}

export const operations = {
  /** A client: what runs go to, and what it connects to. With `bases` it resumes there when a connection breaks. */
  open({ version, base, agent, thread, connect, bases, follow, state }) {
    const seen = { all: [], frames: [], breaks: 0 };
    const fetch = bases ? splicing(seen, bases, (init) => follow ?? runOf(init, thread)) : readingAlong(seen);
    const client = new versions[version]({ url: `${base}/agent/${agent}/run`, threadId: thread, fetch, initialState: state });
    client.connection = connect ?? { method: "POST", url: `${base}/agent/${agent}/connect` };
    client.seen = seen;
    clients.set(++lastKey, client);
    return lastKey;
  },
  run({ client: key, messages, ...parameters }) {
    const client = clients.get(key);
    if (messages) client.addMessages(messages);
    return outcome(client.runAgent(parameters));
  },
  connect: ({ client: key }) => outcome(clients.get(key).connectAgent({ runId: "connect" })),
  setMessages: ({ client: key, messages }) => clients.get(key).setMessages(messages),
  abort: ({ client: key }) => clients.get(key).abortRun(),
  look({ client: key }) {
    const { messages, state, pendingInterrupts: interrupts, isRunning, seen } = clients.get(key);
    return { messages, state, interrupts, isRunning, lastID: seen.lastID, breaks: seen.breaks, headers: seen.headers };
  },
  frames: ({ client: key, all }) => clients.get(key).seen[all ? "all" : "frames"],
  close: ({ client: key }) => { clients.get(key).abortController.abort(); clients.delete(key); },
};

const runOf = (init, thread) => `/threads/${encodeURIComponent(thread)}/events?run=${encodeURIComponent(JSON.parse(init.body).runId)}`;
