import type { Thread } from "./cluster.ts";
import { byScope, groupBy, type Database } from "./database.ts";

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

/** A run that should stop or has ended; without one, a row with the lease alone. */
interface KeepAliveRow {
  call_no: number | null;
  status: string;
  is_stop_requested: boolean;
  stop_reason: string | null;
  cut_off_reason: string | null;
  lease: number;
}

/**
 * How long a heartbeat waits for its answer, in milliseconds: at most a third of the lease, so that the lease does not expire
 * while a heartbeat waits on a lost connection. The bounds come before that. The first heartbeats do not know the lease.
 */
const firstTimeout = 2_000;
const shortestTimeout = 1_000;
const longestTimeout = 10_000;

/** How long a heartbeat waits for a run whose thread is being moved, in milliseconds: the next one comes soon, and others wait. */
const shortPatience = 100;

/**
 * Sends the heartbeats of all runs of the process: one call an interval for the runs of a scope. In a cluster each node has calls
 * of its own, so that one that does not answer costs only its own runs their leases.
 */
export class Heartbeats {
  readonly #database: Database;
  readonly #options: HeartbeatOptions;
  readonly #runs = new Set<Beating>();
  readonly #beats = new Map<string, Promise<void>>(); // those in progress, by scope and node
  readonly #beatingNodes = new Set<string | undefined>();
  readonly #failingNodes = new Set<string | undefined>();
  #timer: NodeJS.Timeout | undefined;
  #lease = Infinity;
  #timeout = firstTimeout;
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
    this.#timer ??= setInterval(() => this.#beatAll(), this.#options.interval ?? 1000).unref();
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
   * Sends a heartbeat for a run, and for all others of its scope and node, also for those that are added meanwhile. A call while
   * another one for these is in progress waits for that one.
   */
  beat(run: Thread): Promise<void> {
    const node = this.#database.nodeOf(run);
    const key = JSON.stringify([run.scope, node]);
    const beat = this.#beats.get(key) ?? this.#send(run.scope, node).finally(() => this.#beats.delete(key));
    this.#beats.set(key, beat);
    return beat;
  }

  /** Sends no more heartbeats. */
  stop(): void {
    this.#isStopped = true;
    this.#runs.clear();
    clearInterval(this.#timer);
  }

  #beatAll(): void {
    const groups = groupBy(this.#runs, (run) => this.#database.nodeOf(run));
    [...this.#failingNodes].filter((node) => !groups.has(node)).forEach((node) => this.#failingNodes.delete(node));
    for (const [node, runs] of groups) {
      if (!this.#beatingNodes.has(node)) {
        void this.#beatAllOf(node, runs);
      }
    }
  }

  async #beatAllOf(node: string | undefined, runs: Beating[]): Promise<void> {
    this.#beatingNodes.add(node);
    const failures: unknown[] = [];
    for (const [first] of byScope(runs).values()) {
      await this.beat(first!).catch((error: unknown) => failures.push(error));
    }
    this.#beatingNodes.delete(node);
    if (failures.length > 0) {
      this.#failingNodes.add(node);
      this.#options.onFailure?.(failures[0]);
      return;
    }
    this.#failingNodes.delete(node);
    if (this.#failingNodes.size === 0) {
      this.#options.onSuccess?.();
    }
  }

  async #send(scope: string, node: string | undefined): Promise<void> {
    const sent = new Set<Beating>();
    for (;;) {
      const due = [...this.#runs].filter((run) => run.scope === scope && this.#database.nodeOf(run) === node && !sent.has(run));
      if (due.length === 0) {
        return;
      }
      due.forEach((run) => sent.add(run));
      try {
        await this.#database.inScope(scope).within(this.#timeout).eachNode(due, shortPatience, (on, runs) => this.#sendTo(on, runs));
      } catch (error) {
        this.#timeout = Math.min(2 * this.#timeout, this.#longestTimeout());
        throw error;
      }
    }
  }

  async #sendTo(database: Database, runs: Beating[]): Promise<void> {
    const rows = await database.query<KeepAliveRow>(
      `select call_no, status, stop_requested_at is not null as is_stop_requested, stop_reason, cut_off_reason, lease
      from (select 1000 * (select value::float8 from agui.setting where name = 'heartbeat_lease') as lease) as setting
      left join agui.keep_alive(thread_ids => $1, run_ids => $2, scopes => $3) on true`,
      [runs.map((run) => run.threadId), runs.map((run) => run.runId), runs.map((run) => run.scope)],
    );
    this.#lease = rows[0]!.lease;
    this.#timeout = this.#longestTimeout();
    for (const row of rows) {
      if (row.call_no !== null) {
        runs[row.call_no - 1]!.onSignal({
          status: row.status, isStopRequested: row.is_stop_requested, stopReason: row.stop_reason, cutOffReason: row.cut_off_reason, lease: row.lease,
        });
      }
    }
  }

  #longestTimeout(): number {
    return Math.max(shortestTimeout, Math.min(longestTimeout, this.#lease / 3));
  }
}
