import type { StreamDurability } from "@tanstack/ai";
import { Database, Heartbeats, Poller, type DatabaseOptions } from "@pgagui/postgres";
import { RunStream } from "./stream.ts";

/** Options of {@link PostgresStreams}. */
export interface PostgresStreamsOptions extends DatabaseOptions {
  /**
   * Milliseconds between two polls for new events of other processes. The pause grows to 100 while there are none. One poll
   * serves all readers. Default: 50.
   */
  pollInterval?: number | undefined;
  /** Milliseconds for which a call is retried with backoff while the database does not answer. Default: 30 000. */
  retryTimeout?: number | undefined;
  /**
   * Milliseconds that an attempt waits for a connection, and then for the answer to a statement. Default: a third of
   * `retryTimeout`, but at least 1 000.
   */
  timeout?: number | undefined;
  /**
   * Milliseconds that a reader from the start (`-1`, `now`) waits for the first chunk of an unknown run, which another
   * process may be about to begin. Then its read fails. Default: 1 000.
   */
  firstChunkDeadlineMs?: number | undefined;
}

/** Options of {@link PostgresStreams.open}: the run, and where to resume. */
export interface OpenOptions {
  /**
   * The conversation. A thread id names a thread, it authorises nothing: first check that the user may see it.
   */
  threadId: string;
  /** The run. Default: the header `X-Run-Id` of the request, or its parameter `runId`, or else a new id. */
  runId?: string | undefined;
  /** The request, which has the offset to resume from: the header `Last-Event-ID`, or the parameter `offset`. */
  request?: Request | undefined;
  /** The offset to resume from, for callers without a request. `-1` is the start, `now` the current end. */
  offset?: string | null | undefined;
  /**
   * The RunAgentInput that the client posted. It is stored beside the run when that begins, so that restored
   * conversations and titles of threads have the messages of the user.
   */
  input?: object | undefined;
  /** The run that a new run continues from. Default: the run of the thread that began last. `""`: none. */
  parentRunId?: string | undefined;
  /**
   * Is aborted when the run is requested to stop (`agui.request_stop`, or `POST /threads/{id}/stop` of pgagui serve), in
   * any process, and when it was ended on behalf of its writer. Pass it to `chat`, too.
   */
  abortController?: AbortController | undefined;
}

/**
 * The stream of one run: a plain object, as those of memoryStream, and an UpsertableStreamDurability of TanStack AI from 0.58 on.
 * Offsets are the seqs of its chunks in the log of the thread.
 */
export interface PostgresStream extends StreamDurability, Pick<RunStream, "upsert"> {
  readonly threadId: string;
  readonly runId: string;
}

/** Durable streams in one database or in a cluster. Make one for the process: all its streams share connections, polls and heartbeats. */
export class PostgresStreams {
  readonly #database: Database;
  readonly #poller: Poller;
  readonly #heartbeats: Heartbeats;
  readonly #retryTimeout: number;
  readonly #firstChunkDeadline: number;

  /** Throws a TypeError if no database is given. It connects with the first call. */
  constructor(options: PostgresStreamsOptions) {
    this.#retryTimeout = options.retryTimeout ?? 30_000;
    this.#database = new Database({ ...options, timeout: options.timeout ?? Math.max(this.#retryTimeout / 3, 1_000) });
    this.#firstChunkDeadline = options.firstChunkDeadlineMs ?? 1_000;
    this.#poller = new Poller(this.#database, { interval: options.pollInterval ?? 50, forAtMost: this.#retryTimeout });
    this.#heartbeats = new Heartbeats(this.#database);
  }

  /** The stream of a run: the `adapter` of TanStack's responses. It connects with its first call. */
  open(options: OpenOptions): PostgresStream {
    const stream = new RunStream({
      database: this.#database,
      poller: this.#poller,
      heartbeats: this.#heartbeats,
      retryTimeout: this.#retryTimeout,
      firstChunkDeadline: this.#firstChunkDeadline,
      threadId: checkedId("threadId", options.threadId),
      runId: checkedId("runId", options.runId ?? fromRequest(options.request, "X-Run-Id", "runId") ?? crypto.randomUUID()),
      offset: options.offset ?? fromRequest(options.request, "Last-Event-ID", "offset"),
      input: options.input && JSON.stringify(options.input),
      parentRunId: options.parentRunId,
      abortController: options.abortController,
    });
    return {
      threadId: stream.threadId,
      runId: stream.runId,
      resumeFrom: () => stream.resumeFrom(),
      append: (chunks) => stream.append(chunks),
      upsert: (entries) => stream.upsert(entries),
      read: (offset, signal) => stream.read(offset, signal),
      snapshot: () => stream.snapshot(),
      close: () => stream.close(),
    };
  }

  /** Stops polls and heartbeats, and ends the pool, unless the caller gave it. Close the streams first. */
  async close(): Promise<void> {
    this.#poller.stop(new Error("pgagui: the streams were closed"));
    this.#heartbeats.stop();
    await this.#database.close();
  }
}

function fromRequest(request: Request | undefined, header: string, parameter: string): string | null {
  return request ? request.headers.get(header) || new URL(request.url).searchParams.get(parameter) : null;
}

function checkedId(name: string, id: string): string {
  if (typeof id !== "string" || id === "") {
    throw new TypeError(`pgagui: ${name} is ${JSON.stringify(id)} (expected a string that is not empty)`);
  }
  return id;
}
