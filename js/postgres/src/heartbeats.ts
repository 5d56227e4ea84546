import { byScope, type Database } from "./index.ts";

/** What a heartbeat says about a run. */
export interface Signal {
  /** running, finished, failed; claimed before the first event. */
  status: string;
  isStopRequested: boolean;
  stopReason: string | null;
  cutOffReason: string | null;
  /** How long a run without a sign of life counts as alive, in milliseconds. */
  lease: number;
}

/** A run that this process writes. */
export interface Beating {
  readonly scope: string;
  readonly threadId: string;
  readonly runId: string;
  /** Called for a run that should stop or has ended. */
  onSignal(signal: Signal): void;
}

export interface HeartbeatOptions {
  /** Milliseconds between two heartbeats. The default is 1000. It must be less than a third of the setting heartbeat_lease. */
  interval?: number | undefined;
  onFailure?: ((error: unknown) => void) | undefined;
  onSuccess?: (() => void) | undefined;
}

interface KeepAliveRow {
  call_no: number;
  status: string;
  is_stop_requested: boolean;
  stop_reason: string | null;
  cut_off_reason: string | null;
  lease: number;
}

/** Sends the heartbeats of all runs of the process: one call an interval for the runs of a scope. */
export class Heartbeats {
  readonly #database: Database;
  readonly #options: HeartbeatOptions;
  readonly #runs = new Set<Beating>();
  #timer: NodeJS.Timeout | undefined;
  #beat: Promise<void> | undefined;
  #isStopped = false;

  constructor(database: Database, options: HeartbeatOptions = {}) {
    this.#database = database;
    this.#options = options;
  }

  /** Adds a run; false if it was added before, or after stop. Its first heartbeat comes after an interval. */
  add(run: Beating): boolean {
    if (this.#isStopped || this.#runs.has(run)) {
      return false;
    }
    this.#runs.add(run);
    this.#timer ??= setInterval(() => this.beat().catch(() => {}), this.#options.interval ?? 1000).unref(); // onFailure has it
    return true;
  }

  delete(run: Beating): void {
    this.#runs.delete(run);
    if (this.#runs.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }

  /**
   * Sends a heartbeat for each run, also for those that are added meanwhile. A call while another one is in progress waits for
   * that one. It fails if the heartbeats of a scope fail; those of other scopes are sent nevertheless.
   */
  beat(): Promise<void> {
    this.#beat ??= this.#send().finally(() => (this.#beat = undefined));
    return this.#beat;
  }

  /** Sends no more heartbeats. */
  stop(): void {
    this.#isStopped = true;
    this.#runs.clear();
    clearInterval(this.#timer);
  }

  async #send(): Promise<void> {
    const sent = new Set<Beating>();
    const failures: unknown[] = [];
    for (let due = [...this.#runs]; due.length > 0; due = [...this.#runs].filter((run) => !sent.has(run))) {
      due.forEach((run) => sent.add(run));
      for (const [scope, runs] of byScope(due)) {
        await this.#sendFor(scope, runs).catch((error: unknown) => failures.push(error));
      }
    }
    if (failures.length > 0) {
      this.#options.onFailure?.(failures[0]);
      throw failures[0];
    }
    this.#options.onSuccess?.();
  }

  async #sendFor(scope: string, runs: Beating[]): Promise<void> {
    const rows = await this.#database.inScope(scope).query<KeepAliveRow>(
      `select call_no, status, stop_requested_at is not null as is_stop_requested, stop_reason, cut_off_reason,
        1000 * (select value::float8 from agui.setting where name = 'heartbeat_lease') as lease
      from agui.keep_alive(thread_ids => $1, run_ids => $2, scopes => $3)`,
      [runs.map((run) => run.threadId), runs.map((run) => run.runId), runs.map((run) => run.scope)],
    );
    for (const row of rows) {
      runs[row.call_no - 1]!.onSignal({
        status: row.status, isStopRequested: row.is_stop_requested, stopReason: row.stop_reason, cutOffReason: row.cut_off_reason, lease: row.lease,
      });
    }
  }
}
