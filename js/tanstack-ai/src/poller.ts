// One loop of agui.poll for all readers of the process.

import type { Database } from "@pgagui/postgres";
import { retry } from "./retry.ts";

/** Events of one run, with consecutive seqs. */
export interface Batch {
  runId: string;
  /** Of the run: running, finished or failed. */
  status: string;
  firstSeq: number;
  events: { type: string; [member: string]: unknown }[];
}

interface Row {
  thread_no: number;
  run_id: string | null;
  status: string;
  first_seq: string;
  events: string;
  recorded_at: string;
  problem: string | null;
}

interface Waiting {
  resolve(batches: Batch[]): void;
  reject(error: unknown): void;
}

/** The loop. Its timer runs, and keeps the process alive, only while a reader waits. */
export class Poller {
  readonly #database: Database;
  /** Milliseconds between two polls. */
  readonly interval: number;
  readonly #retryTimeout: number;
  // In the order in which they began to wait. A follower that got nothing because a page was full is before those that did.
  readonly #waiting = new Map<Follower, Waiting>();
  #timer: NodeJS.Timeout | undefined;
  #isPolling = false;
  #isWoken = false;

  constructor(database: Database, interval: number, retryTimeout: number) {
    this.#database = database;
    this.interval = interval;
    this.#retryTimeout = retryTimeout;
  }

  /** Follows a thread behind a seq. */
  follow(threadId: string, seq: number): Follower {
    return new Follower(this, threadId, seq);
  }

  /** Polls at once: this process has appended. */
  wake(): void {
    if (this.#isPolling) this.#isWoken = true;
    else if (this.#waiting.size > 0) this.#schedule(0);
  }

  /** Fails all reads that wait. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#fail([...this.#waiting.keys()], new Error("pgagui: the streams were closed"));
  }

  /** Resolves with the next batches of the follower, or with none after some milliseconds or when the signal is aborted. */
  wait(follower: Follower, milliseconds: number, signal: AbortSignal | undefined): Promise<Batch[]> {
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timeout);
        signal?.removeEventListener("abort", giveUp);
        this.#waiting.delete(follower);
      };
      const giveUp = () => {
        end();
        resolve([]);
      };
      const timeout = setTimeout(giveUp, milliseconds);
      signal?.addEventListener("abort", giveUp);
      this.#waiting.set(follower, {
        resolve: (batches) => (end(), resolve(batches)),
        reject: (error) => (end(), reject(error)),
      });
      if (signal?.aborted) giveUp();
      else if (!this.#timer && !this.#isPolling) this.#schedule(0);
    });
  }

  #schedule(delay: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#poll(), delay);
  }

  async #poll(): Promise<void> {
    this.#timer = undefined;
    this.#isPolling = true;
    this.#isWoken = false;
    const followers = [...this.#waiting.keys()];
    try {
      const rows = await retry(() => this.#query(followers), { forAtMost: this.#retryTimeout });
      this.#deliver(followers, rows);
    } catch (error) {
      this.#fail(followers, error);
    }
    this.#isPolling = false;
    if (this.#waiting.size > 0) this.#schedule(this.#isWoken ? 0 : this.interval);
  }

  #query(followers: Follower[]): Promise<Row[]> {
    return this.#database.query<Row>(
      `select thread_no, run_id, status, first_seq::text, events::text, problem,
          to_char(recorded_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as recorded_at
      from agui.poll($1::text[], $2::bigint[], $3::timestamptz[], scopes => $4::text[])`,
      [
        followers.map((follower) => follower.threadId), followers.map((follower) => follower.seq),
        followers.map((follower) => follower.recordedAt), followers.map(() => this.#database.scope),
      ],
    );
  }

  #deliver(followers: Follower[], rows: Row[]): void {
    for (const [i, follower] of followers.entries()) {
      const own = rows.filter((row) => row.thread_no === i + 1);
      const waiting = this.#waiting.get(follower);
      // A row without a run says that there is more than fits, unless it has a problem.
      const problem = own.find((row) => row.problem)?.problem;
      const batches = own.filter((row) => row.run_id !== null).map((row): Batch => ({
        runId: row.run_id!, status: row.status, firstSeq: Number(row.first_seq), events: JSON.parse(row.events),
      }));
      if (problem) {
        waiting?.reject(new Error(`pgagui: thread ${JSON.stringify(follower.threadId)} cannot be read behind seq ${follower.seq}: ${problems[problem] ?? problem}`));
      } else if (waiting && batches.length > 0) {
        const last = batches.at(-1)!;
        follower.seq = last.firstSeq + last.events.length - 1;
        follower.recordedAt = own.filter((row) => row.run_id !== null).at(-1)!.recorded_at;
        waiting.resolve(batches);
      }
    }
  }

  #fail(followers: Follower[], error: unknown): void {
    for (const follower of followers) this.#waiting.get(follower)?.reject(error);
  }
}

const problems: Record<string, string> = {
  UI012: "another thread has the same key",
  UI014: "the thread was erased",
  UI017: "the log was rewound, by a crash without synchronous_commit or by a failover",
};

/** The position of a reader in the log of a thread. */
export class Follower {
  readonly #poller: Poller;
  readonly threadId: string;
  seq: number;
  /** When the event at seq was recorded, if known: an event that a failover replaced has another time. */
  recordedAt: string | null = null;

  constructor(poller: Poller, threadId: string, seq: number) {
    this.#poller = poller;
    this.threadId = threadId;
    this.seq = seq;
  }

  /** The next events of the thread, of all its runs. None after some milliseconds, or when the signal is aborted. */
  next(milliseconds: number, signal: AbortSignal | undefined): Promise<Batch[]> {
    return this.#poller.wait(this, milliseconds, signal);
  }
}
