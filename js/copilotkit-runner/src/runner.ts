import type { AgentRunner } from "@copilotkit/runtime/v2";
import { Database, Heartbeats, isUnknown, Poller, retry, type AguiEvent, type ClusterNode } from "@pgagui/postgres";
import type pg from "pg";
import { Observable, ReplaySubject } from "rxjs";
import { AnswerRefused, answerOf } from "./answer.ts";
import { isObject, textOf } from "./events.ts";
import { ClientFilter } from "./filter.ts";
import { guarded, logToConsole, messageOf, Outage, type Log, type LogEntry } from "./log.ts";
import { Recording } from "./recording.ts";
import { Stream, type CustomEvents } from "./stream.ts";

export type { CustomEvents, LogEntry };

/** Where the threads are, and whose. */
export interface DatabaseOptions {
  /** A pool of pg, which its owner ends. This, `connectionString` or `nodes` is required. */
  pool?: pg.Pool | undefined;
  /** The address of the database, for a pool of its own, which `close` ends. */
  connectionString?: string | undefined;
  /** The databases of a cluster, each with its name there and with one of the above. */
  nodes?: ClusterNode[] | undefined;
  /**
   * The tenant whose threads are meant: a scope, or a function that returns the scope of the request at hand, for instance from
   * an AsyncLocalStorage. The runner calls it once in each of its methods, before they return. It must throw if there is no
   * tenant. Each transaction sets `agui.scope`, for row-level security. The default is the scope '', for databases without
   * tenants.
   */
  scope?: string | (() => string) | undefined;
  /**
   * The user whose threads `threadHooks` lists: an id, or a function that returns that of the request at hand, called as `scope`
   * is. The runner stores it with each thread that a run begins, in the member `user` of its metadata. It narrows lists and
   * protects nothing: all users of a scope can use a thread whose id they know. Without it, lists show all threads of the scope.
   */
  user?: string | (() => string | undefined) | undefined;
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
  /**
   * What a run does if another run of its thread is in progress, in any process: it fails with "Thread already running" (`throw`,
   * the default), or it requests the other run to stop and begins when that has ended (`supersede`).
   */
  onConcurrentRun?: "throw" | "supersede" | undefined;
  /**
   * The runs whose CUSTOM events `connect` repeats behind the messages and the state, the last 100 in 1 MiB: the last run (`head`,
   * the default), also those before it (`lineage`), or none. A question (`on_interrupt`) that is answered is not repeated.
   */
  customEvents?: CustomEvents | undefined;
  /** Receives failures. The default is the console. */
  log?: ((entry: LogEntry) => void) | undefined;
}

type Request<Method extends keyof AgentRunner> = AgentRunner[Method] extends (request: infer Parameter) => unknown ? Parameter : never;
type Answer<Method extends keyof AgentRunner> = AgentRunner[Method] extends (request: never) => infer Result ? Result : never;

/** How long a statement waits for its answer, in milliseconds. */
const statementTimeout = 30_000;
/** How long a call of the runtime is retried, in milliseconds. An attempt has a third of that. */
const callTimeout = 30_000;
/** The longest time that setTimeout takes, in milliseconds. A longer one would be none. */
const longestTimer = 2 ** 31 - 1;

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

  /** Errors: a TypeError if no database is given. It makes no connection. */
  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#log = guarded(options.log ?? logToConsole);
    this.#database = new Database({ ...placeOf(options), timeout: statementTimeout });
    this.#heartbeats = new Heartbeats(this.#database, { interval: options.heartbeatInterval, ...new Outage(this.#log, "heartbeats").listeners });
    this.#poller = new Poller(this.#database, { interval: options.pollInterval ?? 20, ...new Outage(this.#log, "polls").listeners });
  }

  /**
   * Runs an agent, and stores its events. The run begins at once and belongs to the process: it continues without subscribers.
   * Each event is passed on after it is stored, as stored; see the README for what the runner leaves out and adds.
   *
   * RUN_STARTED carries the input, with those messages that the conversation does not have yet.
   *
   * The parent of the run is `input.parentRunId` or `input.forwardedProps.pgagui.parentRunId` ('' for none), or else the head.
   *
   * An answer (`resume`, or `forwardedProps.command.resume`) with the id of the run that asks becomes a run of its own, with an id
   * that is made of both. The same request sends what `connect` does. An answer to what is answered is refused: RUN_ERROR, unless
   * the input names the parent.
   *
   * Errors: "Thread already running" is thrown if another run of this process is in progress. All others are a RUN_ERROR, for
   * the runtime tells clients no error of the Observable: `NOT_STORED` if the run cannot begin.
   */
  run(request: Request<"run">): Answer<"run"> {
    const events = new ReplaySubject<AguiEvent>();
    let database: Database;
    let user: string | undefined;
    try {
      this.#closing.signal.throwIfAborted();
      database = this.#here();
      user = userOf(this.#options);
    } catch (error) {
      refuse(events, error);
      return events.asObservable() as unknown as Answer<"run">;
    }
    // The same answer follows the run of the first one.
    const rivals = answerOf(request.input) ? [] : this.#recordingsOf(database.scope, request.threadId);
    if (rivals.length > 0 && this.#options.onConcurrentRun !== "supersede") {
      throw new Error("Thread already running");
    }
    rivals.forEach((rival) => rival.stop({ isStopped: true }));
    this.#start(request, { database, user, before: rivals.map((rival) => this.#recordings.get(rival)!), to: events });
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
      void this.#serve(database, request.threadId, { send: (event) => subscriber.next(event), end }).then(() => subscriber.complete());
      return () => end.abort();
    });
    return events as unknown as Answer<"connect">;
  }

  /** Sends a thread to a client, until no run is in progress or the stream is aborted. */
  async #serve(database: Database, threadId: string, { send, end }: { send: (event: AguiEvent) => void; end: AbortController }): Promise<void> {
    this.#streams.add(end);
    if (this.#closing.signal.aborted) {
      end.abort(this.#closing.signal.reason);
    }
    const customEvents = this.#options.customEvents ?? "head";
    await new Stream(database, this.#poller, { threadId, send, signal: end.signal, log: this.#log, customEvents }).serve();
    this.#streams.delete(end);
  }

  /** Whether a run of the thread is in progress, in any process that is alive. */
  async isRunning({ threadId }: Request<"isRunning">): Promise<boolean> {
    const database = this.#here().ofThread(threadId).within(callTimeout / 3);
    if (this.#recordingsOf(database.scope, threadId).length > 0) {
      return true; // also before it is claimed
    }
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
    const database = this.#here().ofThread(threadId).within(callTimeout / 3);
    const isMeant = (recording: Recording) => (runId ?? recording.runId) === recording.runId;
    const isBeginning = this.#recordingsOf(database.scope, threadId).some((recording) => isMeant(recording) && !recording.isClaimed);
    let runs = 0;
    try {
      const [row] = await retry(() => database.query<{ runs: number }>(
        "select agui.request_stop(thread_id => $1, run_id => $2, reason => 'by the user', scope => $3) as runs",
        [threadId, runId ?? null, database.scope],
      ), { forAtMost: callTimeout });
      runs = row!.runs;
    } catch (error) {
      if (!isUnknown(error)) {
        throw error;
      }
    }
    const isStopped = runs > 0 || isBeginning;
    if (isStopped) { // those of this process need not wait for a heartbeat
      this.#recordingsOf(database.scope, threadId).filter(isMeant).forEach((recording) => recording.stop({ isStopped: true }));
    }
    return isStopped;
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

  /** The runs of a thread that are in progress in this process. */
  #recordingsOf(scope: string, threadId: string): Recording[] {
    return [...this.#recordings.keys()].filter((recording) => recording.scope === scope && recording.threadId === threadId);
  }

  /** Begins a run when the runs before it have ended. */
  #start(
    { threadId, agent, input, persistedInputMessages }: Request<"run">,
    { database, user, before, to }: { database: Database; user: string | undefined; before: Promise<void>[]; to: ReplaySubject<AguiEvent> },
  ): void {
    let filter: ClientFilter; // from the claim on
    const messages: object[] = persistedInputMessages ?? input.messages ?? [];
    let known: Promise<Map<string, string>>; // the messages before the run
    let giveUp = () => {};
    const agentIsOver = new Promise<{ message?: string }>((resolve) => (giveUp = () => resolve({})));
    const recording: Recording = new Recording(database, this.#heartbeats, {
      threadId, runId: input.runId, agentId: agent.agentId, user, parentRunId: parentOf(input), log: this.#log,
      input: persistedInputMessages ? { ...input, messages } : input,
      onStored: async (events, firstSeq) => {
        this.#poller.wake();
        for (const [i, event] of events.entries()) {
          let passed = event;
          if (event.type === "RUN_STARTED") {
            const before = await known;
            if (!isObject(event.input)) {
              const added = messages.filter((message) => !before.has(textOf(message, "id") ?? ""));
              passed = { ...event, input: { ...input, runId: recording.runId, messages: added } };
            }
          }
          filter.push(passed, firstSeq + i).forEach((sent) => to.next(sent));
        }
      },
      onStop: () => {
        try {
          agent.abortRun();
        } catch (error) {
          this.#log({ level: "warn", message: "the agent could not be aborted", threadId, runId: recording.runId, error });
        }
        const isUrgent = recording.failure !== undefined || this.#closing.signal.aborted;
        setTimeout(giveUp, isUrgent ? 0 : Math.min(this.#options.stopTimeout ?? 5000, longestTimer)).unref();
      },
    });
    const call = async () => {
      try {
        await agent.runAgent({ ...input, runId: recording.runId }, { onEvent: ({ event }) => recording.push(event as unknown as AguiEvent) });
        return {};
      } catch (error) {
        return { message: messageOf(error) };
      }
    };
    const record = async () => {
      let isNew = true;
      try {
        await Promise.all(before);
        isNew = await recording.claim({ supersede: this.#options.onConcurrentRun === "supersede" });
        if (isNew) {
          filter = new ClientFilter(threadId, recording.runId);
          known = this.#messagesBefore(recording, database).then((before) => {
            filter.know(before);
            return before;
          });
          await recording.finish(recording.isStopped ? {} : await Promise.race([call(), agentIsOver]));
        }
      } finally {
        this.#recordings.delete(recording); // before the end is passed on: the client may then begin the next run
      }
      if (!isNew) {
        return this.#serve(database, threadId, { send: (event) => to.next(event), end: new AbortController() });
      }
      const failure = recording.failure && { message: `The run could not be stored: ${recording.failure.message}`, code: "NOT_STORED" };
      filter.end(failure).forEach((event) => to.next(event));
    };
    this.#recordings.set(recording, record().then(() => to.complete(), (error: unknown) => {
      this.#log({ level: "warn", message: "a run was refused", threadId, runId: recording.runId, error });
      refuse(to, error);
    }));
  }

  /** Returns the ids and roles of the messages before a run. If they cannot be read, none: clients have them. */
  async #messagesBefore({ threadId, runId, parentRunId }: Recording, database: Database): Promise<Map<string, string>> {
    if (parentRunId === "") {
      return new Map();
    }
    try {
      const rows = await retry(() => database.ofThread(threadId).within(callTimeout / 3).query<{ message_id: string; role: string }>(
        "select message_id, role from agui.messages(thread_id => $1, run_id => $2, scope => $3) where message_id is not null",
        [threadId, parentRunId, database.scope],
      ), { forAtMost: callTimeout });
      return new Map(rows.map(({ message_id: id, role }) => [id, role]));
    } catch (error) {
      this.#log({ level: "warn", message: "the conversation before a run could not be read", threadId, runId, error });
      return new Map();
    }
  }
}

/** Ends the events of a run that cannot begin. */
function refuse(events: ReplaySubject<AguiEvent>, error: unknown): void {
  events.next({ type: "RUN_ERROR", message: messageOf(error), code: error instanceof AnswerRefused ? error.code : "NOT_STORED" });
  events.complete();
}

/** The options that say where the database is. */
export function placeOf({ pool, connectionString, nodes }: DatabaseOptions): Pick<DatabaseOptions, "pool" | "connectionString" | "nodes"> {
  return { pool, connectionString, nodes };
}

/** The scope of the request at hand. */
export function scopeOf({ scope = "" }: DatabaseOptions): string {
  const own = typeof scope === "function" ? scope() : scope;
  if (typeof own !== "string") {
    throw new TypeError("pgagui: the function scope returned no string (return the scope of the request, or throw)");
  }
  return own;
}

/** The user of the request at hand. */
export function userOf({ user }: DatabaseOptions): string | undefined {
  return typeof user === "function" ? user() : user;
}

/** The parent that a client names: '' for none; undefined for the head. */
function parentOf(input: object): string | undefined {
  const { forwardedProps } = input as { forwardedProps?: unknown };
  const props = isObject(forwardedProps) && isObject(forwardedProps.pgagui) ? forwardedProps.pgagui : {};
  return textOf(input, "parentRunId") ?? textOf(props, "parentRunId");
}
