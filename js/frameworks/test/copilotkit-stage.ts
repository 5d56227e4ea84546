// Stock CopilotKit: processes of its runtime, apps with its core, and an agent that the test plays.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { serveAgent, type Call } from "@pgagui/testing";
import { expect, onTestFinished, vi } from "vitest";

Object.assign(globalThis, { window: globalThis }); // without it the core takes itself for a server, and asks for nothing
const { CopilotKitCore, ɵcreateThreadStore } = await import("@copilotkit/core");

/** A process of the runtime. */
export interface Runtime {
  url: string;
  kill(): Promise<void>;
}

export interface Settings {
  runner: "pgagui" | "memory";
  databaseURL: string;
  agentURL: string;
  pg?: string;
  /** One path for each request, or one for all of them. */
  transport?: "rest" | "single";
}

export async function startRuntime({ runner, databaseURL, agentURL, pg = "pg", transport = "rest" }: Settings): Promise<Runtime> {
  const child = spawn(process.execPath, [fileURLToPath(new URL("copilotkit-runtime.mjs", import.meta.url))], {
    env: {
      ...process.env, RUNNER: runner, DATABASE_URL: databaseURL, AGENT_URL: agentURL, PG_MODULE: pg,
      MODE: transport === "single" ? "single-route" : "multi-route",
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let errors = "";
  child.stderr.on("data", (data: Buffer) => (errors += data.toString()));
  const ended = once(child, "exit");
  const kill = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  onTestFinished(kill);
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith("http://127.0.0.1")) {
      child.stdout.resume();
      return { url: line, kill };
    }
  }
  throw new Error(`the runtime ended: ${errors}`);
}

/** The agent that all processes call. */
export interface Helper {
  url: string;
  /** Waits for the next call. */
  call(): Promise<PlayedCall>;
  calls: number;
}

export interface PlayedCall extends Call {
  /** Ends the answer. */
  end(): void;
}

export async function startAgent(): Promise<Helper> {
  const calls: PlayedCall[] = [];
  let arrived = () => {};
  const helper: Helper = {
    url: "", calls: 0,
    async call() {
      while (calls.length === 0) {
        await new Promise<void>((resolve) => (arrived = resolve));
      }
      return calls.shift()!;
    },
  };
  helper.url = await serveAgent((call) => new Promise((resolve) => {
    helper.calls++;
    calls.push({ ...call, end: resolve });
    void call.gone.then(resolve);
    arrived();
  }));
  return helper;
}

export const begin = (call: PlayedCall, text: string) => {
  const { threadId, runId } = call.input;
  call.send({ type: "RUN_STARTED", threadId, runId });
  call.send({ type: "TEXT_MESSAGE_START", messageId: `${runId}-answer`, role: "assistant" });
  call.send({ type: "TEXT_MESSAGE_CONTENT", messageId: `${runId}-answer`, delta: text });
};

export const say = (call: PlayedCall, text: string) =>
  call.send({ type: "TEXT_MESSAGE_CONTENT", messageId: `${call.input.runId}-answer`, delta: text });

export const finish = (call: PlayedCall) => {
  const { threadId, runId } = call.input;
  call.send({ type: "TEXT_MESSAGE_END", messageId: `${runId}-answer` });
  call.send({ type: "RUN_FINISHED", threadId, runId });
  call.end();
};

/** An app in a browser that shows a thread. */
export class App {
  readonly errors: string[] = [];
  readonly #core: InstanceType<typeof CopilotKitCore>;
  readonly agent: ReturnType<App["findAgent"]>;
  readonly threads;

  private constructor(core: InstanceType<typeof CopilotKitCore>, threadId: string) {
    this.#core = core;
    this.agent = this.findAgent();
    this.agent.threadId = threadId;
    this.threads = ɵcreateThreadStore({ fetch: (core as unknown as { ɵruntimeFetch: typeof fetch }).ɵruntimeFetch });
    this.threads.start();
    core.subscribe({ onError: ({ error, code }) => void this.errors.push(`${code}: ${String(error)}`) });
    onTestFinished(async () => {
      this.threads.stop();
      await this.agent.detachActiveRun();
      core.setRuntimeUrl(undefined);
    });
  }

  static async open(runtime: { url: string }, threadId: string, transport: "rest" | "single" = "rest"): Promise<App> {
    const core = new CopilotKitCore({ runtimeUrl: runtime.url, runtimeTransport: transport, deferInitialConnection: true });
    await new Promise<void>((resolve, reject) => {
      core.subscribe({
        onRuntimeConnectionStatusChanged: ({ status }) => void (String(status) === "connected" && resolve()),
        onError: ({ error }) => reject(error),
      });
      core.connect();
    });
    return new App(core, threadId);
  }

  private findAgent() {
    const agent = this.#core.getAgent("helper");
    if (!agent) {
      throw new Error("the runtime has no agent named helper");
    }
    return agent;
  }

  get runtimeUrl() {
    return this.#core.runtimeUrl;
  }

  /** Sends a message of the user. Resolves when the run has ended. */
  async send(id: string, content: string): Promise<void> {
    this.agent.addMessages([{ id, role: "user", content }]);
    await this.#core.runAgent({ agent: this.agent }).catch((error: unknown) => this.errors.push(String(error)));
  }

  async connect(): Promise<void> {
    await this.#core.connectAgent({ agent: this.agent }).catch((error: unknown) => this.errors.push(String(error)));
  }

  /** Asks the runtime to stop the run of the thread, as a button does. */
  async stop(): Promise<boolean> {
    const answer = await fetch(`${this.runtimeUrl}/agent/helper/stop/${this.agent.threadId}`, { method: "POST" });
    return ((await answer.json()) as { stopped: boolean }).stopped;
  }

  /** The list of threads, as the app shows it: "id name archived". */
  async list(includeArchived = false): Promise<string[]> {
    this.threads.setContext(null);
    this.threads.setContext({ runtimeUrl: this.runtimeUrl!, headers: {}, agentId: "helper", includeArchived });
    await vi.waitFor(() => expect(this.threads.getState().isLoading).toBe(true), { interval: 1 }).catch(() => {}); // it may be over
    await vi.waitFor(() => expect(this.threads.getState().isLoading).toBe(false), { timeout: 20_000, interval: 5 });
    const { threads, error } = this.threads.getState();
    if (error) {
      throw error;
    }
    return threads.map(({ id, name, archived }) => `${id} ${name} ${archived}`);
  }

  /** What the user sees. */
  get texts(): string[] {
    return this.agent.messages.map(({ content }) => String(content));
  }

  /** Waits until the user sees a text. */
  async shows(text: string): Promise<void> {
    await vi.waitFor(() => expect(this.texts, this.errors.join()).toContain(text), { timeout: 20_000, interval: 10 });
  }
}
