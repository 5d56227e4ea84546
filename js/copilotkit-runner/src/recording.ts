import { randomUUID } from "node:crypto";
import {
  classOf, codeOf, isTimeout, isTransient, isUnknown, pause, retry, states, type AguiEvent, type Beating, type Database, type Heartbeats, type Signal,
} from "@pgagui/postgres";
import { AnswerRefused, answerOf, idOfAnswer, type Answer } from "./answer.ts";
import { isEnd, isObject, textOf } from "./events.ts";
import { Finalizer, type Ending } from "./finalize.ts";
import { messageOf, Outage, type Log } from "./log.ts";

export interface RecordingOptions {
  threadId: string;
  runId: string;
  /** The RunAgentInput, kept beside the events of a run whose RUN_STARTED does not carry one. */
  input: object;
  /** The parent of the run: '' for none, undefined for the head. */
  parentRunId: string | undefined;
  /** The name of the agent, for lists of threads. */
  agentId: string | undefined;
  /** The user who begins the run, for lists of threads. */
  user: string | undefined;
  /** Called when events are stored, in their order, with the seq of the first one. The next ones wait until it has resolved. */
  onStored(events: AguiEvent[], firstSeq: number): Promise<void>;
  /** Called when the agent should end: the run should stop, or cannot be recorded. */
  onStop(): void;
  log: Log;
}

/** The member of the metadata of a thread that names the user who began it. */
export const userMember = "user";
/** The bounds of a batch, which is a row of the log and a call of agui.append. */
const maxBatchEvents = 500;
const maxBatchBytes = 64 << 10;
/** Beyond this, push waits: the agent sends more than the database takes, or the database is away. */
const maxPendingBytes = 4 << 20;
/** The bound of what waits for the end of the agent. Beyond it, the run fails. */
const maxHeldBytes = 16 << 20;
/** How long to retry while the database does not answer and nothing is stored yet: the client waits. */
const claimTimeout = 15_000;
/** How long to wait for the end of a run that should give way, in milliseconds: longer than the default lease of one that is dead. */
const giveWayTimeout = 60_000;
/** How often to check whether that run has ended, in milliseconds. */
const giveWayInterval = 100;

/** Stores the events of one run, in batches, in order and each exactly once. */
export class Recording implements Beating {
  readonly threadId: string;
  /** From the claim on; an answer may have the id of the run that asks before. */
  runId: string;
  readonly scope: string;
  readonly #database: Database;
  readonly #heartbeats: Heartbeats;
  readonly #options: RecordingOptions;
  readonly #outage: Outage;
  readonly #claimant = randomUUID();
  readonly #answer: Answer | undefined;
  #finalizer!: Finalizer; // from the claim on

  /** The parent of the run, '' for none, from the claim on. */
  parentRunId = "";
  isClaimed = false;
  #hasInput = false; // RUN_STARTED carries one
  #pending: string[] = [];
  #pendingBytes = 0;
  #sending: Promise<void> | undefined;
  #room: (() => void)[] = []; // callers of push that wait
  #seq = 0; // of the last event that is stored
  #held: AguiEvent[] = []; // ends of the agent, and what follows a RUN_ERROR: stored when it has ended
  #heldBytes = 0;
  #isFinishing = false;

  /** Why the run should stop before its agent has ended. */
  #stop: Ending | undefined;
  /** Why nothing more can be stored. */
  failure: Error | undefined;

  constructor(database: Database, heartbeats: Heartbeats, options: RecordingOptions) {
    this.threadId = options.threadId;
    this.runId = options.runId;
    this.scope = database.scope;
    this.#database = database.ofThread(options.threadId);
    this.#heartbeats = heartbeats;
    this.#options = options;
    this.#outage = new Outage(options.log, "appends");
    this.#answer = answerOf(options.input);
  }

  /**
   * Takes the place of the run in its thread, and keeps it alive from then on. With supersede, it requests a run in progress to
   * stop, in any process, and waits until it has ended. An answer becomes a run of its own if it has the id of the run that asks.
   * Returns false if the same answer came before: its run is there, or will be.
   *
   * Errors: "Thread already running"; AnswerRefused; those of the database.
   */
  async claim({ supersede }: { supersede: boolean }): Promise<boolean> {
    const { threadId, scope } = this;
    const answer = this.#answer;
    let asking: string | undefined; // the run that asks, if the answer has its id
    for (const begin = Date.now(); !this.isClaimed; ) {
      try {
        const [row] = await this.#untilAnswered<{ parent_run_id: string | null }>(
          `select parent_run_id from agui.claim_run(
            thread_id => $1, run_id => $2, claimant => $3, input => $4::json, parent_run_id => $5, scope => $6
          )`,
          [threadId, this.runId, this.#claimant, answer ? this.#input : null, this.#options.parentRunId ?? null, scope],
        );
        this.parentRunId = row?.parent_run_id ?? "";
        this.isClaimed = true;
      } catch (error) {
        const code = codeOf(error);
        const isKnown = code === states.runIDInUse;
        if (answer && (isKnown || code === states.conflictingRepeat)) {
          if (asking === undefined && isKnown || asking !== undefined && !(await this.#mayBeRepeated(isKnown))) {
            if (isKnown) {
              return false;
            }
            throw new AnswerRefused(messageOf(error), { cause: error });
          }
          asking ??= this.runId;
          this.runId = idOfAnswer(asking, this.runId, answer);
          continue;
        }
        if (code !== states.runInProgress) {
          throw error;
        }
        if (answer) {
          throw new AnswerRefused(messageOf(error), { cause: error });
        }
        if (!supersede || Date.now() - begin > giveWayTimeout) {
          throw new Error("Thread already running", { cause: error });
        }
        await this.#untilAnswered("select agui.request_stop(thread_id => $1, reason => 'superseded by another run', scope => $2)", [threadId, scope])
          .catch((failure: unknown) => {
            if (!isUnknown(failure)) { // it has ended before it began
              throw failure;
            }
          });
        await pause(giveWayInterval);
        if (this.#stop && !this.#stop.isStopped) {
          throw new Error(this.#stop.message, { cause: error });
        }
      }
    }
    if (answer && this.parentRunId !== "" && this.#options.parentRunId === undefined) {
      await this.#refuseAnswered(answer, asking).catch(async (error: unknown) => {
        await this.#abandon(asError(error));
        throw error;
      });
    }
    this.#finalizer = new Finalizer(threadId, this.runId);
    this.#heartbeats.add(this);
    return true;
  }

  #untilAnswered<Row extends object>(text: string, values: unknown[]): Promise<Row[]> {
    const database = this.#database.within(claimTimeout / 3);
    return retry(() => database.query<Row>(text, values), { forAtMost: claimTimeout, onRetry: (error) => this.#outage.failed(error) });
  }

  /** Whether an answer may be given once more: its run failed, or the run of another one asks more. */
  async #mayBeRepeated(isKnown: boolean): Promise<boolean> {
    const [row] = await this.#untilAnswered<{ status: string }>(
      "select status from agui.status(thread_id => $1, run_id => $2, scope => $3)", [this.threadId, this.runId, this.scope],
    ).catch((error: unknown) => {
      if (isUnknown(error)) { // it is claimed
        return [];
      }
      throw error;
    });
    return row !== undefined && ["failed", "cut_off", ...(isKnown ? [] : ["interrupted"])].includes(row.status);
  }

  /** Refuses an answer to what is answered: the agent would act twice on one question. */
  async #refuseAnswered({ interruptIds, question }: Answer, asking: string | undefined): Promise<void> {
    const [row] = await this.#untilAnswered<{ asking_run_id: string | null; answered_by: string | null; at: string }>(
      `select asking_run_id, answered_by, to_char(answered_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as at
      from agui.answered(thread_id => $1, run_id => $2, asked_by => $3, interrupt_ids => $4::text[], question => $5::json, scope => $6)`,
      [this.threadId, this.parentRunId, asking ?? null, interruptIds, question ?? null, this.scope],
    );
    const { asking_run_id: asked, answered_by: by, at } = row!;
    const remedy = "Load the conversation again. To answer once more, on another branch, name the run that asks as parentRunId.";
    if (by !== null) {
      throw new AnswerRefused(`What run "${asked}" asks was answered at ${at}, by run "${by}". ${remedy}`);
    }
    if (asked === null && asking !== undefined) {
      throw new AnswerRefused(`The conversation has gone on in another branch than that of run "${asking}", which asks. ${remedy}`);
    }
  }

  /** The input with the id of the run, as JSON. */
  get #input(): string {
    return JSON.stringify({ ...this.#options.input, runId: this.runId });
  }

  /** Takes an event of the agent. Resolves when there is room for more. After a failure it takes nothing. */
  async push(event: AguiEvent): Promise<void> {
    const isOfAbort = this.#stop?.isStopped && event.type === "RUN_ERROR"; // HttpAgent takes the abort for a failure
    if (this.#isFinishing || this.failure || this.#stop?.code || isOfAbort) {
      return;
    }
    try {
      if (isEnd(event) || this.#held.some((held) => held.type === "RUN_ERROR")) {
        // Stored when the agent has ended: agents send RUN_FINISHED for each turn of the model, and go on.
        this.#heldBytes += textOfEvent(event).length;
        this.#held.push(event);
        if (this.#heldBytes > maxHeldBytes) {
          this.#held = this.#held.filter(isEnd);
          this.#refuse(`The agent sent more than ${maxHeldBytes >> 20} MB after an end of its run.`, "EVENTS_AFTER_END");
        }
      } else {
        this.#add(event);
      }
    } catch (error) {
      this.#refuse(`The agent sent an event that is no JSON: ${messageOf(error)}`, "NOT_STORED");
    }
    if (this.#pendingBytes > maxPendingBytes) {
      await new Promise<void>((resolve) => this.#room.push(resolve));
    }
  }

  /** Stores what is pending and the end of the run: that of the agent, or one that says why there is none. */
  async finish(ending: { message?: string | undefined }): Promise<void> {
    this.#isFinishing = true; // a heartbeat that answers from now on is out of date
    try {
      if (!this.failure) {
        this.#held.forEach((event) => this.#add(event));
        this.#finalizer.end({ isStopped: false, ...ending, ...this.#stop }).forEach((event) => this.#add(event));
      }
    } catch (error) { // the agent has changed an event since it sent it
      this.#fail(asError(error));
    }
    await this.#sending;
    this.#heartbeats.delete(this);
    if (this.failure) {
      await this.#abandon(this.failure);
    }
  }

  /** Whether the run should stop, or cannot be stored. */
  get isStopped(): boolean {
    return this.#stop !== undefined || this.failure !== undefined;
  }

  /** Requests the agent to stop. When it has ended, the run ends as the ending says. An ending with a code replaces one without. */
  stop(ending: Ending): void {
    if (!this.#isFinishing && (!this.#stop || ending.code)) {
      this.#stop = ending;
      this.#options.onStop();
    }
  }

  /** Takes no more events of the agent. The run ends as failed behind those that were taken. */
  #refuse(message: string, code: string): void {
    this.#options.log({ level: "error", message, threadId: this.threadId, runId: this.runId });
    this.stop({ isStopped: false, message, code });
  }

  onSignal({ status, isStopRequested, cutOffReason }: Signal): void {
    if (this.#isFinishing || this.failure) {
      return;
    }
    if (status !== "running" && status !== "claimed") {
      this.#fail(new Error(cutOffReason === null ? "another writer ended it" : `it was cut off: ${cutOffReason}`));
    } else if (isStopRequested) {
      this.stop({ isStopped: true });
    }
  }

  #add(event: AguiEvent): void {
    const { threadId, runId } = this;
    if (this.#pending.length === 0 && this.#seq === 0 && !this.#finalizer.hasStarted && event.type !== "RUN_STARTED") {
      this.#add({ type: "RUN_STARTED", threadId, runId });
    }
    if (event.type.startsWith("RUN_")) {
      event = withIds(event, { threadId, runId });
    }
    if (!this.#finalizer.hasStarted) {
      this.#hasInput = isObject(event.input);
    }
    const text = textOfEvent(event);
    this.#finalizer.observe(event);
    this.#pending.push(text);
    this.#pendingBytes += text.length;
    this.#sending ??= this.#send().finally(() => (this.#sending = undefined));
  }

  /** Sends what is pending, one call after the other. What arrives meanwhile shares the next call. */
  async #send(): Promise<void> {
    await undefined; // events that arrive together share a call
    while (this.#pending.length > 0 && !this.failure) {
      const batch = this.#nextBatch();
      try {
        this.#seq = await this.#append(batch);
        this.#pending.splice(0, batch.length);
        this.#pendingBytes -= batch.reduce((size, text) => size + text.length, 0);
        this.#makeRoom();
        await this.#options.onStored(batch.map((text) => JSON.parse(text) as AguiEvent), this.#seq - batch.length + 1);
      } catch (error) { // also of onStored: a rejection that nothing handles would end the process
        this.#fail(asError(error));
      }
    }
  }

  #nextBatch(): string[] {
    let bytes = 0;
    const end = this.#pending.findIndex((text, i) => i === maxBatchEvents || (bytes += text.length) > maxBatchBytes && i > 0);
    return end < 0 ? [...this.#pending] : this.#pending.slice(0, end);
  }

  async #append(batch: string[]): Promise<number> {
    const { threadId, runId, scope } = this;
    const isFirst = this.#seq === 0;
    const input = isFirst && !this.#hasInput ? this.#input : null;
    const append = async () => {
      const [row] = await this.#database.query<{ seq: string }>(
        `select agui.append(
          thread_id => $1, run_id => $2, events => $3::json, after_seq => $4::bigint, input => $5::json, parent_run_id => $6, scope => $7
        ) as seq`,
        [threadId, runId, `[${batch.join(",")}]`, this.#seq, input, isFirst ? this.parentRunId : null, scope],
      );
      return Number(row!.seq);
    };
    const seq = await retry(append, {
      // A heartbeat has succeeded before each retry. So if calls time out in a row, these events are the cause.
      classify: (error) => (isTimeout(error) ? "uncertain" : classOf(error)),
      onRetry: async (error) => {
        this.#outage.failed(error);
        // After an outage the heartbeats come first. Otherwise a run that begins now could cut off a run whose writer could not
        // reach the database. A permanent error may concern another run. Whether this run has one, the append shows.
        await this.#heartbeats.beat(this).catch((failure: unknown) => {
          if (isTransient(failure)) {
            throw failure;
          }
        });
      },
    });
    this.#outage.succeeded();
    if (isFirst && this.parentRunId === "") {
      await this.#describeThread();
    }
    return seq;
  }

  /** Stores which agent and which user began a thread. Only lists show it. */
  async #describeThread(): Promise<void> {
    const { threadId, scope } = this;
    const { agentId, user } = this.#options;
    if (!agentId && user === undefined) {
      return;
    }
    try {
      await this.#database.query(
        "select from agui.set_thread(thread_id => $1, agent => $2, metadata => $3, scope => $4)",
        [threadId, agentId || null, user === undefined ? null : JSON.stringify({ [userMember]: user }), scope],
      );
    } catch (error) {
      this.#options.log({ level: "warn", message: "the agent and the user of a thread could not be stored", threadId, error });
    }
  }

  #fail(error: Error): void {
    this.failure = error;
    this.#options.log({ level: "error", message: "the run could not be recorded to its end", threadId: this.threadId, runId: this.runId, error });
    this.#pending = [];
    this.#pendingBytes = 0;
    this.#makeRoom();
    this.#options.onStop();
  }

  #makeRoom(): void {
    if (this.#pendingBytes <= maxPendingBytes) {
      this.#room.splice(0).forEach((proceed) => proceed());
    }
  }

  /** Ends the run in the log after a failure, so that the next one can begin. Otherwise its lease would end it. */
  async #abandon(failure: Error): Promise<void> {
    const { threadId, runId, scope } = this;
    if (codeOf(failure) === states.conflictingRepeat) {
      return; // another writer has the run
    }
    try {
      await this.#database.query("select agui.release_claim(thread_id => $1, run_id => $2, claimant => $3, scope => $4)",
        [threadId, runId, this.#claimant, scope]);
      if (this.#seq > 0) {
        await this.#database.query("select agui.abandon(thread_id => $1, run_id => $2, reason => $3, scope => $4)",
          [threadId, runId, messageOf(failure), scope]);
      }
    } catch (error) {
      if (!isTransient(error)) {
        this.#options.log({ level: "warn", message: "a run could not be ended, its lease ends it", threadId, runId, error });
      }
    }
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** The event with the ids that the client gave the run. Some agents have ids of their own. */
function withIds(event: AguiEvent, ids: { threadId: string; runId: string }): AguiEvent {
  const isOther = (member: "threadId" | "runId") => textOf(event, member) !== undefined && event[member] !== ids[member];
  if (!isOther("threadId") && !isOther("runId")) {
    return event;
  }
  return { ...event, ...("threadId" in event && { threadId: ids.threadId }), ...("runId" in event && { runId: ids.runId }) };
}

/** The event as JSON. rawEvent, what a framework attached, may have no JSON. */
function textOfEvent(event: AguiEvent): string {
  try {
    return JSON.stringify(event);
  } catch {
    const { rawEvent: _, ...rest } = event;
    return JSON.stringify(rest);
  }
}
