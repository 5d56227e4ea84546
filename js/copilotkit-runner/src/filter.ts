// Keeps a stream valid for the clients of CopilotKit 1.75 (@ag-ui/client 0.0.59). Their schema and their verifier end a run with
// an error where an event is malformed or misplaced, but the log keeps whatever an agent sent.

import type { AguiEvent } from "@pgagui/postgres";
import { conform, isToolCall } from "./conform.ts";
import { textOf } from "./events.ts";
import { actions, closesLane, parts, type Part } from "./protocol.ts";
import { Thinking } from "./thinking.ts";

type Tag = string | undefined; // the subagent of an event; undefined: the main agent

/** What a chunk continues: an agent has one stream of chunks at a time. */
interface Lane {
  kind: Kind;
  id: string;
}

/** What has a start, pieces and an end. */
interface Kind {
  bucket: "message" | "toolCall" | "reasoning";
  id: "messageId" | "toolCallId";
  start: string;
  piece: string;
  end: string;
}

const text: Kind = { bucket: "message", ...parts.text };
const call: Kind = { bucket: "toolCall", ...parts.tool };
const thought: Kind = { bucket: "reasoning", ...parts.reasoning };
const kinds: Partial<Record<Part, Kind>> = { text, tool: call, reasoning: thought, span: { bucket: "reasoning", ...parts.span } };

/** What an event does, and to what. */
function actionOf(event: AguiEvent): { does: string; part?: Part | undefined; kind?: Kind | undefined } {
  const { does, part } = actions.get(event.type) ?? { does: "" };
  return { does, part, kind: part && kinds[part] };
}

/**
 * The filter of one stream to one client. A valid stream passes unchanged, with two exceptions: chunks become starts, pieces and
 * ends, and RUN_FINISHED is sent last, because agents send events after it. The filter adds starts and ends that are missing, and
 * leaves out what the client refuses, and what the fold skips: pieces of messages that are not there. Thinking becomes reasoning.
 */
export class ClientFilter {
  #run: { threadId: string; runId: string };
  #phase: "before" | "running" | "finished" | "failed" = "before";
  #finished: AguiEvent | undefined; // the RUN_FINISHED that waits
  /** What is open, in the order of its starts, with the event that ends it. */
  #open = new Map<string, AguiEvent>();
  /** The agents that messages, calls and thoughts belong to. */
  #owners = new Map<string, Tag>();
  #callNames = new Map<string, string>();
  /** The roles of the messages that a fold of the log has here. */
  #messages = new Map<string, string>();
  #thinking = new Thinking();
  #lanes = new Map<Tag, Lane>();
  #endedSubagents = new Set<string>();
  #added: AguiEvent[] = [];

  constructor(threadId: string, runId: string) {
    this.#run = { threadId, runId };
  }

  /** Prepares for the events of another run. Returns what ends the run before, as end does. */
  begin(runId: string): AguiEvent[] {
    const ending = this.end();
    this.#run = { ...this.#run, runId };
    this.#phase = "before";
    this.#thinking = new Thinking();
    this.#reset();
    return ending;
  }

  /** Says which messages the conversation has before the run. */
  know(messages: Iterable<[id: string, role: string]>): void {
    this.#messages = new Map(messages);
  }

  /** Takes the next event of the log, and returns what to send. Events of a history have no seq. */
  push(event: AguiEvent, seq = 0): AguiEvent[] {
    this.#added = [];
    const conformed = conform(this.#thinking.read(event, this.#run.runId, seq), this.#run);
    if (conformed) {
      this.#take(conformed);
    }
    return this.#added;
  }

  /**
   * Says that the run has no more events, and returns what ends it, if it has begun and has no end yet: the RUN_FINISHED that
   * waits, a RUN_ERROR with the message failure, or else a RUN_FINISHED.
   */
  end(failure?: { message: string; code: string }): AguiEvent[] {
    this.#added = [];
    if (this.#phase === "finished" || this.#phase === "failed" || this.#phase === "before" && !failure) {
      return [];
    }
    if (failure && !this.#finished) {
      this.#take({ type: "RUN_ERROR", ...failure });
      return this.#added;
    }
    this.#finished ??= { type: "RUN_FINISHED", ...this.#run };
    this.#finish();
    return this.#added;
  }

  #take(event: AguiEvent): void {
    const tag = textOf(event, "subagentRunId");
    switch (event.type) {
      case "RUN_STARTED":
        return this.#startRun(event);
      case "RUN_FINISHED":
        if (this.#phase === "before" || this.#phase === "running") {
          this.#ensureRun();
          this.#closeLanes();
          this.#finished = event; // the last one counts
        }
        return;
      case "RUN_ERROR":
        if (this.#phase !== "failed") {
          this.#ensureRun(); // the run before may have failed
          this.#closeLanes();
          this.#finish();
          this.#phase = "failed";
          this.#added.push(event);
        }
        return;
    }
    if (this.#phase === "finished" || this.#phase === "failed") {
      return;
    }
    const { does, kind } = actionOf(event);
    const chunk = does === "chunk" ? kind : undefined;
    const isAccepted = this.#isAccepted(event, tag);
    if (isAccepted) {
      this.#ensureRun();
    }
    if (does === "list messages") {
      this.#closeLanes();
    } else if (closesLane.has(event.type)) {
      this.#closeLane(tag); // also where the event is left out
    }
    if (isAccepted) {
      chunk ? this.#takeChunk(chunk, event, tag) : this.#place(event, tag);
    }
  }

  // --- the life of a run ---

  #startRun(event: AguiEvent): void {
    if (this.#phase === "running" && !this.#finished) {
      this.#closeLanes();
      return; // a second one
    }
    this.#finish();
    this.#reset();
    this.#phase = "running";
    this.#run = { threadId: textOf(event, "threadId")!, runId: textOf(event, "runId")! };
    const input = event.input as { messages?: unknown } | undefined;
    this.#learn(input?.messages, false);
    this.#added.push(event);
  }

  #ensureRun(): void {
    if (this.#phase === "before") {
      this.#reset();
      this.#phase = "running";
      this.#added.push({ type: "RUN_STARTED", ...this.#run });
    }
  }

  #reset(): void {
    this.#open.clear();
    this.#owners.clear();
    this.#lanes.clear();
    this.#endedSubagents.clear();
  }

  /** Sends the RUN_FINISHED that waits, if one does, behind the ends of what is open. */
  #finish(): void {
    if (this.#finished) {
      this.#added.push(...[...this.#open.values()].reverse(), this.#finished);
      this.#finished = undefined;
      this.#phase = "finished";
    }
  }

  // --- what the verifier accepts ---

  /** Whether the verifier accepts an event of a subagent here, after the filter has added what is missing before it. */
  #isAccepted(event: AguiEvent, tag: Tag): boolean {
    const { does, part, kind } = actionOf(event);
    if (kind && does === "chunk") {
      return this.#laneOf(kind, event, tag) !== undefined;
    }
    if (kind) {
      const id = textOf(event, kind.id)!;
      const isOpen = this.#open.has(kind.end + id);
      if (does === "start" ? isOpen && !isLane(this.#lanes.get(tag), kind, id) : !isOpen && does === "end") {
        return false;
      }
      if (this.#contradicts(kind.bucket, id, tag) || does === "start" && kind === call && !this.#fitsParent(event, id, tag)) {
        return false;
      }
      return isOpen || does === "start" || (kind === call ? this.#callNames.has(id) : (this.#messages.get(id) ?? "activity") !== "activity");
    }
    switch (part ? `${does} ${part}` : does) {
      case "start step":
        return !this.#open.has(stepKey(event, tag));
      case "end step":
        return this.#open.has(stepKey(event, tag));
      case "patch state":
        return !isRefused(event.delta);
      case "patch activity":
        return !this.#contradicts("activity", textOf(event, "messageId")!, tag) && !isRefused(event.patch);
      case "encrypt": {
        const id = textOf(event, "entityId")!;
        const bucket = event.subtype === "tool-call" ? "toolCall" : this.#owners.has(`message ${id}`) ? "message" : "reasoning";
        return !this.#contradicts(bucket, id, tag);
      }
      case "start subagent": {
        const parent = textOf(event, "parentSubagentRunId");
        const isKnown = (id: string) => this.#open.has(parts.subagent.end + id) || this.#endedSubagents.has(id);
        return !isKnown(tag!) && (parent === undefined || isKnown(parent));
      }
      case "end subagent":
        return this.#open.has(parts.subagent.end + tag!);
    }
    return true;
  }

  /** Sends an event that the verifier accepts, and records what it means. */
  #place(event: AguiEvent, tag: Tag): void {
    const { does, part, kind } = actionOf(event);
    if (kind && does === "start") {
      return this.#start(kind, event, tag);
    }
    if (kind && does === "continue") {
      const id = textOf(event, kind.id)!;
      if (!this.#open.has(kind.end + id)) {
        this.#start(kind, { type: kind.start, [kind.id]: id, ...this.#startMembers(kind, id), ...tagged(tag) }, tag);
      }
    } else if (kind) {
      const id = textOf(event, kind.id)!;
      for (const [owner, lane] of this.#lanes) {
        if (isLane(lane, kind, id)) {
          this.#lanes.delete(owner);
        }
      }
      if (!this.#open.delete(kind.end + id)) {
        return; // the end of the chunks was its end
      }
    }
    switch (part ? `${does} ${part}` : does) {
      case "start step":
        this.#open.set(stepKey(event, tag), { type: parts.step.end, stepName: event.stepName, ...tagged(tag) });
        break;
      case "end step":
        this.#open.delete(stepKey(event, tag));
        break;
      case "start subagent":
        this.#open.set(parts.subagent.end + tag!, { type: parts.subagent.end, subagentRunId: tag });
        break;
      case "end subagent":
        this.#open.delete(parts.subagent.end + tag!);
        this.#endedSubagents.add(tag!);
        break;
      case "show activity":
        if (!this.#owners.has(`activity ${textOf(event, "messageId")}`) || event.replace !== false) {
          this.#owners.set(`activity ${textOf(event, "messageId")}`, tag);
          this.#messages.set(textOf(event, "messageId")!, "activity");
        }
        break;
      case "add result":
        this.#owners.set(`message ${textOf(event, "messageId")}`, tag);
        this.#has(textOf(event, "messageId")!, "tool");
        break;
      case "list messages":
        this.#forget(event.messages as AguiEvent[]);
        this.#learn(event.messages, true);
        break;
    }
    this.#added.push(event);
  }

  #start(kind: Kind, event: AguiEvent, tag: Tag): void {
    const id = textOf(event, kind.id)!;
    const key = `${kind.bucket} ${id}`;
    if (kind === call) {
      const parent = this.#callNames.has(id) ? undefined : textOf(event, "parentMessageId") || id;
      if (parent !== undefined && this.#has(parent, "assistant") !== "assistant") {
        this.#has(id, "assistant");
      }
      this.#callNames.set(id, textOf(event, "toolCallName")!);
    } else if (kind === text || kind === thought) {
      this.#has(id, textOf(event, "role") ?? "assistant");
    }
    if (!this.#owners.has(key)) {
      const parent = kind === call && tag === undefined ? `message ${textOf(event, "parentMessageId")}` : "";
      this.#owners.set(key, this.#owners.has(parent) ? this.#owners.get(parent) : tag);
    }
    this.#open.set(kind.end + id, { type: kind.end, [kind.id]: id });
    this.#added.push(event);
  }

  #startMembers(kind: Kind, id: string): object {
    return kind === call ? { toolCallName: this.#callNames.get(id) } : { role: kind === thought ? "reasoning" : "assistant" };
  }

  #contradicts(bucket: string, id: string, tag: Tag): boolean {
    return tag !== undefined && this.#owners.has(`${bucket} ${id}`) && this.#owners.get(`${bucket} ${id}`) !== tag;
  }

  /** Whether a call and the message that it belongs to are of the same agent. */
  #fitsParent(event: AguiEvent, id: string, tag: Tag): boolean {
    const parent = `message ${textOf(event, "parentMessageId")}`;
    if (!this.#owners.has(parent)) {
      return true;
    }
    const owner = this.#owners.get(parent);
    return tag !== undefined ? owner === tag : !this.#owners.has(`toolCall ${id}`) || this.#owners.get(`toolCall ${id}`) === owner;
  }

  /** Records a message unless it is there, and returns its role. */
  #has(id: string, role: string): string {
    this.#messages.set(id, this.#messages.get(id) ?? role);
    return this.#messages.get(id)!;
  }

  /** Forgets what a list of messages takes away. Activities have no pieces, and reasoning stays if the list has none. */
  #forget(list: AguiEvent[]): void {
    const hasReasoning = list.some(({ role }) => role === "reasoning");
    for (const [id, role] of this.#messages) {
      if (hasReasoning || role !== "reasoning") {
        this.#messages.delete(id);
      }
    }
    for (const id of this.#callNames.keys()) {
      if (!this.#open.has(call.end + id)) {
        this.#callNames.delete(id);
      }
    }
  }

  /** Records which agents the messages of a list and their calls belong to. A snapshot overwrites earlier records. */
  #learn(messages: unknown, isSnapshot: boolean): void {
    if (!Array.isArray(messages)) {
      return;
    }
    const record = (key: string, tag: Tag) => {
      if (isSnapshot || !this.#owners.has(key)) {
        this.#owners.set(key, tag);
      }
    };
    for (const message of messages as AguiEvent[]) {
      const tag = textOf(message, "subagentRunId");
      const role = textOf(message, "role");
      this.#has(textOf(message, "id")!, role!);
      record(`${role === "reasoning" || role === "activity" ? role : "message"} ${textOf(message, "id")}`, tag);
      // The schema of the client describes the calls of assistants only. Other messages may have anything there.
      const calls = Array.isArray(message.toolCalls) ? message.toolCalls.filter(isToolCall) : [];
      for (const item of calls as { id: string; function: { name: string } }[]) {
        record(`toolCall ${item.id}`, tag);
        this.#callNames.set(item.id, item.function.name);
      }
    }
  }

  // --- chunks ---

  /** Returns the agent and the lane that a chunk belongs to, or undefined if the client refuses the chunk. */
  #laneOf(kind: Kind, event: AguiEvent, tag: Tag): { tag: Tag; lane: Lane } | undefined {
    const id = textOf(event, kind.id);
    const same = [...this.#lanes].filter(([, lane]) => lane.kind === kind && (id === undefined || lane.id === id));
    const own = this.#lanes.get(tag);
    if (id === undefined) {
      if (own?.kind === kind) {
        return { tag, lane: own };
      }
      return tag === undefined && same.length === 1 ? { tag: same[0]![0], lane: same[0]![1] } : undefined;
    }
    if (same[0]) {
      return tag === undefined || tag === same[0][0] ? { tag: same[0][0], lane: same[0][1] } : undefined;
    }
    const isOpen = this.#open.has(kind.end + id);
    if (kind === call && !isOpen && (textOf(event, "toolCallName") === undefined || !this.#fitsParent(event, id, tag))) {
      return undefined;
    }
    return this.#contradicts(kind.bucket, id, tag) ? undefined : { tag, lane: { kind, id } };
  }

  #takeChunk(kind: Kind, event: AguiEvent, givenTag: Tag): void {
    const { tag, lane } = this.#laneOf(kind, event, givenTag)!;
    const { delta, toolCallName, parentMessageId, role, name, timestamp, metadata } = event;
    const common = {
      [kind.id]: lane.id, ...this.#attributed(lane, tag), ...(timestamp !== undefined && { timestamp }), ...(metadata !== undefined && { metadata }),
    };
    let isStarted = true;
    if (this.#lanes.get(tag) !== lane) {
      this.#closeLane(tag);
      this.#lanes.set(tag, lane);
      isStarted = this.#open.has(kind.end + lane.id); // by a start, not by a chunk
      if (!isStarted) {
        const own = kind === call ? { toolCallName, parentMessageId } : kind === text ? { role: role ?? "assistant", name } : { role: "reasoning" };
        const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined));
        this.#start(kind, { type: kind.start, ...common, ...given }, tag);
      }
    }
    if (delta !== undefined || isStarted && metadata !== undefined) {
      this.#added.push({ type: kind.piece, ...common, delta: delta ?? "" });
    }
  }

  /** Ends what the chunks of an agent began. */
  #closeLane(tag: Tag): void {
    const lane = this.#lanes.get(tag);
    if (lane) {
      this.#lanes.delete(tag);
      this.#open.delete(lane.kind.end + lane.id);
      this.#added.push({ type: lane.kind.end, [lane.kind.id]: lane.id, ...this.#attributed(lane, tag) });
    }
  }

  /** The agent of what a lane sends, unless the client has learned of another owner since. */
  #attributed({ kind, id }: Lane, tag: Tag): { subagentRunId?: string } {
    return this.#contradicts(kind.bucket, id, tag) ? {} : tagged(tag);
  }

  #closeLanes(): void {
    for (const tag of [...this.#lanes.keys()]) {
      this.#closeLane(tag);
    }
  }
}

function isLane(lane: Lane | undefined, kind: Kind, id: string): boolean {
  return lane?.kind === kind && lane.id === id;
}

function tagged(tag: Tag): { subagentRunId?: string } {
  return tag === undefined ? {} : { subagentRunId: tag };
}

function stepKey(event: AguiEvent, tag: Tag): string {
  return JSON.stringify(["step", tag ?? null, event.stepName]);
}

const operations: readonly unknown[] = ["add", "remove", "replace", "move", "copy", "test"];

/**
 * Whether a patch fails by RFC 6902 whatever its document is, but the client's library applies it: it has an unknown operation, or moves
 * a value into itself, which would make a cycle of the client's state.
 */
function isRefused(patch: unknown): boolean {
  return Array.isArray(patch) && patch.some((operation: { op?: unknown; from?: unknown; path?: unknown } | null) =>
    !operations.includes(operation?.op) ||
    operation?.op === "move" && typeof operation.path === "string" && operation.path.startsWith(`${textOf(operation, "from")}/`));
}
