import type { StreamChunk, StreamDurability } from "@tanstack/ai";
import {
  codeOf, isTransient, isUnknown, pause, retry, states, type AguiEvent, type Beating, type Database, type Heartbeats, type Poller, type Signal,
} from "@pgagui/postgres";
import { aliveEvent, chunkOf, closingEvent, eventOf, isClosing } from "./events.ts";

/** Milliseconds after which a reader without new events checks whether the writer is still alive. */
const checkInterval = 5_000;

/** Milliseconds between two checks whether a run has begun. */
const beginInterval = 50;

/** Events of a run that are read in one call. */
const pageLength = 1_000;

interface StreamOptions {
  database: Database;
  poller: Poller;
  heartbeats: Heartbeats;
  retryTimeout: number;
  firstChunkDeadline: number;
  threadId: string;
  runId: string;
  offset: string | null;
  input: string | undefined;
  parentRunId: string | undefined;
  abortController: AbortController | undefined;
}

interface RunStatus {
  status: string;
  firstSeq: number;
  lastSeq: number;
}

interface StoredEvent {
  seq: number;
  event: AguiEvent;
}

/**
 * The durable stream of one run, with the methods of TanStack AI's UpsertableStreamDurability. The offset of a chunk is its seq in the log of the
 * thread. One process at a time writes a stream: the last one that appended to it. Any number of processes read it.
 *
 * An end (RUN_FINISHED, RUN_ERROR) does not close a stream, because an agent loop may send several. `close` appends an event
 * that readers look for and do not return. A stream is closed as well when its run was cut off or has a child, because the
 * log takes nothing more of such a run, and when its writer gives no sign of life for the setting heartbeat_lease.
 */
export class RunStream implements StreamDurability, Beating {
  readonly scope: string;
  readonly threadId: string;
  readonly runId: string;
  readonly #options: StreamOptions;
  readonly #subject: string;
  /** The last seq of the run that this writer has seen. 0: the run has not begun; undefined: not looked up yet. */
  #lastSeq: number | undefined;
  /** Whether the run has an end in the log. Events after it do not change that. */
  #hasEnded = false;
  #writtenAt = 0;
  #isClosed = false;
  /** The appends so far: the next one waits for them. */
  #appended: Promise<unknown> = Promise.resolve();

  constructor(options: StreamOptions) {
    this.#options = { ...options, database: options.database.ofThread(options.threadId) };
    this.scope = options.database.scope;
    this.threadId = options.threadId;
    this.runId = options.runId;
    this.#subject = `run ${JSON.stringify(options.runId)} of thread ${JSON.stringify(options.threadId)}`;
  }

  /** The offset that the client wants to resume from. null: the stream is a new one, to be written. */
  resumeFrom(): string | null {
    return this.#options.offset;
  }

  /**
   * Stores chunks, all or none, and returns their offsets. A call whose answer is lost is repeated and stores each chunk once.
   * Rejects with the error of the database if it refuses (the thread was erased, the run was cut off, another process has
   * written to this stream since), or stays away for longer than `retryTimeout`.
   */
  async append(chunks: StreamChunk[]): Promise<string[]> {
    const batch = this.#batchOf(chunks); // now, because the caller may change them
    return this.#inOrder(() => this.#write(batch));
  }

  /**
   * Stores chunks at the offsets that they have, all or none: a writer that resumes after a crash repeats what it may have
   * stored. The log keeps what it has, so a chunk at an offset that is stored must equal the stored one (apart from the
   * timestamp), and is not stored again. Other offsets must be the next ones. Returns the offsets.
   *
   * Rejects if an offset is none of the stream, occurs twice or is not the next one, if a chunk differs from the stored one, and
   * as `append` does.
   */
  async upsert(entries: { chunk: StreamChunk; offset: string }[]): Promise<string[]> {
    const chunks = new Map<number, StreamChunk>();
    Array.from(entries, (entry, i) => { // a sparse array also has its holes here
      if (!entry) throw new Error(`pgagui: entries[${i}] is missing`);
      if (!isSeq(entry.offset)) throw new Error(`pgagui: entries[${i}] has ${JSON.stringify(entry.offset)}, which is no offset (expected a seq)`);
      if (chunks.has(Number(entry.offset))) throw new Error(`pgagui: entries[${i}] repeats the offset ${entry.offset}`);
      chunks.set(Number(entry.offset), entry.chunk);
    });
    return this.#inOrder(async () => {
      const tail = await this.#tail();
      const added: [number, StreamChunk][] = [...chunks].filter(([seq]) => seq > tail);
      await this.#compare(new Map([...chunks].filter(([seq]) => seq <= tail)));
      const [first] = added[0] ?? [];
      const misplaced = added.findIndex(([seq], i) => seq !== first! + i);
      if (misplaced >= 0) {
        throw new Error(`pgagui: the offset ${added[misplaced]![0]} is not the next one behind ${added[misplaced - 1]![0]} in ${this.#subject}`);
      }
      await this.#write(this.#batchOf(added.map(([, chunk]) => chunk)), first);
      return Array.from(entries, ({ offset }) => offset);
    });
  }

  /** Fails if chunks are not those that are stored at their offsets. */
  async #compare(chunks: Map<number, StreamChunk>): Promise<void> {
    if (chunks.size === 0) return;
    const missing = new Set(chunks.keys());
    const lastSeq = Math.max(...missing);
    for await (const page of this.#pages(Math.min(...missing) - 1)) {
      for (const { seq, chunk } of withSeqs(page)) {
        if (!missing.has(seq) || !chunk) continue;
        missing.delete(seq);
        if (contentOf(chunk) !== contentOf(chunks.get(seq)!)) {
          throw new Error(`pgagui: the chunk for the offset ${seq} of ${this.#subject} is not the stored one, which the log keeps`);
        }
      }
      if (page.at(-1)!.seq >= lastSeq) break;
    }
    if (missing.size > 0) throw new Error(`pgagui: ${[...missing].join(", ")} is no offset of ${this.#subject}`);
  }

  #batchOf(chunks: StreamChunk[]): { events: string[]; hasEnd: boolean } {
    return {
      events: chunks.map((chunk) => eventOf(chunk, this.threadId, this.runId)),
      hasEnd: chunks.some((chunk) => chunk.type === "RUN_FINISHED" || chunk.type === "RUN_ERROR"),
    };
  }

  /** Stores events behind those of the stream, and returns their offsets. With a first seq, they get that one or are not stored. */
  async #write({ events, hasEnd }: { events: string[]; hasEnd: boolean }, firstSeq?: number): Promise<string[]> {
    if (events.length === 0) return [];
    const { heartbeats } = this.#options;
    const lastSeq = await this.#store(events, firstSeq);
    this.#hasEnded ||= hasEnd;
    this.#isClosed = false;
    if (heartbeats.add(this)) {
      // From its first heartbeat on, the run has the lease of heartbeats. If this one fails, the next comes in a second.
      heartbeats.beat(this).catch(() => {});
    }
    return events.map((_, i) => String(lastSeq - events.length + 1 + i));
  }

  /** Closes the stream: readers in all processes end. If the run has no end yet, it ends as failed. */
  async close(): Promise<void> {
    await this.#inOrder(async () => {
      if (this.#isClosed) return;
      this.#isClosed = true;
      try {
        if (await this.#tail() > 0) await this.#store([closingEvent(!this.#hasEnded)]);
      } catch (error) {
        // The log takes nothing more of this run: it has a child, was cut off or erased. So the stream is closed.
        if (![states.runEnded, states.threadErased, states.runCutOff].includes(codeOf(error) ?? "")) throw error;
      } finally {
        this.#options.heartbeats.delete(this);
      }
    });
  }

  /** All chunks that are stored now. */
  async snapshot(): Promise<{ offset: string; chunk: StreamChunk }[]> {
    const chunks: { offset: string; chunk: StreamChunk }[] = [];
    if (await this.#status() === undefined) return chunks;
    for await (const page of this.#pages(0)) chunks.push(...chunksOf(page));
    return chunks;
  }

  /**
   * Returns the chunks behind an offset (`-1`: from the start; `now`: those to come) until the stream is closed or the signal
   * is aborted. If the writer is gone, the run is ended on its behalf: the last chunk is then a RUN_ERROR with the code
   * RUN_CUT_OFF. Fails if the run is unknown, or the offset is not one of it.
   */
  async *read(offset: string, signal?: AbortSignal): AsyncGenerator<{ offset: string; chunk: StreamChunk }> {
    try {
      yield* this.#read(offset, signal);
    } catch (error) {
      if (!signal?.aborted) throw error;
    }
  }

  async *#read(offset: string, signal?: AbortSignal): AsyncGenerator<{ offset: string; chunk: StreamChunk }> {
    const run = await this.#begun(offset, signal);
    if (!run) return;
    const start = offset === "now" ? run.lastSeq : offset === "-1" ? run.firstSeq - 1 : Number(offset);
    if (offset !== "-1" && (start < run.firstSeq || start > run.lastSeq)) {
      throw new Error(`pgagui: offset ${offset} is not one of ${this.#subject} (expected ${run.firstSeq} to ${run.lastSeq})`);
    }

    // The page also has the event at the offset, which may be the one that closes the stream.
    let seq = start;
    let isClosed = false;
    let hasEnded = run.status !== "running";
    for await (const page of this.#pages(Math.max(start - 1, 0), signal)) {
      for (const { seq: at, chunk } of withSeqs(page)) if (at > start && chunk) yield { offset: String(at), chunk };
      seq = Math.max(seq, page.at(-1)!.seq);
      isClosed = isClosing(page.at(-1)!.event);
    }
    let mustCheck = hasEnded;

    const follower = this.#options.poller.follow({ threadId: this.threadId, seq });
    while (!isClosed && !signal?.aborted) {
      if (mustCheck && await this.#isOver(seq, signal)) return;
      const { batches } = await follower.next({ signal, forAtMost: checkInterval });
      mustCheck = batches.length === 0;
      for (const batch of batches) {
        if (batch.runId !== this.runId) {
          mustCheck = hasEnded; // it may be a child
          continue;
        }
        const page = batch.events.map((event, i) => ({ seq: batch.firstSeq + i, event }));
        hasEnded = batch.hasEnded;
        seq = page.at(-1)!.seq;
        isClosed = isClosing(page.at(-1)!.event);
        for (const { seq: at, chunk } of withSeqs(page)) {
          if (chunk) yield { offset: String(at), chunk };
        }
        mustCheck ||= hasEnded && page.at(-1)!.event.code === "RUN_CUT_OFF"; // the writer cannot close it any more
      }
    }
  }

  /** Receives what a heartbeat says about this run. */
  onSignal(signal: Signal): void {
    if (signal.isStopRequested || signal.cutOffReason !== null) {
      this.#options.abortController?.abort(signal.cutOffReason ?? signal.stopReason ?? "stop requested");
    }
    if (signal.cutOffReason !== null) {
      this.#options.heartbeats.delete(this);
    } else if (signal.status !== "running" && Date.now() - this.#writtenAt > signal.lease / 3) {
      // A run that has ended takes no heartbeats, but its stream may continue. So an event shows that the writer is alive. If
      // it cannot be stored, the next append says why.
      const store = async () => void (this.#isClosed || await this.#store([aliveEvent()]));
      this.#inOrder(store).catch(() => this.#options.heartbeats.delete(this));
    }
  }

  /**
   * Appends events behind those that this writer has seen, and returns the seq of the last one. With a first seq, they get that
   * one or are not stored.
   */
  async #store(events: string[], firstSeq?: number): Promise<number> {
    const { database, poller, retryTimeout, input, parentRunId } = this.#options;
    const lastSeq = await this.#tail();
    const append = async (beginning: { parallel?: boolean; parent?: string | undefined } = {}) => {
      const statement = "select agui.append($1, $2, $3::json, after_seq => $4, input => $5::json, parent_run_id => $6, parallel => $7, scope => $8)::text as seq";
      const values = [
        this.threadId, this.runId, `[${events.join(",")}]`, lastSeq, lastSeq === 0 ? input : null, beginning.parent,
        beginning.parallel ?? false, database.scope,
      ];
      if (firstSeq === undefined) {
        return Number((await database.query<{ seq: string }>(statement, values))[0]!.seq);
      }
      return database.transaction(async (connection) => {
        const seq = Number((await connection.query<{ seq: string }>(statement, values)).rows[0]!.seq);
        if (seq !== firstSeq + events.length - 1) {
          throw new Error(`pgagui: the offset ${firstSeq} is not the next one of ${this.#subject} (expected ${seq - events.length + 1})`);
        }
        return seq;
      });
    };
    const begin = async () => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await append({ parent: parentRunId });
        } catch (error) {
          if (codeOf(error) !== states.runInProgress) throw error;
        }
        // Another run is in progress: the user did not wait for the answer. If it is the head, the new run gets its parent.
        const [head] = await database.query<{ parent: string | null; status: string }>(
          `select parent_run_id as parent, status from agui.status($1, scope => $2)`, [this.threadId, database.scope],
        );
        try {
          return await append({ parallel: true, parent: parentRunId ?? (head!.status === "running" ? head!.parent ?? "" : undefined) });
        } catch (error) {
          if (codeOf(error) !== states.parentInProgress || parentRunId !== undefined || attempt === 5) throw error; // a third run began
        }
      }
    };
    const seq = await retry(lastSeq === 0 ? begin : append, { forAtMost: retryTimeout }).catch((error) => {
      if (isTransient(error)) this.#lastSeq = undefined; // the events may be stored: the next call checks
      throw error;
    });
    this.#lastSeq = seq;
    this.#writtenAt = Date.now();
    poller.wake();
    return seq;
  }

  /** The last seq of the run, 0 if it has not begun. */
  async #tail(): Promise<number> {
    if (this.#lastSeq === undefined) {
      const run = await this.#status();
      this.#hasEnded = run !== undefined && run.status !== "running";
      this.#lastSeq = run?.lastSeq ?? 0;
    }
    return this.#lastSeq;
  }

  #inOrder<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#appended.then(work);
    this.#appended = result.catch(() => {});
    return result;
  }

  /** The status of the run, undefined if it is unknown. */
  async #status(signal?: AbortSignal): Promise<RunStatus | undefined> {
    const { database, retryTimeout } = this.#options;
    try {
      const [row] = await retry(() => database.query<{ status: string; first_seq: string; last_seq: string }>(
        `select status, first_seq::text, last_seq::text from agui.status($1, $2, $3)`, [this.threadId, this.runId, database.scope],
      ), { forAtMost: retryTimeout, signal });
      return { status: row!.status, firstSeq: Number(row!.first_seq), lastSeq: Number(row!.last_seq) };
    } catch (error) {
      if (isUnknown(error)) return undefined;
      throw error;
    }
  }

  /** Waits until the run has begun, if a reader from the start may be earlier than its writer. undefined: aborted. */
  async #begun(offset: string, signal: AbortSignal | undefined): Promise<RunStatus | undefined> {
    const { firstChunkDeadline } = this.#options;
    const isJoin = offset === "-1" || offset === "now";
    if (!isJoin && !isSeq(offset)) {
      throw new Error(`pgagui: ${JSON.stringify(offset)} is no offset of ${this.#subject} (expected a seq, "-1" or "now")`);
    }
    for (const deadline = Date.now() + firstChunkDeadline; ; ) {
      const run = await this.#status(signal);
      if (run || signal?.aborted) return signal?.aborted ? undefined : run;
      if (!isJoin) throw new Error(`pgagui: ${this.#subject} is unknown`);
      if (Date.now() >= deadline) throw new Error(`pgagui: ${this.#subject} has no chunk after ${firstChunkDeadline} ms`);
      await pause(Math.min(beginInterval, Math.max(deadline - Date.now(), 1)), signal);
    }
  }

  /** The events of the run behind a seq that are stored now, in pages that are not empty. */
  async *#pages(afterSeq: number, signal?: AbortSignal): AsyncGenerator<StoredEvent[]> {
    const { database, retryTimeout } = this.#options;
    for (let after = afterSeq; ; ) {
      const rows = await retry(() => database.query<{ seq: string; event: string }>(
        `select seq::text, payload::text as event from agui.events($1, $2, $3, lineage => false, scope => $4) limit ${pageLength}`,
        [this.threadId, this.runId, after, database.scope],
      ), { forAtMost: retryTimeout, signal });
      if (rows.length > 0) yield rows.map((row) => ({ seq: Number(row.seq), event: JSON.parse(row.event) }));
      if (rows.length < pageLength) return;
      after = Number(rows.at(-1)!.seq);
    }
  }

  /**
   * Whether the stream is over although no event closed it. If the writer of the run is gone, this ends the run and returns
   * false, because the reader has not read that end yet.
   */
  async #isOver(seenSeq: number, signal: AbortSignal | undefined): Promise<boolean> {
    const { database, retryTimeout } = this.#options;
    const [run] = await retry(() => database.query<{ is_stale: boolean; is_over: boolean; last_seq: string }>(
      `select is_stale, last_seq::text,
          status <> 'running' and (
              cut_off_reason is not null
              or ended_at < clock_timestamp() - make_interval(secs => (select value from agui.setting where name = 'heartbeat_lease')::float)
              or exists (select from agui.children($1, $2, $3))
          ) as is_over
      from agui.status($1, $2, $3)`,
      [this.threadId, this.runId, database.scope],
    ), { forAtMost: retryTimeout, signal });
    if (run!.is_stale) {
      await retry(
        () => database.query(`select agui.abandon($1, $2, scope => $3)`, [this.threadId, this.runId, database.scope]),
        { forAtMost: retryTimeout, signal },
      );
    }
    return run!.is_over && Number(run!.last_seq) <= seenSeq;
  }
}

function isSeq(offset: unknown): boolean {
  return typeof offset === "string" && /^[1-9]\d{0,15}$/.test(offset);
}

/** A chunk as JSON, without the time at which it was made. */
function contentOf(chunk: StreamChunk): string {
  const { timestamp: _, ...content } = JSON.parse(JSON.stringify(chunk)) as { timestamp?: unknown };
  return JSON.stringify(content);
}

function withSeqs(page: StoredEvent[]): { seq: number; chunk: StreamChunk | undefined }[] {
  return page.map(({ seq, event }) => ({ seq, chunk: chunkOf(event) }));
}

function chunksOf(page: StoredEvent[]): { offset: string; chunk: StreamChunk }[] {
  return withSeqs(page).flatMap(({ seq, chunk }) => (chunk ? [{ offset: String(seq), chunk }] : []));
}
