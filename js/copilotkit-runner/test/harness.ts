// Runners of several processes, what a client receives, and what is in the database.

import pg from "pg";
import { onTestFinished } from "vitest";
import { PgaguiAgentRunner, type RunnerOptions } from "../src/index.ts";
import type { AguiEvent } from "@pgagui/postgres";
import { PlayedAgent, request, talk } from "./agent.ts";

export * from "./agent.ts";

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
  /** The events, without the inputs that RUN_STARTED carries. */
  events: AguiEvent[];
  inputs: unknown[];
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
    events: [], inputs: [], error: undefined, done: Promise.resolve(), leave: () => subscription.unsubscribe(),
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
      next: ({ input, ...event }: AguiEvent) => {
        received.events.push(event);
        received.inputs.push(...(input === undefined ? [] : [input]));
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

/** A pool that records the statements that it runs, and fails some of them. */
export class CountingPool extends pg.Pool {
  readonly statements: string[] = [];
  /** Returns the error of a statement, if it fails without being sent. */
  fail: (text: string, values: unknown[]) => Error | undefined = () => undefined;

  constructor(options: pg.PoolConfig) {
    super(options);
    this.on("error", () => {}); // the database is dropped while connections end
    this.on("connect", (client) => {
      const query = client.query.bind(client) as (...parameters: unknown[]) => unknown;
      Object.assign(client, {
        query: (...parameters: unknown[]) => {
          const { text, values = [] } = parameters[0] as { text: string; values?: unknown[] };
          this.statements.push(text);
          const failure = this.fail(text, values);
          return failure ? Promise.reject(failure) : query(...parameters);
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
