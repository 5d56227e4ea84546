// CopilotKit's core as an app in a browser has it, but without a browser.

globalThis.window = globalThis; // without it the core takes itself for a server, and asks for nothing
const { CopilotKitCore, ɵcreateThreadStore } = await import("@copilotkit/core");

const apps = new Map();
let lastKey = 0;

/** What a call leads to: the core reports errors to its subscribers, and throws some of them too. */
async function outcome(app, promise) {
  app.errors = [];
  try {
    await promise;
  } catch (thrown) {
    app.errors.push(String(thrown));
  }
  return { error: app.errors.join("; ") };
}

export const operations = {
  /** An app that has found its runtime, and shows a thread with an agent. */
  async open({ url, transport, agent, thread }) {
    const app = { errors: [], frames: [] };
    app.core = new CopilotKitCore({ runtimeUrl: url, runtimeTransport: transport, deferInitialConnection: true });
    const connected = new Promise((resolve, reject) => {
      app.core.subscribe({
        onRuntimeConnectionStatusChanged: ({ status }) => status === "connected" && resolve(),
        onError: ({ error, code }) => { app.errors.push(`${code}: ${error}`); reject(error); },
      });
    });
    app.core.connect();
    await connected;
    app.agent = app.core.getAgent(agent);
    app.agent.threadId = thread;
    app.threads = ɵcreateThreadStore({ fetch: app.core.ɵruntimeFetch });
    app.threads.start();
    apps.set(++lastKey, app);
    return lastKey;
  },
  agents: ({ client }) => Object.keys(apps.get(client).core.agents),
  run({ client, messages, ...parameters }) {
    const app = apps.get(client);
    if (messages) app.agent.addMessages(messages);
    return outcome(app, app.core.runAgent({ agent: app.agent, ...parameters }));
  },
  connect: ({ client }) => outcome(apps.get(client), apps.get(client).core.connectAgent({ agent: apps.get(client).agent })),
  stop: ({ client }) => apps.get(client).core.stopAgent({ agent: apps.get(client).agent }),
  setMessages: ({ client, messages }) => apps.get(client).agent.setMessages(messages),
  look({ client }) {
    const { messages, state, pendingInterrupts: interrupts, isRunning } = apps.get(client).agent;
    return { messages, state, interrupts, isRunning };
  },
  frames: () => [],
  async close({ client }) {
    const app = apps.get(client);
    app.threads.stop();
    await app.agent.detachActiveRun();
    app.core.setRuntimeUrl(undefined);
    apps.delete(client);
  },
  /** The list of threads, as an app shows it. */
  async list({ client, agent, includeArchived, limit, all }) {
    const { core, threads } = apps.get(client);
    threads.setContext(null);
    threads.setContext({ runtimeUrl: core.runtimeUrl, headers: {}, agentId: agent, includeArchived, limit });
    for (;;) {
      await settled(threads, (state) => !state.isLoading && !state.isFetchingNextPage);
      if (!all || threads.getState().nextCursor == null) break;
      threads.fetchNextPage();
    }
    return shown(threads);
  },
  async change({ client, call, thread, name }) {
    const { threads } = apps.get(client);
    await threads[call](thread, name);
    return shown(threads);
  },
};

function shown(store) {
  const { threads, error, fetchMoreError } = store.getState();
  const failed = error ?? fetchMoreError;
  return { threads, error: failed ? String(failed) : "" };
}

async function settled(store, isSettled) {
  await new Promise((resolve) => setTimeout(resolve, 0)); // the store begins in the next turn
  while (!isSettled(store.getState())) await new Promise((resolve) => setTimeout(resolve, 2));
}
