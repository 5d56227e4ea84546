import type { AgentRunner } from "@copilotkit/runtime/v2";
import { Database, Heartbeats, isUnknown, Poller, retry, type AguiEvent } from "@pgagui/postgres";
import type pg from "pg";
import { Observable, ReplaySubject } from "rxjs";
import { isObject, textOf } from "./events.ts";
import { ClientFilter } from "./filter.ts";
import { guarded, logToConsole, messageOf, Outage, type Log, type LogEntry } from "./log.ts";
import { Recording } from "./recording.ts";
import { Stream } from "./stream.ts";

export type { LogEntry };

/** Where the threads are, and whose. */
export interface DatabaseOptions {
  /** A pool of pg, which its owner ends. Either this or `connectionString` is required. */
  pool?: pg.Pool | undefined;
  /** The address of the database, for a pool of its own, which `close` ends. */
  connectionString?: string | undefined;
  /**
   * The tenant whose threads are meant: a scope, or a function that returns the scope of the request at hand, for instance from
   * an AsyncLocalStorage. The runner calls it once in each of its methods, before they return. It must throw if there is no
   * tenant. Each transaction sets `agui.scope`, for row-level security. The default is the scope '', for databases without
   * tenants.
   */
  scope?: string | (() => string) | undefined;
}

/** The settings of a {@link PgaguiAgentRunner}. */
export interface RunnerOptions extends DatabaseOptions {
  /**
   * The interval of heartbeats in milliseconds, which also bring requests to stop from other processes. The default is 1000. It
   * must be less than a third of the database's setting heartbeat_lease (30 seconds).
   */
  heartbeatInterval?: number | undefined;
  /** The shortest pause between two polls for new events of other processes, in milliseconds. The default is 20. */
  pollInterval?: number | undefined;
  /**
   * How long the runner waits until an agent ends after a stop, in milliseconds. Then the run ends without it. The default is
   * 5000.
   */
  stopTimeout?: number | undefined;
  /** Receives failures. The default is the console. */
  log?: ((entry: LogEntry) => void) | undefined;
}

type Request<Method extends keyof AgentRunner> = AgentRunner[Method] extends (request: infer Parameter) => unknown ? Parameter : never;
type Answer<Method extends keyof AgentRunner> = AgentRunner[Method] extends (request: never) => infer Result ? Result : never;

/** How long a statement waits for its answer, in milliseconds. */
const statementTimeout = 30_000;
/** How long a call of the runtime is retried, in milliseconds. An attempt has a third of that. */
const callTimeout = 30_000;

/**
 * An AgentRunner of CopilotKit's runtime whose runs are in PostgreSQL. Any process serves any thread. A run that begins in one
 * process can be followed and stopped in all, and a process that dies leaves nothing locked: its runs end when their lease does
 * (the database's setting heartbeat_lease, 30 seconds).
 */
export class PgaguiAgentRunner implements AgentRunner {
  readonly #options: RunnerOptions;
  readonly #database: Database;
  readonly #log: Log;
  readonly #heartbeats: Heartbeats;
  readonly #poller: Poller;
  readonly #recordings = new Map<Recording, Promise<void>>();
  readonly #streams = new Set<AbortController>();
  readonly #closing = new AbortController();

  /** Errors: a TypeError if neither a pool nor a connectionString is given. It makes no connection. */
  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#log = guarded(options.log ?? logToConsole);
    this.#database = new Database({ pool: options.pool, connectionString: options.connectionString, timeout: statementTimeout });
    this.#heartbeats = new Heartbeats(this.#database, { interval: options.heartbeatInterval, ...new Outage(this.#log, "heartbeats").listeners });
    this.#poller = new Poller(this.#database, { interval: options.pollInterval ?? 20, ...new Outage(this.#log, "polls").listeners });
  }

  /**
   * Runs an agent, and stores its events. The run begins at once and belongs to the process: it continues without subscribers.
   * Each event is passed on after it is stored, as stored; see the README for what the runner leaves out and adds.
   *
   * The parent of the run is `input.parentRunId` or `input.forwardedProps.pgagui.parentRunId` ('' for none), or else the head.
   *
   * Errors, of the Observable: "Thread already running" if another run is in progress; those of the database if the run cannot
   * begin. What fails later, the agent or the database, is a RUN_ERROR.
   */
  run(request: Request<"run">): Answer<"run"> {
    const events = new ReplaySubject<AguiEvent>();
    try {
      this.#closing.signal.throwIfAborted();
      this.#start(request, this.#here(), events);
    } catch (error) {
      events.error(error);
    }
    return events.asObservable() as unknown as Answer<"run">;
  }

  /**
   * Sends a thread: its history as a snapshot, then the events of the run in progress, whichever process writes it. It completes
   * when no run is in progress; at once, and empty, if the thread does not exist. If the process of the run is gone, or the
   * runner is closed, it ends early with a RUN_ERROR.
   */
  connect(request: Request<"connect">): Answer<"connect"> {
    const database = this.#here();
    const events = new Observable<AguiEvent>((subscriber) => {
      const end = new AbortController();
      this.#streams.add(end);
      if (this.#closing.signal.aborted) {
        end.abort(this.#closing.signal.reason);
      }
      const stream = new Stream(database, this.#poller, {
        threadId: request.threadId, send: (event) => subscriber.next(event), signal: end.signal, log: this.#log,
      });
      void stream.serve().then(() => subscriber.complete());
      return () => {
        this.#streams.delete(end);
        end.abort();
      };
    });
    return events as unknown as Answer<"connect">;
  }

  /** Whether a run of the thread is in progress, in any process that is alive. */
  async isRunning({ threadId }: Request<"isRunning">): Promise<boolean> {
    const database = this.#here().within(callTimeout / 3);
    const [row] = await retry(() => database.query<{ is_running: boolean }>(
      `select
        exists (select from agui.claims(thread_id => $1, scope => $2))
        or exists (
          select
          from agui.attach(thread_id => $1, shape => 'events', at_seq => 0, scope => $2) as attached, unnest(attached.running) as run (run_id)
          where not (agui.status($1, run.run_id, $2)).is_stale
        ) as is_running`,
      [threadId, database.scope],
    ), { forAtMost: callTimeout });
    return row!.is_running;
  }

  /**
   * Requests a run to stop; without a run id, all runs of the thread that are in progress. Returns whether there was one. The
   * process that runs the agent aborts it, with its next heartbeat, and ends the run.
   */
  async stop({ threadId, runId }: Request<"stop">): Promise<boolean> {
    const database = this.#here().within(callTimeout / 3);
    try {
      const [row] = await retry(() => database.query<{ runs: number }>(
        "select agui.request_stop(thread_id => $1, run_id => $2, reason => 'by the user', scope => $3) as runs",
        [threadId, runId ?? null, database.scope],
      ), { forAtMost: callTimeout });
      if (row!.runs === 0) {
        return false;
      }
    } catch (error) {
      if (isUnknown(error)) {
        return false;
      }
      throw error;
    }
    for (const recording of this.#recordings.keys()) { // those of this process need not wait for a heartbeat
      if (recording.scope === database.scope && recording.threadId === threadId && (runId ?? recording.runId) === recording.runId) {
        recording.stop({ isStopped: true });
      }
    }
    return true;
  }

  /**
   * Resolves when no run of this process is in progress and all events are stored: for `waitUntil` on serverless platforms, and
   * before `close`. It does not reject.
   */
  async idle(): Promise<void> {
    while (this.#recordings.size > 0) {
      await Promise.all(this.#recordings.values());
    }
  }

  /**
   * Ends the runs of this process as failed, with their agents, and the streams of connect; then the pool, unless the caller gave
   * it. It waits until the ends are stored.
   */
  async close(): Promise<void> {
    const reason = "the process shuts down";
    this.#closing.abort(new Error(reason));
    this.#streams.forEach((stream) => stream.abort(this.#closing.signal.reason));
    for (const recording of this.#recordings.keys()) {
      recording.stop({ isStopped: false, message: reason });
    }
    await this.idle();
    await this.#database.close();
  }

  /** The database, for the tenant of the request at hand. */
  #here(): Database {
    return this.#database.inScope(scopeOf(this.#options));
  }

  #start({ threadId, agent, input, persistedInputMessages }: Request<"run">, database: Database, to: ReplaySubject<AguiEvent>): void {
    const { runId } = input;
    const filter = new ClientFilter(threadId, runId);
    let giveUp = () => {};
    const agentIsOver = new Promise<{ message?: string }>((resolve) => (giveUp = () => resolve({})));
    const recording: Recording = new Recording(database, this.#heartbeats, {
      threadId, runId, agentId: agent.agentId, parentRunId: parentOf(input), log: this.#log,
      input: persistedInputMessages ? { ...input, messages: persistedInputMessages } : input,
      onStored: (events) => {
        events.forEach((event) => filter.push(event).forEach((sent) => to.next(sent)));
        this.#poller.wake();
      },
      onStop: () => {
        try {
          agent.abortRun();
        } catch (error) {
          this.#log({ level: "warn", message: "the agent could not be aborted", threadId, runId, error });
        }
        const isUrgent = recording.failure !== undefined || this.#closing.signal.aborted;
        setTimeout(giveUp, isUrgent ? 0 : this.#options.stopTimeout ?? 5000).unref();
      },
    });
    const record = async () => {
      await recording.claim();
      const call = async () => {
        try {
          await agent.runAgent(input, { onEvent: ({ event }) => recording.push(event as unknown as AguiEvent) });
          return {};
        } catch (error) {
          return { message: messageOf(error) };
        }
      };
      await recording.finish(recording.isStopped ? {} : await Promise.race([call(), agentIsOver]));
      const failure = recording.failure && { message: `The run could not be stored: ${recording.failure.message}`, code: "NOT_STORED" };
      filter.end(failure).forEach((event) => to.next(event));
    };
    const recorded = record().then(() => to.complete(), (error: unknown) => to.error(error)).finally(() => this.#recordings.delete(recording));
    this.#recordings.set(recording, recorded);
  }
}

/** The scope of the request at hand. */
export function scopeOf({ scope = "" }: DatabaseOptions): string {
  const own = typeof scope === "function" ? scope() : scope;
  if (typeof own !== "string") {
    throw new TypeError("pgagui: the function scope returned no string (return the scope of the request, or throw)");
  }
  return own;
}

/** The parent that a client names: '' for none; undefined for the head. */
function parentOf(input: object): string | undefined {
  const { forwardedProps } = input as { forwardedProps?: unknown };
  const props = isObject(forwardedProps) && isObject(forwardedProps.pgagui) ? forwardedProps.pgagui : {};
  return textOf(input, "parentRunId") ?? textOf(props, "parentRunId");
}
