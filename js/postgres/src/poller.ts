import { movePatience } from "./cluster.ts";
import { byScope, type Database } from "./database.ts";
import { isTransient } from "./errors.ts";
import { pause, retry } from "./retry.ts";
import * as states from "./states.ts";

/** An event of AG-UI, as JSON has it. */
export interface AguiEvent {
  type: string;
  [member: string]: unknown;
}

/** Events of one run, with consecutive seqs. */
export interface Batch {
  runId: string;
  firstSeq: number;
  events: AguiEvent[];
  /** Whether the run had ended when the batch was read. Its end is among the events, before them or behind them. */
  hasEnded: boolean;
}

/** What a follower receives. */
export interface News {
  /** The next events of the thread, of all its runs. Empty after a wait that timed out, or if the events before were all. */
  batches: Batch[];
  /** Whether there were no more events when these were read. */
  isAll: boolean;
}

/** Where to follow a thread from. */
export interface Position {
  threadId: string;
  /** The last event that the follower has seen; 0: none. */
  seq: number;
  /** When that event was recorded, if known: an event that a failover replaced has another time. */
  recordedAt?: string | null | undefined;
  /** The default is that of the database of the poller. */
  scope?: string | undefined;
  /** The run whose writer must be alive. The default is none. */
  runId?: string | undefined;
}

export interface WaitOptions {
  signal?: AbortSignal | undefined;
  /** How long to wait, in milliseconds. Then the answer has no batches. The default is without end. */
  forAtMost?: number | undefined;
}

export interface PollerOptions {
  /** The shortest pause between two polls, in milliseconds. It grows to 100 while there are no events. */
  interval: number;
  /** How long to retry while the database does not answer, in milliseconds. The default is without end. */
  forAtMost?: number | undefined;
  onFailure?: ((error: unknown) => void) | undefined;
  onSuccess?: (() => void) | undefined;
}

interface PollRow {
  thread_no: number;
  run_id: string;
  status: string;
  first_seq: number;
  recorded_at: string;
  events: string | null;
  problem: string | null;
}

const shortestRest = 5;
const longestRest = 1000;
/** After a poll the poller pauses for this many times its duration, within the bounds above. */
const rest = 4;
const longestPause = 100;
/** The bounds of a query and its answer. */
const maxItems = 500;
const maxBatches = 100;
/** How long a query waits for its answer, in milliseconds: all followers wait with it. */
const pollTimeout = 10_000;
/** How often to check whether the writers of quiet runs are alive, in milliseconds. */
const checkInterval = 2000;

interface Waiting {
  resolve(news: News): void;
  reject(error: unknown): void;
}

/** The polls of a node, while it has threads of followers that wait. */
interface Lane {
  isWoken: boolean;
  endPause: () => void;
}

/**
 * Polls the database for new events of all threads that the process follows, many in one query. In a cluster each node has polls
 * of its own, so that one that does not answer holds up only the followers of its threads.
 */
export class Poller {
  readonly #database: Database;
  readonly #options: PollerOptions;
  /** In the order in which they began to wait: a thread whose events did not fit comes before those whose events did. */
  readonly #waiting = new Map<Follower, Waiting>();
  readonly #lanes = new Map<string | undefined, Lane>(); // by node
  readonly #failingNodes = new Set<string | undefined>();

  constructor(database: Database, options: PollerOptions) {
    this.#database = database.within(pollTimeout);
    this.#options = options;
  }

  /** Follows a thread. The follower is polled for while it waits in `next`. */
  follow(position: Position): Follower {
    this.wake();
    return new Follower(this, { scope: this.#database.scope, ...position });
  }

  /** Makes the next poll come soon: there are new events. */
  wake(): void {
    for (const lane of this.#lanes.values()) {
      lane.isWoken = true;
      lane.endPause();
    }
  }

  /** Fails all followers that wait. */
  stop(reason: Error): void {
    this.#fail([...this.#waiting.keys()], reason);
    this.wake();
  }

  /** Waits for the next events of a follower. */
  wait(follower: Follower, { signal, forAtMost }: WaitOptions): Promise<News> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        this.#waiting.delete(follower);
      };
      const leaveEarly = () => {
        leave();
        if (this.#waiting.size === 0) {
          this.wake(); // the pause would keep the process alive
        }
      };
      const onAbort = () => {
        leaveEarly();
        reject(signal!.reason);
      };
      const onTimeout = () => {
        leaveEarly();
        resolve({ batches: [], isAll: true });
      };
      if (signal?.aborted) {
        return reject(signal.reason);
      }
      const timer = forAtMost === undefined ? undefined : setTimeout(onTimeout, forAtMost);
      signal?.addEventListener("abort", onAbort);
      this.#waiting.set(follower, {
        resolve: (news) => (leave(), resolve(news)),
        reject: (error) => (leave(), reject(error)),
      });
      this.#begin();
    });
  }

  /** Makes sure that the nodes of all that wait are polled: a thread may have moved since. */
  #begin(): void {
    for (const follower of this.#waiting.keys()) {
      const node = this.#database.nodeOf(follower);
      if (!this.#lanes.has(node)) {
        const lane = { isWoken: false, endPause: () => {} };
        this.#lanes.set(node, lane);
        void this.#run(node, lane);
      }
    }
  }

  async #run(node: string | undefined, lane: Lane): Promise<void> {
    const { interval, forAtMost, onFailure, onSuccess } = this.#options;
    const onRetry = (error: unknown) => {
      this.#failingNodes.add(node);
      onFailure?.(error);
    };
    let quiet = interval;
    while (this.#followersOf(node).length > 0) {
      lane.isWoken = false;
      let took = 0;
      let isNew = false;
      let hasFailed = false;
      for (const scope of byScope(this.#followersOf(node)).keys()) {
        try {
          isNew = await retry(async () => {
            const begin = Date.now();
            const found = await this.#pollScope(node, scope);
            took += Date.now() - begin;
            return found;
          }, { forAtMost, onRetry }) || isNew;
        } catch (error) {
          hasFailed = true;
          this.#fail(this.#followersOf(node, scope), error);
        }
      }
      if (!hasFailed) {
        this.#failingNodes.delete(node);
        if (this.#failingNodes.size === 0) {
          onSuccess?.();
        }
      }
      quiet = isNew ? interval : Math.min(quiet * 1.25, Math.max(interval, longestPause));
      const least = Math.min(Math.max(took * rest, shortestRest), longestRest);
      await pause(least);
      if (!lane.isWoken && this.#followersOf(node).length > 0) {
        const woken = new AbortController();
        lane.endPause = () => woken.abort();
        await pause(quiet - least, woken.signal);
      }
    }
    this.#failingNodes.delete(node);
    this.#lanes.delete(node);
    this.#begin();
  }

  /** Returns whether there was something new. */
  async #pollScope(node: string | undefined, scope: string): Promise<boolean> {
    await this.#database.ready();
    this.#begin();
    let isNew = false;
    for (const items of itemsOf(this.#followersOf(node, scope))) {
      isNew = await this.#poll(node, scope, items) || isNew;
    }
    const due = this.#followersOf(node, scope).filter(({ runId, since }) => runId !== undefined && Date.now() - since >= checkInterval);
    if (due.length > 0) {
      await this.#checkWriters(node, scope, due);
    }
    return isNew;
  }

  #followersOf(node: string | undefined, scope?: string): Follower[] {
    return [...this.#waiting.keys()]
      .filter((follower) => (scope === undefined || follower.scope === scope) && this.#database.nodeOf(follower) === node);
  }

  async #poll(node: string | undefined, scope: string, items: Follower[][]): Promise<boolean> {
    const firsts = items.map(([first]) => first!);
    const seqs = firsts.map(({ seq }) => seq);
    const query = this.#database.inScope(scope).onNode(node).query<PollRow>(
      `select thread_no, run_id, status, first_seq::float8 as first_seq, events::text, problem,
        to_char(recorded_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as recorded_at
      from agui.poll(thread_ids => $1, after_seqs => $2, after_times => $3::timestamptz[], max_rows => $4, scopes => $5)`,
      [firsts.map(({ threadId }) => threadId), seqs, firsts.map(({ recordedAt }) => recordedAt), maxBatches,
        firsts.map(() => scope)],
    );
    const rows = await query.catch((error: unknown) => {
      if (isTransient(error)) {
        throw error;
      }
      this.#fail(items.flat(), error);
      return [];
    });
    const answers = items.map(() => [] as PollRow[]);
    rows.forEach((row) => answers[row.thread_no - 1]!.push(row));
    const moved: Follower[][] = [];
    for (const [i, answer] of answers.entries()) {
      const { threadId } = firsts[i]!;
      const seq = seqs[i]!;
      const followers = items[i]!.filter((follower) => follower.seq === seq); // the thread's other node was not faster
      const problem = answer.find((row) => row.problem !== null)?.problem;
      if (problem === states.moved) {
        moved.push(followers);
      } else if (problem) {
        this.#fail(followers, new Error(`thread ${JSON.stringify(threadId)} cannot be read behind seq ${seq}: ${problems[problem] ?? problem}`));
      } else {
        this.#pass(answer, followers);
      }
    }
    for (const followers of moved.filter((followers) => followers.length > 0)) {
      await this.#find(node, followers);
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
      follower.lostAt = undefined;
      const waiting = this.#waiting.get(follower);
      if (!waiting || !last && !(isAll && follower.hasMore)) {
        continue;
      }
      // Parsed for each follower: it may change what it gets.
      const batches = rows.map((row): Batch => ({
        runId: row.run_id, firstSeq: row.first_seq, events: JSON.parse(row.events!) as AguiEvent[], hasEnded: row.status !== "running",
      }));
      follower.since = Date.now();
      follower.hasMore = !isAll;
      if (last) {
        follower.seq = last.first_seq + batches.at(-1)!.events.length - 1;
        follower.recordedAt = last.recorded_at;
      }
      waiting.resolve({ batches, isAll });
    }
  }

  /** Finds the node of a thread that was moved, and polls there. While a thread is being moved, two nodes name each other. */
  async #find(node: string | undefined, followers: Follower[]): Promise<void> {
    const { scope, threadId } = followers[0]!;
    try {
      await this.#database.inScope(scope).onNode(node).query("select agui.head($1, $2)", [threadId, scope]);
    } catch (error) {
      if (isTransient(error)) {
        throw error;
      }
      this.#database.learn(error);
      const now = Date.now();
      this.#fail(followers.filter(({ lostAt = now }) => now - lostAt > movePatience), error);
      followers.forEach((follower) => (follower.lostAt ??= now));
    }
    this.#begin();
    this.wake();
  }

  /** Fails the followers of runs whose writers are gone: the log gets their end only when another run begins. */
  async #checkWriters(node: string | undefined, scope: string, followers: Follower[]): Promise<void> {
    const query = this.#database.inScope(scope).onNode(node).query<{ item: number }>(
      `select item.no::int as item
      from unnest($1::text[], $2::text[]) with ordinality as item (thread_id, run_id, no)
      where (agui.status(item.thread_id, item.run_id, $3)).is_stale`,
      [followers.map(({ threadId }) => threadId), followers.map(({ runId }) => runId), scope],
    );
    const rows = await query.catch((error: unknown) => {
      if (isTransient(error)) {
        throw error;
      }
      return []; // a thread was erased or moved meanwhile, which its poll says; the others have their next check
    });
    followers.forEach((follower) => (follower.since = Date.now()));
    this.#fail(rows.map(({ item }) => followers[item - 1]!), new Error("the process that wrote the run is gone"));
  }

  #fail(followers: Follower[], error: unknown): void {
    followers.forEach((follower) => this.#waiting.get(follower)?.reject(error));
  }
}

const problems: Record<string, string> = {
  [states.keyCollision]: "another thread has the same key",
  [states.threadErased]: "the thread was erased",
  [states.logRewound]: "the log was rewound, by a crash without synchronous_commit or by a failover",
};

/** The items of each query: followers of a thread at the same position share one. */
function itemsOf(followers: Follower[]): Follower[][][] {
  const items = new Map<string, Follower[]>();
  for (const follower of followers) {
    const key = JSON.stringify([follower.threadId, follower.seq, follower.recordedAt]);
    items.set(key, [...(items.get(key) ?? []), follower]);
  }
  const all = [...items.values()];
  return Array.from({ length: Math.ceil(all.length / maxItems) }, (_, i) => all.slice(i * maxItems, (i + 1) * maxItems));
}

/** A reader of a thread. */
export class Follower {
  readonly threadId: string;
  readonly scope: string;
  readonly runId: string | undefined;
  seq: number;
  recordedAt: string | null;
  /** The time of its last events, or of the last check of its writer. */
  since = Date.now();
  /** Whether there may have been more than its last events. */
  hasMore = false;
  /** Since when no node says that it has the thread, because it is being moved. */
  lostAt: number | undefined;
  readonly #poller: Poller;

  constructor(poller: Poller, position: Position & { scope: string }) {
    this.#poller = poller;
    this.threadId = position.threadId;
    this.scope = position.scope;
    this.runId = position.runId;
    this.seq = position.seq;
    this.recordedAt = position.recordedAt ?? null;
  }

  /**
   * Waits for the next events, one call at a time. Errors: the reason of the signal; the thread cannot be read; the writer of the
   * run is gone; the database does not answer for as long as the poller retries.
   */
  next(options: WaitOptions = {}): Promise<News> {
    return this.#poller.wait(this, options);
  }
}
