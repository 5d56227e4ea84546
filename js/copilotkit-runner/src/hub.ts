import { isTransient, type Database } from "@pgagui/postgres";
import type { AguiEvent } from "./events.ts";
import { Outage, type Log } from "./log.ts";

/** Events of one run, from a batch of the log. */
export interface Batch {
  runId: string;
  events: AguiEvent[];
  /** Whether the run had ended when the batch was read. Its end is among the events, before them or behind them. */
  hasEnded: boolean;
}

/** A reader of a thread, from a position on. */
export interface Follower {
  readonly scope: string;
  readonly threadId: string;
  /** The run whose writer must be alive; undefined: none. */
  readonly runId: string | undefined;
  /** The position: the last event that the follower has seen (0: none), and when it was recorded. The hub moves it. */
  seq: number;
  recordedAt: string | null;
  /** Takes the next events of the thread, of all its runs. isAll: there were no more when they were read. */
  onBatches(batches: Batch[], isAll: boolean): void;
  /** Called when there is nothing to follow any more: the writer of the run is gone, or the thread cannot be read. */
  onEnd(reason: Error): void;
}

interface PollRow {
  thread_no: number;
  run_id: string;
  status: string;
  last_seq: number;
  recorded_at: string;
  events: string | null;
  problem: string | null;
}

const shortestPause = 5;
const longestPause = 100;
/** The hub rests this many times as long as a poll took, however many threads there are. */
const rest = 4;
const longestRest = 1000;
/** The bounds of a query and its answer. */
const maxItems = 500;
const maxBatches = 100;
/** How often to check whether the writers of quiet runs are alive, in milliseconds. */
const checkInterval = 2000;

/** Polls the database for new events of all threads that the process follows, many in one query. */
export class Hub {
  readonly #database: Database;
  readonly #interval: number;
  readonly #log: Log;
  readonly #outage: Outage;
  readonly #followers = new Map<Follower, number>(); // with the time of their last events or check
  #isRunning = false;
  #wake: (() => void) | undefined;
  #isWoken = false;

  constructor(database: Database, interval: number, log: Log) {
    this.#database = database;
    this.#interval = interval;
    this.#log = log;
    this.#outage = new Outage(log, "polls");
  }

  follow(follower: Follower): void {
    this.#followers.set(follower, Date.now());
    this.wake();
    if (!this.#isRunning) {
      this.#isRunning = true;
      void this.#run();
    }
  }

  leave(follower: Follower): void {
    this.#followers.delete(follower);
    if (this.#followers.size === 0) {
      this.wake();
    }
  }

  /** Makes the next poll come soon: there are new events. */
  wake(): void {
    this.#isWoken = true;
    this.#wake?.();
  }

  async #run(): Promise<void> {
    let pause = this.#interval;
    while (this.#followers.size > 0) {
      this.#isWoken = false;
      const begin = Date.now();
      try {
        const isNew = await this.#pollAll();
        await this.#checkWriters();
        this.#outage.succeeded();
        pause = isNew ? this.#interval : Math.min(pause * 1.25, longestPause);
      } catch (error) { // of the connection: the others end their follower
        this.#outage.failed(error);
        pause = Math.min(pause * 2, longestRest * 2);
      }
      const least = Math.min(Math.max((Date.now() - begin) * rest, shortestPause), longestRest);
      await this.#sleep(least, Math.max(least, pause));
    }
    this.#isRunning = false;
  }

  /** Sleeps for a time that wake can shorten. */
  async #sleep(least: number, most: number): Promise<void> {
    const timer = (milliseconds: number) => new Promise<void>((resolve) => {
      setTimeout(resolve, milliseconds).unref();
    });
    await timer(least);
    if (!this.#isWoken && most > least) {
      await Promise.race([timer(most - least), new Promise<void>((resolve) => (this.#wake = resolve))]);
    }
  }

  async #pollAll(): Promise<boolean> {
    let isNew = false;
    for (const items of this.#items()) {
      isNew = await this.#poll(items) || isNew;
    }
    return isNew;
  }

  /** The items of each query: followers of a thread at the same position share one. A query is for one scope. */
  *#items(): Generator<Follower[][]> {
    const scopes = new Map<string, Map<string, Follower[]>>();
    for (const follower of this.#followers.keys()) {
      const items = scopes.get(follower.scope) ?? new Map<string, Follower[]>();
      scopes.set(follower.scope, items);
      const key = JSON.stringify([follower.threadId, follower.seq, follower.recordedAt]);
      items.set(key, [...(items.get(key) ?? []), follower]);
    }
    for (const items of scopes.values()) {
      const all = [...items.values()];
      for (let i = 0; i < all.length; i += maxItems) {
        yield all.slice(i, i + maxItems);
      }
    }
  }

  async #poll(items: Follower[][]): Promise<boolean> {
    const firsts = items.map(([first]) => first!);
    const scope = firsts[0]!.scope;
    let rows: PollRow[];
    try {
      rows = await this.#database.inScope(scope).query<PollRow>(
        `select thread_no, run_id, status, (first_seq + n - 1)::float8 as last_seq, recorded_at::text, events::text, problem
        from agui.poll(thread_ids => $1, after_seqs => $2, after_times => $3::timestamptz[], max_rows => $4, scopes => $5)`,
        [firsts.map(({ threadId }) => threadId), firsts.map(({ seq }) => seq), firsts.map(({ recordedAt }) => recordedAt), maxBatches,
          firsts.map(() => scope)],
      );
    } catch (error) {
      if (isTransient(error)) {
        throw error;
      }
      items.flat().forEach((follower) => this.#end(follower, error instanceof Error ? error : new Error(String(error))));
      return false;
    }
    const answers = items.map(() => [] as PollRow[]);
    rows.forEach((row) => answers[row.thread_no - 1]!.push(row));
    for (const [i, answer] of answers.entries()) {
      const followers = items[i]!.filter((follower) => this.#followers.has(follower));
      const problem = answer.find((row) => row.problem !== null)?.problem;
      if (problem) {
        const reason = { UI014: "the thread was erased", UI017: "the log was rewound by a crash or a failover" }[problem] ?? `error ${problem}`;
        followers.forEach((follower) => this.#end(follower, new Error(reason)));
      } else if (answer.length > 0) {
        this.#pass(answer, followers);
      }
    }
    return rows.length > 0;
  }

  #pass(answer: PollRow[], followers: Follower[]): void {
    const rows = answer.filter((row) => row.events !== null);
    const isAll = rows.length === answer.length && rows.length < maxBatches;
    if (!isAll) {
      this.wake();
    }
    const last = rows.at(-1);
    for (const follower of followers) {
      this.#followers.set(follower, Date.now());
      if (last) {
        follower.seq = last.last_seq;
        follower.recordedAt = last.recorded_at;
      }
      // Parsed for each follower: it may change what it gets.
      follower.onBatches(rows.map((row) => ({
        runId: row.run_id, events: JSON.parse(row.events!) as AguiEvent[], hasEnded: row.status !== "running",
      })), isAll);
    }
  }

  /** Ends the followers of runs whose writers are gone: the log gets their end only when another run begins. */
  async #checkWriters(): Promise<void> {
    const now = Date.now();
    const scopes = new Map<string, Follower[]>();
    for (const [follower, since] of this.#followers) {
      if (follower.runId !== undefined && now - since >= checkInterval) {
        this.#followers.set(follower, now);
        scopes.set(follower.scope, [...(scopes.get(follower.scope) ?? []), follower]);
      }
    }
    for (const [scope, followers] of scopes) {
      try {
        const rows = await this.#database.inScope(scope).query<{ item: number }>(
          `select item.no::int as item
          from unnest($1::text[], $2::text[]) with ordinality as item (thread_id, run_id, no)
          where (agui.status(item.thread_id, item.run_id, $3)).is_stale`,
          [followers.map(({ threadId }) => threadId), followers.map(({ runId }) => runId), scope],
        );
        rows.forEach(({ item }) => this.#end(followers[item - 1]!, new Error("the process that wrote the run is gone")));
      } catch (error) {
        if (isTransient(error)) {
          throw error;
        }
        this.#log({ level: "warn", message: "the writers of runs could not be checked", error });
      }
    }
  }

  #end(follower: Follower, reason: Error): void {
    if (this.#followers.delete(follower)) {
      follower.onEnd(reason);
    }
  }
}
