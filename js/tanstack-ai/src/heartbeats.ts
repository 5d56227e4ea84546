// One call of agui.keep_alive a second for all streams that this process writes.

import type { Database } from "@pgagui/postgres";

const interval = 1_000;

/** What a heartbeat says about a run that should stop or has ended. */
export interface Signal {
  status: string;
  stopRequested: boolean;
  stopReason: string | null;
  cutOffReason: string | null;
  /** Milliseconds for which a run without a sign of life counts as alive. */
  lease: number;
}

export interface Writer {
  readonly threadId: string;
  readonly runId: string;
  heartbeat(signal: Signal): void;
}

interface Row {
  call_no: number;
  status: string;
  is_stop_requested: boolean;
  stop_reason: string | null;
  cut_off_reason: string | null;
  lease: string;
}

export class Heartbeats {
  readonly #database: Database;
  readonly #writers = new Set<Writer>();
  #timer: NodeJS.Timeout | undefined;
  #isBeating = false;
  #isStopped = false;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Adds a writer, and sends its first heartbeat at once: from then on its run has the lease of heartbeats. */
  add(writer: Writer): void {
    if (this.#writers.has(writer)) return;
    this.#writers.add(writer);
    this.#schedule(0);
  }

  delete(writer: Writer): void {
    this.#writers.delete(writer);
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  #schedule(delay: number): void {
    clearTimeout(this.#timer);
    if (this.#isStopped || this.#isBeating || this.#writers.size === 0) return;
    this.#timer = setTimeout(() => void this.#beat(), delay);
    this.#timer.unref();
  }

  async #beat(): Promise<void> {
    const writers = [...this.#writers];
    this.#isBeating = true;
    try {
      const rows = await this.#database.query<Row>(
        `select call_no, status, stop_requested_at is not null as is_stop_requested, stop_reason, cut_off_reason,
            (select value from agui.setting where name = 'heartbeat_lease')::text as lease
        from agui.keep_alive($1::text[], $2::text[], scopes => $3::text[])`,
        [writers.map((writer) => writer.threadId), writers.map((writer) => writer.runId), writers.map(() => this.#database.scope)],
      );
      for (const row of rows) {
        writers[row.call_no - 1]!.heartbeat({
          status: row.status, stopRequested: row.is_stop_requested, stopReason: row.stop_reason,
          cutOffReason: row.cut_off_reason, lease: 1_000 * Number(row.lease),
        });
      }
    } catch {
      // The next heartbeat comes in a second, and the lease is longer. If the database stays away, appends fail and say so.
    }
    this.#isBeating = false;
    this.#schedule([...this.#writers].every((writer) => writers.includes(writer)) ? interval : 0);
  }
}
