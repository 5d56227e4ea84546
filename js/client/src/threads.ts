// The threads of a server: its REST API, as far as user interfaces need it.

import { randomUUID } from "@ag-ui/client";
import type { components, operations } from "./openapi.ts";
import { Backoff, demandType, overNetwork, send, type RequestOptions, type RetryOptions } from "./requests.ts";
import { follow } from "./stream.ts";

type Schemas = components["schemas"];

/** A thread as lists show it. */
export type Thread = Schemas["Thread"];
/** A page of threads. `cursor` names the next one, if `hasMore`. */
export type ThreadPage = Schemas["ThreadPage"];
/** A run in the tree of a thread. */
export type Run = Schemas["Run"];
/** The state of a run and of its writer. */
export type RunStatus = Schemas["RunStatus"];
/** A leaf of the tree of a thread. */
export type Branch = Schemas["Branch"];
/** Messages, state and interrupts at some point. */
export type Conversation = Schemas["Conversation"];

/** An interrupt that waits for an answer. */
export type WaitingInterrupt = Schemas["WaitingInterrupt"];
/** What happened in a period. */
export type Report = Schemas["Report"];
/** A message whose text matches a search. */
export type FoundMessage = Schemas["FoundMessage"];
/**
 * A run that began, ended or changed; or, if `isErased`, a thread that was erased, with the `threadUid` of its runs.
 * `position` goes on behind it.
 */
export type Change = Schemas["Change"];

/** Which threads a list has, and in which part of it. */
export type ThreadFilter = NonNullable<operations["listThreads"]["parameters"]["query"]>;
/** A point in a thread: the end of `run`, or of the head; or an earlier one, by `at_seq` or `at_time`. */
export type Point = NonNullable<operations["getConversation"]["parameters"]["query"]>;
/** What a search looks at, besides the words. */
export type SearchFilter = Omit<operations["search"]["parameters"]["query"], "q">;
/** Where the feed goes on: behind `after`, or at the place of a `consumer`. */
export type FeedPlace = Pick<NonNullable<operations["getFeed"]["parameters"]["query"]>, "after" | "consumer" | "limit">;
/** What changes in a thread; members that are missing stay as they are. */
export type ThreadChanges = NonNullable<operations["updateThread"]["requestBody"]>["content"]["application/json"];
/** Where a branch begins: behind `parentRunId`, or before the run that brought `beforeMessageId`. */
export type ForkPoint = Omit<operations["forkThread"]["requestBody"]["content"]["application/json"], "runId"> & {
  /** The id of the run that the fork makes. Default: a random one. */
  runId?: string;
};

/** Which server, and as whom. */
export interface ThreadsConfig extends RequestOptions {
  /** The address of the server, for example `https://example.com/pgagui`. */
  url: string;
  /** Default: 5 attempts. */
  retry?: RetryOptions;
}

/** Options of each call. */
export interface CallOptions {
  /** Ends the call with the reason of the signal. */
  signal?: AbortSignal;
}

/**
 * The threads of a server. All calls are idempotent: while the server cannot be reached or is busy, they are retried
 * with backoff, in up to `retry.maxAttempts` attempts.
 *
 * @throws {@link PgaguiError} from each call, with the HTTP `status` and the `problem` if the server refused it: 404 if
 * there is no such thread or run in the scope of the token, 410 if the thread was erased.
 */
export class Threads {
  readonly #config: ThreadsConfig;
  readonly #seen: (threadId: string) => string | undefined;
  #written: string | undefined;

  /** `seen` returns the id of the last frame that the client has received of a thread. */
  constructor(config: ThreadsConfig, seen: (threadId: string) => string | undefined = () => undefined) {
    this.#config = config;
    this.#seen = seen;
  }

  /** Lists threads, those with the latest activity first. */
  list(filter: ThreadFilter = {}, options?: CallOptions): Promise<ThreadPage> {
    return this.#call("GET", undefined, `/threads${queryOf(filter)}`, undefined, options);
  }

  /** Lists what waits for an answer in all threads, those asked first first. */
  async waiting(filter: { agent?: string; limit?: number } = {}, options?: CallOptions): Promise<WaitingInterrupt[]> {
    return (await this.#call<{ waiting: WaitingInterrupt[] }>("GET", undefined, `/waiting${queryOf(filter)}`, undefined, options)).waiting;
  }

  /** Returns what happened in all threads since a time; by default, in the last seven days. */
  report(since?: Date, options?: CallOptions): Promise<Report> {
    return this.#call("GET", undefined, `/report${queryOf({ since: since?.toISOString() })}`, undefined, options);
  }

  /**
   * Returns the messages of all threads whose texts match, the best first: words, "words in order", or, -not. 501 if the
   * operator of the server has not turned search on.
   */
  search(query: string, filter: SearchFilter = {}, options?: CallOptions): Promise<{ messages: FoundMessage[]; cursor?: string }> {
    return this.#call("GET", undefined, `/search${queryOf({ q: query, ...filter })}`, undefined, options);
  }

  /**
   * Returns a page of the runs of all threads that began, ended or changed, each at least once: all runs first, then those
   * that change, and threads that are erased. No change: nothing has happened since.
   */
  changes(place: FeedPlace = {}, options?: CallOptions): Promise<Change[]> {
    return this.#call("GET", undefined, `/feed${queryOf(place)}`, undefined, options, lines);
  }

  /** Returns one thread. */
  get(threadId: string, options?: CallOptions): Promise<Thread> {
    return this.#call("GET", threadId, "", undefined, options);
  }

  /** Changes title, agent, metadata or `archived`. With `createIfMissing` the thread need not exist. */
  update(threadId: string, changes: ThreadChanges, options?: CallOptions): Promise<Thread> {
    return this.#call("PATCH", threadId, "", changes, options);
  }

  /** Sets the title of a thread. An empty one removes it: then the first user message is the title. */
  rename(threadId: string, title: string, options?: CallOptions): Promise<Thread> {
    return this.update(threadId, { title }, options);
  }

  /** Moves a thread into the archive, or with `archived: false` out of it. It can still run. */
  archive(threadId: string, archived = true, options?: CallOptions): Promise<Thread> {
    return this.update(threadId, { archived }, options);
  }

  /** Stops the runs of a thread and erases it for good. Its id cannot be used a second time. */
  async erase(threadId: string, options?: CallOptions): Promise<void> {
    await this.#call("DELETE", threadId, "", undefined, options);
  }

  /** Returns all runs of a thread, in the order in which they began. */
  async runs(threadId: string, options?: CallOptions): Promise<Run[]> {
    return (await this.#call<{ runs: Run[] }>("GET", threadId, "/runs", undefined, options)).runs;
  }

  /** Returns the branches of a thread. */
  async branches(threadId: string, options?: CallOptions): Promise<Branch[]> {
    return (await this.#call<{ branches: Branch[] }>("GET", threadId, "/branches", undefined, options)).branches;
  }

  /** Returns the conversation at a point; by default, at the end of the head. */
  conversation(threadId: string, at: Point = {}, options?: CallOptions): Promise<Conversation> {
    return this.#call("GET", threadId, `/conversation${queryOf(at)}`, undefined, options);
  }

  /** Returns the run that brought a message, on the lineage of `run` or of the head. Its parent is where an edit begins. */
  async origin(threadId: string, messageId: string, run?: string, options?: CallOptions): Promise<Run> {
    const rest = `/messages/${encodeURIComponent(messageId)}${queryOf({ run })}`;
    return (await this.#call<{ run: Run }>("GET", threadId, rest, undefined, options)).run;
  }

  /** Begins a branch with an empty run, which is the head from then on. */
  fork(threadId: string, point: ForkPoint, options?: CallOptions): Promise<RunStatus> {
    return this.#call("POST", threadId, "/fork", { ...point, runId: point.runId ?? randomUUID() }, options);
  }

  /**
   * Asks the runs of a thread that are in progress to stop, or one of them. Returns how many were asked. The streams of
   * a run end when it has stopped.
   */
  async stop(threadId: string, run: { runId?: string; reason?: string } = {}, options?: CallOptions): Promise<number> {
    return (await this.#call<{ stopped: number }>("POST", threadId, "/stop", run, options)).stopped;
  }

  /**
   * The events of a run that are behind the frame or the seq `after`, as server-sent events: those so far, then those to
   * come. If the connection breaks, the stream is resumed. It ends with the run.
   */
  events(threadId: string, { run, after }: { run: string; after: string }, { signal = never }: CallOptions = {}): Promise<Response> {
    const url = `${this.#config.url}${pathOf(threadId)}/events${queryOf({ run })}`;
    const reading = new AbortController();
    const encoder = new TextEncoder();
    return new Promise((resolve, reject) => {
      let body!: ReadableStreamDefaultController<Uint8Array>;
      const stream = new ReadableStream<Uint8Array>({ start: (controller) => void (body = controller), cancel: (reason) => reading.abort(reason) });
      follow({
        open: (last, signal) => send(url, { headers: { Accept: "text/event-stream", "Last-Event-ID": last ?? after }, signal }, this.#config),
        until: "run",
        retry: this.#config.retry,
        signal: AbortSignal.any([signal, reading.signal]),
        begin: ({ headers }) => resolve(new Response(stream, { headers })),
        deliver: (frames) => body.enqueue(encoder.encode(frames)),
      }).then(() => body.close(), (error: unknown) => {
        reject(error);
        body.error(error);
      });
    });
  }

  async #call<Answer>(
    method: string, threadId: string | undefined, rest: string, body: unknown, { signal = never }: CallOptions = {}, format = document,
  ): Promise<Answer> {
    const url = this.#config.url + (threadId === undefined ? "" : pathOf(threadId)) + rest;
    const positions = [this.#written, threadId !== undefined && this.#seen(threadId)].filter(Boolean);
    const init: RequestInit = {
      method,
      signal,
      headers: {
        Accept: format.type,
        ...(positions.length > 0 && { [positionHeader]: positions.join(",") }),
        ...(body !== undefined && { "Content-Type": "application/json" }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    };
    const backoff = new Backoff({ maxAttempts: 5, ...this.#config.retry });
    for (;;) {
      try {
        const response = await send(url, init, this.#config);
        this.#written = response.headers.get(positionHeader) ?? this.#written;
        if (response.status === 204) {
          return undefined as Answer;
        }
        demandType(response, format.type);
        return format.read(await overNetwork(() => response.text())) as Answer;
      } catch (error) {
        await backoff.wait(error, signal);
      }
    }
  }
}

/** The header that names what a client has seen or written, so that no read replica that is behind answers. */
export const positionHeader = "Pgagui-Position";

/** How an answer is read. */
interface Format {
  type: string;
  read: (text: string) => unknown;
}

const document: Format = { type: "application/json", read: (text) => JSON.parse(text) };
const lines: Format = { type: "application/x-ndjson", read: (text) => text.split("\n").filter(Boolean).map((line) => JSON.parse(line) as unknown) };

const never = new AbortController().signal;

export const pathOf = (threadId: string): string => `/threads/${encodeURIComponent(threadId)}`;

/** A query of the parameters that are set, with its question mark. */
export function queryOf(parameters: Record<string, string | number | boolean | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) {
      query.set(name, String(value));
    }
  }
  const text = query.toString();
  return text && `?${text}`;
}
