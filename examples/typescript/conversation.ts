/** A conversation in PostgreSQL: append what an agent streams, read it, and show it in the client of AG-UI. Copy this file. */

import { setTimeout } from "node:timers/promises";
import { AbstractAgent, type AGUIEvent, type BaseEvent, type Message } from "@ag-ui/client";
import type { Pool } from "pg";
import { from, type Observable } from "rxjs";

export class Conversation {
  readonly threadId: string;
  readonly #pool: Pool;

  constructor(pool: Pool, threadId: string) {
    this.#pool = pool;
    this.threadId = threadId;
  }

  /**
   * Appends events to a run, and returns the seq of the last one. afterSeq is what the call before returned, or 0 for
   * the first call of a run: then a call whose answer was lost can be repeated, and nothing is stored twice.
   */
  async append(runId: string, events: AGUIEvent[], afterSeq: number): Promise<number> {
    const { rows } = await this.#pool.query<{ seq: string }>(
      "select agui.append($1, $2, $3, after_seq => $4) as seq",
      [this.threadId, runId, JSON.stringify(events), afterSeq],
    );
    return Number(rows[0]!.seq);
  }

  /** The messages as they are now. */
  async messages(): Promise<Message[]> {
    const { rows } = await this.#pool.query<{ message: Message }>("select message from agui.messages($1)", [this.threadId]);
    return rows.map((row) => row.message);
  }

  /** Yields the history as events that bring an empty client up to date, and then what follows, until no run is in progress. */
  async *events(): AsyncGenerator<BaseEvent> {
    const attached = await this.#pool.query<{ seq: string; at: string | null; running: string[]; events: BaseEvent[] }>(
      "select seq, recorded_at::text as at, running, events from agui.attach($1)",
      [this.threadId],
    );
    let { seq, at, running: listed, events } = attached.rows[0]!;
    const running = new Set(listed);
    yield* events;
    for (;;) {
      const { rows } = await this.#pool.query<Polled>(
        `select run_id, status, first_seq + n - 1 as seq, recorded_at::text as at, events, problem
         from agui.poll(array[$1], array[$2::bigint], array[$3::timestamptz])`,
        [this.threadId, seq, at],
      );
      for (const row of rows) {
        if (row.problem) throw new Error(`thread ${this.threadId} cannot be followed: SQLSTATE ${row.problem}`);
        if (!row.events) continue; // there is more, which the next call returns
        ({ seq, at } = row);
        if (row.status === "running") running.add(row.run_id);
        else running.delete(row.run_id);
        yield* row.events;
      }
      if (rows.length === 0 && running.size === 0) return;
      if (rows.length === 0) await setTimeout(50);
    }
  }
}

interface Polled {
  run_id: string;
  status: string;
  seq: string;
  at: string;
  events: BaseEvent[] | null;
  problem: string | null;
}

/** The client of AG-UI on a stored conversation: connectAgent fills its messages and state, and follows a run in progress. */
export class StoredAgent extends AbstractAgent {
  readonly #conversation: Conversation;

  constructor(conversation: Conversation) {
    super({ threadId: conversation.threadId });
    this.#conversation = conversation;
  }

  run(): Observable<BaseEvent> {
    throw new Error("this agent only shows what is stored");
  }

  protected override connect(): Observable<BaseEvent> {
    return from(this.#conversation.events());
  }
}
