import { pause, retry, type AguiEvent, type Database, type Poller } from "@pgagui/postgres";
import { ClientFilter } from "./filter.ts";
import { messageOf, Outage, type Log } from "./log.ts";

interface Attachment {
  run_id: string;
  status: string;
  seq: number;
  recorded_at: string | null;
  events: string;
  next_part: number | null;
  is_stale: boolean | null;
}

/** The runs whose CUSTOM events a history repeats. */
export type CustomEvents = "none" | "head" | "lineage";

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
  readonly #customEvents: CustomEvents;
  readonly #log: Log;
  #filter: ClientFilter | undefined;

  /** The signal ends the stream: either the client has left, or the client receives the reason of the signal. */
  constructor(database: Database, poller: Poller, options: { threadId: string; send: (event: AguiEvent) => void; signal: AbortSignal; customEvents: CustomEvents; log: Log }) {
    this.#database = database.ofThread(options.threadId);
    this.#poller = poller;
    this.#threadId = options.threadId;
    this.#send = options.send;
    this.#signal = options.signal;
    this.#customEvents = options.customEvents;
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
    const attached = await this.#attach(1, null);
    const runId = attached.run_id;
    this.#filter?.begin(runId).forEach(this.#send);
    this.#filter ??= new ClientFilter(this.#threadId, runId);
    let isComplete = this.#passHistory(attached.events);
    for (let part = attached.next_part; part !== null; ) {
      const next = await this.#attach(part, attached);
      isComplete = this.#passHistory(next.events);
      part = next.next_part;
    }
    if (!isComplete) {
      return runId;
    }
    if (attached.is_stale) {
      throw new Error("the process that wrote the run is gone");
    }
    if (attached.status === "running") {
      await this.#follow(attached);
    }
    this.#filter.end().forEach(this.#send);
    return runId;
  }

  /** Passes a part of a history. Returns whether a run in progress may go on: an error at its end names what no client takes. */
  #passHistory(text: string): boolean {
    const events = JSON.parse(text) as AguiEvent[];
    this.#pass(events);
    return events.at(-1)?.type !== "RUN_ERROR";
  }

  /** Passes the events of a run in progress, until it has ended. */
  async #follow({ run_id: runId, seq, recorded_at: recordedAt }: Attachment): Promise<void> {
    const follower = this.#poller.follow({ scope: this.#database.scope, threadId: this.#threadId, runId, seq, recordedAt });
    for (let hasEnded = false; ; ) {
      const { batches, isAll } = await follower.next({ signal: this.#signal });
      for (const batch of batches.filter((batch) => batch.runId === runId)) {
        this.#pass(batch.events, batch.firstSeq);
        hasEnded = batch.hasEnded;
      }
      if (hasEnded && isAll) {
        return;
      }
    }
  }

  #pass(events: AguiEvent[], firstSeq?: number): void {
    events.forEach((event, i) => this.#filter!.push(event, firstSeq && firstSeq + i).forEach(this.#send));
  }

  /** Reads the head, null if the thread is unknown or erased, and whether a run is about to begin. */
  async #look(): Promise<{ head: string | null; is_claimed: boolean }> {
    const isClaimed = "exists (select from agui.claims(thread_id => $1, scope => $2)) as is_claimed";
    const [row] = await this.#read<{ head: string | null; is_claimed: boolean }>(
      `select attached.run_id as head, ${isClaimed} from agui.attach(thread_id => $1, at_seq => 0, shape => 'events', scope => $2) as attached`,
    );
    return row!;
  }

  /** Reads a part of the history of the head: the first one, or one behind it, up to the same event. */
  async #attach(part: number, first: Attachment | null): Promise<Attachment> {
    const [attached] = await this.#read<Attachment>(
      `select
        (part.attachment).run_id, (part.attachment).status, (part.attachment).seq::float8 as seq, (part.attachment).recorded_at::text,
        (part.attachment).events::text, part.next_part,
        case when (part.attachment).status = 'running' then (agui.status($1, (part.attachment).run_id, $2)).is_stale end as is_stale
      from agui.attach_part(thread_id => $1, run_id => $3, at_seq => $4, part => $5, customs_of => $6, scope => $2) as part`,
      [first?.run_id ?? null, first?.seq ?? null, part, this.#customEvents],
    );
    return attached!;
  }

  async #read<Row extends object>(statement: string, values: unknown[] = []): Promise<Row[]> {
    const outage = new Outage(this.#log, "reads");
    return retry(() => this.#database.query<Row>(statement, [this.#threadId, this.#database.scope, ...values]), {
      signal: this.#signal, onRetry: (error) => outage.failed(error),
    });
  }
}
