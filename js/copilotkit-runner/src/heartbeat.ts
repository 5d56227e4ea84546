import type { Database } from "@pgagui/postgres";
import { Outage, type Log } from "./log.ts";

/** What a heartbeat says about a run. */
export interface Signal {
  /** running, finished, failed; claimed before the first event. */
  status: string;
  isStopRequested: boolean;
  cutOffReason: string | null;
}

/** A run that is kept alive. */
export interface Beating {
  readonly scope: string;
  readonly threadId: string;
  readonly runId: string;
  /** Called for a run that should stop or has ended. */
  onSignal(signal: Signal): void;
}

interface KeepAliveRow {
  call_no: number;
  status: string;
  is_stop_requested: boolean;
  cut_off_reason: string | null;
}

/** Sends the heartbeats of all runs of the process: one call an interval for the runs of a scope. */
export class Heartbeats {
  readonly #database: Database;
  readonly #interval: number;
  readonly #outage: Outage;
  readonly #runs = new Map<string, Set<Beating>>(); // by scope
  #timer: NodeJS.Timeout | undefined;
  #beat: Promise<void> | undefined;

  constructor(database: Database, interval: number, log: Log) {
    this.#database = database;
    this.#interval = interval;
    this.#outage = new Outage(log, "heartbeats");
  }

  add(run: Beating): void {
    const runs = this.#runs.get(run.scope) ?? new Set();
    this.#runs.set(run.scope, runs.add(run));
    this.#timer ??= setInterval(() => this.beat().catch(() => {}), this.#interval).unref(); // the outage is logged
  }

  delete(run: Beating): void {
    const runs = this.#runs.get(run.scope);
    runs?.delete(run);
    if (runs?.size === 0) {
      this.#runs.delete(run.scope);
    }
    if (this.#runs.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }

  /**
   * Sends a heartbeat for each run. A call while another one is in progress waits for that one. It fails if the heartbeats of a
   * scope fail; those of other scopes are sent nevertheless.
   */
  beat(): Promise<void> {
    this.#beat ??= this.#send().finally(() => (this.#beat = undefined));
    return this.#beat;
  }

  async #send(): Promise<void> {
    const failures: unknown[] = [];
    for (const [scope, runs] of [...this.#runs]) {
      await this.#sendFor(scope, [...runs]).catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) {
      this.#outage.failed(failures[0]);
      throw failures[0];
    }
    this.#outage.succeeded();
  }

  async #sendFor(scope: string, runs: Beating[]): Promise<void> {
    const rows = await this.#database.inScope(scope).query<KeepAliveRow>(
      `select call_no, status, stop_requested_at is not null as is_stop_requested, cut_off_reason
      from agui.keep_alive(thread_ids => $1, run_ids => $2, scopes => $3)`,
      [runs.map((run) => run.threadId), runs.map((run) => run.runId), runs.map((run) => run.scope)],
    );
    for (const row of rows) {
      runs[row.call_no - 1]!.onSignal({
        status: row.status, isStopRequested: row.is_stop_requested, cutOffReason: row.cut_off_reason,
      });
    }
  }
}
