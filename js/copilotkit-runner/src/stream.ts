import { pause, retry, type AguiEvent, type Database, type Poller } from "@pgagui/postgres";
import { ClientFilter } from "./filter.ts";
import { messageOf, Outage, type Log } from "./log.ts";

interface Attachment {
  run_id: string;
  status: string;
  seq: number;
  recorded_at: string | null;
  events: string;
  is_stale: boolean | null;
}

/** How often to check whether a run that is claimed has begun, in milliseconds. */
const claimInterval = 200;

/**
 * Sends a client a thread: its history as a snapshot, then the events of the run in progress as they are stored. A run that
 * follows is sent in the same way. It ends when no run is in progress.
 */
export class Stream {
  readonly #database: Database;
  readonly #poller: Poller;
  readonly #threadId: string;
  readonly #send: (event: AguiEvent) => void;
  readonly #signal: AbortSignal;
  readonly #log: Log;
  #filter: ClientFilter | undefined;

  /** The signal ends the stream: either the client has left, or the client receives the reason of the signal. */
  constructor(database: Database, poller: Poller, options: { threadId: string; send: (event: AguiEvent) => void; signal: AbortSignal; log: Log }) {
    this.#database = database.ofThread(options.threadId);
    this.#poller = poller;
    this.#threadId = options.threadId;
    this.#send = options.send;
    this.#signal = options.signal;
    this.#log = options.log;
  }

  /** Sends the thread. If it ends early, the client receives a RUN_ERROR, because it takes a clean end for success. */
  async serve(): Promise<void> {
    try {
      await this.#serveRuns();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    const threadId = this.#threadId;
    if (!this.#signal.aborted) {
      this.#log({ level: "warn", message: "a client could not follow a thread to its end", threadId, error });
    }
    const failure = { message: `The conversation could not be followed to its end: ${messageOf(error)}`, code: "CONNECTION_LOST" };
    (this.#filter?.end(failure) ?? [{ type: "RUN_ERROR", ...failure }]).forEach(this.#send);
  }

  async #serveRuns(): Promise<void> {
    let head: string | null = null; // the last run that was sent
    for (;;) {
      const now: { head: string | null; is_claimed: boolean } = await this.#look();
      if (now.head !== null && now.head !== head) {
        head = await this.#serveHead();
      } else if (now.is_claimed) {
        await pause(claimInterval, this.#signal);
        this.#signal.throwIfAborted();
      } else {
        return;
      }
    }
  }

  /** Sends the head, from its history to its end, and returns its id. */
  async #serveHead(): Promise<string> {
    const attached = await this.#attach();
    const runId = attached.run_id;
    this.#filter?.begin(runId).forEach(this.#send);
    this.#filter ??= new ClientFilter(this.#threadId, runId);
    this.#pass(JSON.parse(attached.events) as AguiEvent[]);
    if (attached.is_stale) {
      throw new Error("the process that wrote the run is gone");
    }
    if (attached.status === "running") {
      await this.#follow(attached);
    }
    this.#filter.end().forEach(this.#send);
    return runId;
  }

  /** Passes the events of a run in progress, until it has ended. */
  async #follow({ run_id: runId, seq, recorded_at: recordedAt }: Attachment): Promise<void> {
    const follower = this.#poller.follow({ scope: this.#database.scope, threadId: this.#threadId, runId, seq, recordedAt });
    for (let hasEnded = false; ; ) {
      const { batches, isAll } = await follower.next({ signal: this.#signal });
      for (const batch of batches.filter((batch) => batch.runId === runId)) {
        this.#pass(batch.events);
        hasEnded = batch.hasEnded;
      }
      if (hasEnded && isAll) {
        return;
      }
    }
  }

  #pass(events: AguiEvent[]): void {
    for (const event of events) {
      this.#filter!.push(event).forEach(this.#send);
    }
  }

  /** Reads the head, null if the thread is unknown or erased, and whether a run is about to begin. */
  async #look(): Promise<{ head: string | null; is_claimed: boolean }> {
    const isClaimed = "exists (select from agui.claims(thread_id => $1, scope => $2)) as is_claimed";
    const [row] = await this.#read<{ head: string | null; is_claimed: boolean }>(
      `select attached.run_id as head, ${isClaimed} from agui.attach(thread_id => $1, at_seq => 0, shape => 'events', scope => $2) as attached`,
    );
    return row!;
  }

  async #attach(): Promise<Attachment> {
    const [attached] = await this.#read<Attachment>(
      `select
        attached.run_id, attached.status, attached.seq::float8 as seq, attached.recorded_at::text, attached.events::text,
        case when attached.status = 'running' then (agui.status($1, attached.run_id, $2)).is_stale end as is_stale
      from agui.attach(thread_id => $1, scope => $2) as attached`,
    );
    return attached!;
  }

  async #read<Row extends object>(statement: string): Promise<Row[]> {
    const outage = new Outage(this.#log, "reads");
    return retry(() => this.#database.query<Row>(statement, [this.#threadId, this.#database.scope]), {
      signal: this.#signal, onRetry: (error) => outage.failed(error),
    });
  }
}
