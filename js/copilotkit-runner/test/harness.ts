// Agents that a test plays, runners of several processes, and what a client receives.

import pg from "pg";
import { onTestFinished } from "vitest";
import { PgaguiAgentRunner, type RunnerOptions } from "../src/index.ts";
import type { AguiEvent } from "../src/events.ts";

/** An agent whose events the test sends. */
export class PlayedAgent {
  agentId = "helper";
  isAborted = false;
  /** Resolves when the runner has called the agent. */
  readonly called: Promise<void>;
  #call!: () => void;
  #end!: (error?: Error) => void;
  #send!: (event: AguiEvent) => Promise<void>;
  readonly #abort: "ends" | "ignored";

  constructor(abort: "ends" | "ignored" = "ends") {
    this.#abort = abort;
    this.called = new Promise((resolve) => (this.#call = resolve));
  }

  runAgent(_input: unknown, subscriber: { onEvent(parameters: { event: AguiEvent }): void | Promise<void> }): Promise<void> {
    this.#send = async (event) => subscriber.onEvent({ event });
    return new Promise((resolve, reject) => {
      this.#end = (error) => (error ? reject(error) : resolve());
      this.#call();
    });
  }

  abortRun(): void {
    this.isAborted = true;
    if (this.#abort === "ends") {
      this.#end?.(new Error("aborted"));
    }
  }

  /** Sends events. Resolves when the runner takes more. */
  async send(...events: AguiEvent[]): Promise<void> {
    await this.called;
    for (const event of events) {
      await this.#send(event);
    }
  }

  async end(error?: Error): Promise<void> {
    await this.called;
    this.#end(error);
  }
}

type Run = Parameters<PgaguiAgentRunner["run"]>[0];

/** What the runner is called with. */
export function request(threadId: string, runId: string, agent: PlayedAgent, more: object = {}): Run {
  return { threadId, agent: agent as unknown as Run["agent"], input: inputOf(threadId, runId, more) as Run["input"] };
}

export function inputOf(threadId: string, runId: string, more: object = {}): object {
  return {
    threadId, runId, state: {}, messages: [{ id: `${runId}-question`, role: "user", content: "Hello?" }], tools: [], context: [],
    forwardedProps: {}, ...more,
  };
}

export const started = (threadId: string, runId: string): AguiEvent => ({ type: "RUN_STARTED", threadId, runId });
export const finished = (threadId: string, runId: string): AguiEvent => ({ type: "RUN_FINISHED", threadId, runId });
export const open = (messageId: string): AguiEvent => ({ type: "TEXT_MESSAGE_START", messageId, role: "assistant" });
export const token = (messageId: string, delta: string): AguiEvent => ({ type: "TEXT_MESSAGE_CONTENT", messageId, delta });
export const close = (messageId: string): AguiEvent => ({ type: "TEXT_MESSAGE_END", messageId });

/** A whole run with one message. */
export const talk = (threadId: string, runId: string, text: string): AguiEvent[] => [
  started(threadId, runId), open(`${runId}-answer`), token(`${runId}-answer`, text), close(`${runId}-answer`), finished(threadId, runId),
];

/** Runs an agent that sends a whole run. */
export async function talked(runner: PgaguiAgentRunner, threadId: string, runId: string, text: string, more: object = {}): Promise<Received> {
  const agent = new PlayedAgent();
  const received = receive(runner.run(request(threadId, runId, agent, more)));
  await agent.send(...talk(threadId, runId, text));
  await agent.end();
  await received.done;
  return received;
}

/** A runner of a process of its own, as far as the database can tell. It is closed after the test. */
export function process(options: RunnerOptions): PgaguiAgentRunner {
  const runner = new PgaguiAgentRunner({ log: () => {}, ...options });
  onTestFinished(() => runner.close());
  return runner;
}

export interface Received {
  events: AguiEvent[];
  error: unknown;
  /** Resolves when the stream has completed or failed. */
  done: Promise<void>;
  /** Resolves when an event has come. */
  until(type: string, count?: number): Promise<void>;
  leave(): void;
}

/** Collects what an Observable sends. */
export function receive(stream: { subscribe(observer: object): { unsubscribe(): void } }): Received {
  let changed = () => {};
  let isDone = false;
  const received: Received = {
    events: [], error: undefined, done: Promise.resolve(), leave: () => subscription.unsubscribe(),
    async until(type, count = 1) {
      while (received.events.filter((event) => event.type === type).length < count) {
        if (isDone) {
          throw new Error(`the stream ended before ${type}: ${JSON.stringify(received.events)} ${String(received.error)}`);
        }
        await new Promise<void>((resolve) => (changed = resolve));
      }
    },
  };
  let subscription!: { unsubscribe(): void };
  received.done = new Promise((resolve) => {
    const end = () => {
      isDone = true;
      changed();
      resolve();
    };
    subscription = stream.subscribe({
      next: (event: AguiEvent) => {
        received.events.push(event);
        changed();
      },
      error: (error: unknown) => {
        received.error = error;
        end();
      },
      complete: end,
    });
  });
  return received;
}

export const types = (events: AguiEvent[]): string[] => events.map((event) => event.type);

/** A pool that records the statements that it runs. */
export class CountingPool extends pg.Pool {
  readonly statements: string[] = [];

  constructor(options: pg.PoolConfig) {
    super(options);
    this.on("connect", (client) => {
      const query = client.query.bind(client) as (...parameters: unknown[]) => unknown;
      Object.assign(client, {
        query: (...parameters: unknown[]) => {
          const [first] = parameters;
          this.statements.push(typeof first === "string" ? first : (first as { text: string }).text);
          return query(...parameters);
        },
      });
    });
    onTestFinished(() => this.end());
  }

  calls(name: string): number {
    return this.statements.filter((statement) => statement.includes(name)).length;
  }
}

/** Reads and writes the database as an operator does. */
export async function sql<Row extends pg.QueryResultRow>(databaseURL: string, statement: string, values: unknown[] = []): Promise<Row[]> {
  const client = new pg.Client(databaseURL);
  await client.connect();
  try {
    return (await client.query<Row>(statement, values)).rows;
  } finally {
    await client.end();
  }
}

/** The events of a thread, as the log has them. */
export async function logOf(databaseURL: string, threadId: string, scope = ""): Promise<AguiEvent[]> {
  const rows = await sql<{ payload: AguiEvent }>(databaseURL, "select payload from agui.events($1, scope => $2)", [threadId, scope]);
  return rows.map((row) => row.payload);
}
