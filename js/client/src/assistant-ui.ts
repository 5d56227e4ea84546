// Adapters of assistant-ui: the history of a thread with its branches, and the list of threads.

import {
  EventType, runHttpRequest, transformHttpEventStream, type BaseEvent, type Message, type MiddlewareFunction, type RunAgentInput,
} from "@ag-ui/client";
import { ExportedMessageRepository, type RemoteThreadListAdapter, type ThreadHistoryAdapter, type ThreadMessage } from "@assistant-ui/react";
import { fromAgUiMessages } from "@assistant-ui/react-ag-ui";
import { concat, defer, fromEvent, of, switchMap, takeUntil, tap, type Observable } from "rxjs";
import type { PgaguiAgent } from "./agent.ts";
import { aside } from "./protocol.ts";
import type { PgaguiError } from "./requests.ts";
import { unknownThread } from "./states.ts";
import type { Conversation, Run, Thread, Threads } from "./threads.ts";

/** Options of {@link historyAdapter}. */
export interface HistoryOptions {
  /** Whether the thread does not exist yet, so that `load` need not ask for it. Default: false. */
  isNew?: boolean;
  /** How many branches are loaded at most: the head, and those that began last. Default: 20. */
  maxBranches?: number;
  /** Whether reasoning is visible, as in the options of `useAgUiRuntime`. Default: true. */
  showThinking?: boolean;
}

/**
 * The history of an agent's thread, for `adapters.history` of `useAgUiRuntime`. `load` returns the branches of the
 * thread as branches of messages. If a run is in progress at the head, its events follow. The adapter stores nothing:
 * the server does.
 *
 * It also adds a middleware to the agent, so that each run continues the branch that the user sees: an edited or
 * regenerated message becomes a branch of the thread. A second call with the same agent returns the same adapter.
 *
 * `load` rejects with a `PgaguiError` if the server cannot be reached or refuses it. A thread that does not exist yet
 * has an empty history.
 */
export function historyAdapter(agent: PgaguiAgent, options: HistoryOptions = {}): ThreadHistoryAdapter {
  let history = histories.get(agent);
  if (!history) {
    history = new History(agent, options);
    histories.set(agent, history);
  }
  return history;
}

const histories = new WeakMap<PgaguiAgent, History>();

class History implements ThreadHistoryAdapter {
  readonly #agent: PgaguiAgent;
  readonly #options: HistoryOptions;
  /** What the client has of the thread; nothing until it is loaded. */
  #known: Known | undefined;
  /** The run that the next run of the agent follows instead of beginning one. */
  #inProgress: Run | undefined;

  constructor(agent: PgaguiAgent, options: HistoryOptions) {
    this.#agent = agent;
    this.#options = options;
    const middleware = (input: RunAgentInput, next: Next) => defer(() => this.#run(input, next)).pipe(switchMap((events) => events));
    // Two copies of rxjs 7, the client's and ours, work together, but their types do not.
    agent.use(middleware as unknown as MiddlewareFunction);
  }

  async load(): Promise<Awaited<ReturnType<ThreadHistoryAdapter["load"]>>> {
    const { threadId, threads } = this.#agent;
    const isNew = this.#options.isNew && !this.#known?.headRunId;
    const known = new Known(threadId);
    this.#inProgress = undefined;
    const [runs, branches] = isNew
      ? [[], []]
      : await Promise.all([threads.runs(threadId), threads.branches(threadId)]).catch(emptyIfUnknown);
    const leaves = leavesOf(runs);
    const head = leaves.find((leaf) => branches.some((branch) => branch.isHead && branch.runId === leaf.runId)) ?? leaves.at(-1);
    if (!head) {
      this.#known = known;
      return { messages: [] };
    }
    const limit = leaves.map((leaf) => leaf.number).sort((a, b) => b - a)[this.#options.maxBranches ?? 20] ?? 0;
    const shown = leaves.filter((leaf) => leaf.number > limit || leaf === head);
    const isRunning = head.status === "running";
    const conversations = await Promise.all(
      shown.map((leaf) =>
        // The events of a run in progress come live, so the history ends with its input.
        threads.conversation(threadId, { run: leaf.runId, ...(leaf === head && isRunning && { at_seq: leaf.firstSeq }) }),
      ),
    );
    const tree = new MessageTree(known, this.#options.showThinking);
    shown.forEach((leaf, index) => {
      const conversation = conversations[index]!;
      for (const [id, message] of idsOf(conversation.messages)) {
        known.add(id, () => threads.origin(threadId, message.id, leaf.runId));
      }
      for (const id of tree.add(conversation, leaf === head)) {
        if (leaf === head || !known.tails.has(id)) {
          known.tails.set(id, leaf.runId);
        }
      }
    });
    known.headRunId = head.runId;
    this.#known = known;
    this.#inProgress = isRunning ? head : undefined;
    const { state } = conversations[shown.indexOf(head)]!;
    return { ...tree.export(), state: state as NonNullable<unknown>, unstable_resume: isRunning };
  }

  /** Does nothing: the server stores the messages with the run that they belong to. */
  async append(): Promise<void> {}

  async #run(input: RunAgentInput, next: Next): Promise<Observable<BaseEvent>> {
    const known = this.#known;
    if (known?.threadId !== input.threadId) {
      return next.run(input); // the server compares the messages with those of the head
    }
    const messages = input.messages.map((message) => ({ ...message, id: known.copies.get(message.id) ?? message.id }));
    const last = messages.findLastIndex((message) => known.originOf(message));
    const isNew = last < messages.length - 1;
    const run = this.#inProgress;
    this.#inProgress = undefined;
    if (run && !isNew) {
      return this.#follow(run).pipe(tap((event) => known.track(event, messages, run.parentRunId ?? "")));
    }
    const place = await this.#placeOf(messages, last, isNew || "resume" in input, known);
    const forwardedProps = { ...input.forwardedProps, pgagui: { parentRunId: place.parentRunId, history: "new" } };
    const sent: RunAgentInput = { ...input, messages: place.messages, forwardedProps };
    if (place.parentRunId !== known.headRunId) {
      delete sent.state; // it is that of another branch, and the server has the one of this branch
    }
    return next.run(sent).pipe(tap((event) => known.track(event, place.messages, place.parentRunId)));
  }

  /** Where a run begins, and the messages that are not stored there. `last` is the last message that is stored. */
  async #placeOf(messages: Message[], last: number, continues: boolean, known: Known): Promise<{ parentRunId: string; messages: Message[] }> {
    const { threadId, threads } = this.#agent;
    const message = messages[last];
    if (!message) {
      return { parentRunId: "", messages };
    }
    const tail = known.tails.get(message.id);
    if (continues || (tail !== undefined && message.role !== "user")) {
      const parentRunId = tail ?? (await known.originOf(message)!()).runId;
      // Reasoning that the server has under another id is not sent a second time.
      return { parentRunId, messages: messages.slice(last + 1).filter(({ role }) => role !== "reasoning") };
    }
    // The answer to the message is regenerated: the new run takes the place of the one that brought it.
    const { parentRunId = "" } = await known.originOf(message)!();
    const stored = parentRunId === "" ? [] : (await threads.conversation(threadId, { run: parentRunId })).messages;
    const ids = new Set(Array.from(idsOf(stored), ([id]) => id));
    return { parentRunId, messages: messages.slice(messages.findLastIndex(({ id }) => ids.has(id)) + 1) };
  }

  /**
   * All events of a run in progress: those so far, then those to come. useAgUiRuntime makes the same messages of them as
   * in the page that began the run. With a snapshot it would lose the beginning of a message that is not complete.
   */
  #follow({ runId, firstSeq }: Run): Observable<BaseEvent> {
    const { threadId, threads, abortController } = this.#agent;
    const place = { run: runId, after: String(firstSeq) };
    const { signal } = abortController;
    const events = transformHttpEventStream(runHttpRequest(() => threads.events(threadId, place, { signal })));
    const stop = fromEvent(signal, "abort").pipe(tap(() => { throw signal.reason; })); // not a RUN_ERROR: the user stops the run
    return concat(of({ type: EventType.RUN_STARTED, threadId, runId }), events as unknown as Observable<BaseEvent>).pipe(takeUntil(stop));
  }
}

/** What a middleware calls. */
type Next = { run(input: RunAgentInput): Observable<BaseEvent> };

/** The run that brought a message. */
type Origin = Pick<Run, "runId" | "parentRunId">;

/** The messages of a thread that the client has, and where they belong in the tree of runs. */
class Known {
  readonly threadId: string;
  readonly #origins = new Map<string, () => Origin | Promise<Origin>>();
  /** The runs that end with a message, by its id. */
  readonly tails = new Map<string, string>();
  /** The ids of messages that the user interface has under another id. */
  readonly copies = new Map<string, string>();
  /** The run that the state of the client is from; empty if there is none. */
  headRunId = "";
  #tail: string | undefined;

  constructor(threadId: string) {
    this.threadId = threadId;
  }

  /** Finds the run that brought a message, if it is stored. Agents may give a tool call a message without an id. */
  originOf(message: Message): (() => Origin | Promise<Origin>) | undefined {
    const call = message.role === "assistant" && message.toolCalls?.[0];
    return this.#origins.get(message.id) ?? (call ? this.#origins.get(call.id) : undefined);
  }

  add(id: unknown, origin: () => Origin | Promise<Origin>): void {
    if (typeof id === "string" && !this.#origins.has(id)) {
      this.#origins.set(id, origin);
    }
  }

  /** Records what a run brings. All of it is stored, because the server sends an event only after that. */
  track(event: BaseEvent, input: Message[], parentRunId: string): void {
    const { runId, messageId, parentMessageId, toolCallId, messages } = event as BaseEvent & Record<string, unknown>;
    const type: string = event.type;
    if (type === "RUN_STARTED") {
      this.headRunId = String(runId);
      this.#tail = undefined;
    }
    const origin = { runId: this.headRunId, parentRunId };
    const brought = type === "RUN_STARTED" ? input : type === "MESSAGES_SNAPSHOT" ? (messages as Message[]) : [];
    const ids = [...Array.from(idsOf(brought), ([id]) => id), messageId, parentMessageId, toolCallId];
    ids.forEach((id) => this.add(id, () => origin));
    const tail = tailOf(brought)?.id ?? messageId ?? parentMessageId ?? toolCallId;
    if (typeof tail === "string" && !aside.has(type)) {
      if (this.#tail !== undefined && this.tails.get(this.#tail) === this.headRunId) {
        this.tails.delete(this.#tail);
      }
      this.tails.set((this.#tail = tail), this.headRunId);
    }
  }
}

/** The messages of several branches as one tree, as assistant-ui has it: each id occurs once. */
class MessageTree {
  readonly #known: Known;
  readonly #showThinking: boolean;
  readonly #items = new Map<string, { message: MessageLike; parentId: string | null }>();
  #headId: string | null = null;

  constructor(known: Known, showThinking = true) {
    this.#known = known;
    this.#showThinking = showThinking;
  }

  /**
   * Adds a branch, and returns the ids under which its last message may come back. Where branches have the same message,
   * the one of the head is shown.
   */
  add({ messages, interrupts, runId, status }: Conversation, isHead: boolean): string[] {
    const branch = asLive(fromAgUiMessages(interrupts.length > 0 ? withInterrupts(messages, interrupts, runId) : messages, {
      showThinking: this.#showThinking,
    }));
    const answer = branch.at(-1);
    const reason = incomplete[status];
    if (reason && answer?.role === "assistant") {
      branch[branch.length - 1] = { ...answer, status: { type: "incomplete", reason } };
    }
    let parentId: string | null = null;
    for (const message of branch) {
      const id = this.#freeId(message.id!, (item) => item.parentId !== parentId);
      if (isHead || !this.#items.has(id)) {
        this.#items.set(id, { message: { ...message, id }, parentId });
      }
      parentId = id;
    }
    if (isHead) {
      this.#headId = parentId;
    }
    const ids = answer && [answer.id, ...partsOf(answer).flatMap((part) => [part.toolCallId, part.unstable_toolMessageId])];
    return ids?.filter((id) => id !== undefined) ?? [];
  }

  export(): { headId: string | null; messages: { message: ThreadMessage; parentId: string | null }[] } {
    const head = this.#headId !== null && this.#items.get(this.#headId);
    if (head && [...this.#items.values()].some(({ parentId }) => parentId === this.#headId)) {
      // assistant-ui removes what follows the head, so a head in the middle of another branch is a copy.
      const id = this.#freeId(this.#headId!, () => true);
      this.#items.set(id, { ...head, message: { ...head.message, id } });
      this.#headId = id;
    }
    return { headId: this.#headId, messages: ExportedMessageRepository.fromBranchableArray([...this.#items.values()]).messages };
  }

  /** Returns an id for the item of a message: the id of the message, unless another item has it. */
  #freeId(id: string, isOther: (item: { parentId: string | null }) => boolean): string {
    let free = id;
    for (let copy = 2, item; (item = this.#items.get(free)) && isOther(item); copy++) {
      free = `${id}~${copy}`;
      this.#known.copies.set(free, id);
    }
    return free;
  }
}

type MessageLike = ReturnType<typeof fromAgUiMessages>[number];

/** How runs leave their answers, if they did not finish. */
const incomplete: Partial<Record<Conversation["status"], "error" | "cancelled">> = { failed: "error", cut_off: "error", cancelled: "cancelled" };

/** A part of a message, as far as it matters here. */
interface Part {
  type: string;
  text?: string;
  toolCallId?: string;
  unstable_toolMessageId?: string;
}

function partsOf({ content }: MessageLike): readonly Part[] {
  return typeof content === "string" ? (content ? [{ type: "text", text: content }] : []) : (content as readonly Part[]);
}

/**
 * The messages as useAgUiRuntime shows them while they stream: reasoning and tool calls are parts of the answer in which
 * they occur, and only a text with another id begins the next one.
 */
function asLive(messages: readonly MessageLike[]): MessageLike[] {
  const shown: MessageLike[] = [];
  let namedBy: string | undefined; // the id that the answer has from the agent
  for (const message of messages) {
    const answer = shown.at(-1);
    const parts = partsOf(message);
    const isText = parts.every(({ type }) => type !== "tool-call" && type !== "reasoning") || parts.some(({ type }) => type === "text");
    // A tool call without a message is stored under the id of the call.
    const name = isText || parts.some(({ type, toolCallId }) => type === "tool-call" && toolCallId !== message.id) ? message.id : undefined;
    const isNext = isText && namedBy !== undefined && namedBy !== name;
    // A result under this id is the page's own, and the run that received it begins the next answer.
    const isAnswered = answer && partsOf(answer).some((part) => part.unstable_toolMessageId === `${part.toolCallId}:tool`);
    if (message.role === "assistant" && answer?.role === "assistant" && !isNext && !isAnswered) {
      shown[shown.length - 1] = {
        ...answer, ...message, id: namedBy ?? name ?? answer.id,
        content: [...partsOf(answer), ...parts], metadata: joinMetadata(answer.metadata as Metadata, message.metadata as Metadata),
      } as MessageLike;
    } else {
      shown.push(message);
      namedBy = undefined;
    }
    namedBy = isText ? name : (namedBy ?? name);
  }
  return shown;
}

/** The metadata of two messages that are one. Both may have reasoning that is kept for the provider. */
function joinMetadata(first: Metadata | undefined, second: Metadata | undefined): Metadata | undefined {
  const [earlier, later] = [first?.custom?.agui, second?.custom?.agui];
  if (!earlier || !later) {
    return later ? second : first;
  }
  const opaqueReasoning = [...(earlier.opaqueReasoning ?? []), ...(later.opaqueReasoning ?? [])];
  return { ...second, custom: { ...second!.custom, agui: { ...earlier, ...later, ...(opaqueReasoning.length > 0 && { opaqueReasoning }) } } };
}

/** What useAgUiRuntime keeps in the metadata of a message. */
type Metadata = { custom?: { agui?: { opaqueReasoning?: unknown[] } } };

/** The messages with interrupts where useAgUiRuntime keeps them: with the last message of the assistant. */
function withInterrupts(messages: Conversation["messages"], interrupts: unknown[], runId: string): Conversation["messages"] {
  const metadata = { custom: { agui: { interrupts } } };
  const last = messages.findLastIndex(({ role }) => role === "assistant" || role === "user");
  return messages[last]?.role === "assistant"
    ? messages.with(last, { ...messages[last], metadata })
    : [...messages, { id: `${runId}:interrupted`, role: "assistant", content: "", metadata }];
}

/** The members of a message that name it. */
interface Named {
  id: string;
  role: string;
  toolCalls?: { id: string }[];
}

/** The ids of messages and of their tool calls, each with its message. */
function* idsOf(messages: readonly object[]): Generator<[id: string, message: Named]> {
  for (const message of messages as Named[]) {
    yield [message.id, message];
    for (const { id } of message.toolCalls ?? []) {
      yield [id, message];
    }
  }
}

/** The last message that useAgUiRuntime sends back under its id. */
function tailOf(messages: readonly object[]): Named | undefined {
  return (messages as Named[]).findLast(({ role }) => role !== "activity" && role !== "reasoning");
}

/** The leaves of a tree of runs: branch by branch, as the branches began. `runs` are in the order in which they began. */
function leavesOf(runs: Run[]): Run[] {
  const children = new Map<string | undefined, Run[]>();
  for (const run of runs) {
    const siblings = children.get(run.parentRunId);
    if (siblings) {
      siblings.push(run);
    } else {
      children.set(run.parentRunId, [run]);
    }
  }
  const leaves: Run[] = [];
  const waiting = (children.get(undefined) ?? []).reverse();
  for (let run; (run = waiting.pop()); ) {
    const next = children.get(run.runId);
    if (next) {
      waiting.push(...next.reverse());
    } else {
      leaves.push(run);
    }
  }
  return leaves;
}

/** A thread that does not exist yet has no runs. A wrong address is 404, too, but without this SQLSTATE. */
function emptyIfUnknown(error: unknown): [[], []] {
  if ((error as PgaguiError).problem?.sqlstate === unknownThread) {
    return [[], []];
  }
  throw error;
}

/** Options of {@link threadListAdapter}. */
export interface ThreadListOptions {
  /** Only threads that the agent of this name began. Default: all threads of the scope. */
  agent?: string;
  /** How many threads a page has. Default: that of the server. */
  pageSize?: number;
}

/** {@link RemoteThreadListAdapter} with the ids of new threads. */
export type PgaguiThreadListAdapter = RemoteThreadListAdapter & {
  /**
   * The id of a thread for its agent, given its item in the list. A thread that has not been stored yet gets a random
   * one, and keeps it.
   */
  threadId(item: { id: string; remoteId?: string | undefined }): string;
};

/**
 * The threads of the scope, for `useRemoteThreadListRuntime`, those with the latest activity first. Threads exist from
 * their first run on. `custom` of a thread is its metadata. The title is the one that was set, or else the beginning of
 * the first message of the user. `delete` erases a thread for good.
 *
 * All calls reject with a `PgaguiError`.
 */
export function threadListAdapter(threads: Threads, { agent, pageSize }: ThreadListOptions = {}): PgaguiThreadListAdapter {
  const newIds = new Map<string, string>();
  const threadId = ({ id, remoteId }: { id: string; remoteId?: string | undefined }): string => {
    const known = remoteId ?? newIds.get(id) ?? crypto.randomUUID();
    newIds.set(id, known);
    return known;
  };
  return {
    threadId,
    async list({ after } = {}) {
      for (let cursor = after; ; ) {
        const page = await threads.list({
          archived: "with", ...(agent !== undefined && { agent }), ...(pageSize !== undefined && { limit: pageSize }), ...(cursor !== undefined && { cursor }),
        });
        cursor = page.hasMore ? page.cursor : undefined;
        // A filter may exclude all threads of a page.
        if (page.threads.length > 0 || cursor === undefined) {
          return { threads: page.threads.map(metadataOf), nextCursor: cursor };
        }
      }
    },
    fetch: async (remoteId) => metadataOf(await threads.get(remoteId)),
    initialize: async (id) => ({ remoteId: threadId({ id }) }),
    async rename(remoteId, title) {
      await threads.update(remoteId, { title });
    },
    async updateCustom(remoteId, custom = {}) {
      const { metadata } = await threads.get(remoteId);
      const removed = Object.keys(metadata).filter((name) => !Object.hasOwn(custom, name)).map((name) => [name, null]);
      await threads.update(remoteId, { metadata: { ...custom, ...Object.fromEntries(removed) } });
    },
    async archive(remoteId) {
      await threads.update(remoteId, { archived: true });
    },
    async unarchive(remoteId) {
      await threads.update(remoteId, { archived: false });
    },
    delete: (remoteId) => threads.erase(remoteId),
    // The title that the server will derive; it has none until the first run has begun.
    generateTitle: async (_, messages) => titleStream(messages),
  };
}

function metadataOf({ threadId, title, archived, activeAt, metadata }: Thread): Awaited<ReturnType<RemoteThreadListAdapter["fetch"]>> {
  return { remoteId: threadId, status: archived ? "archived" : "regular", title, lastMessageAt: new Date(activeAt), custom: metadata };
}

function titleStream(messages: readonly ThreadMessage[]): Awaited<ReturnType<RemoteThreadListAdapter["generateTitle"]>> {
  const parts = messages.find(({ role }) => role === "user")?.content ?? [];
  const text = parts.map((part) => (part.type === "text" ? part.text : "")).join(" ");
  const title = [...text.replace(/\s+/g, " ").trim()].slice(0, 200).join("").trimEnd();
  return new ReadableStream({
    start(controller) {
      controller.enqueue({ type: "part-start", path: [], part: { type: "text" } });
      controller.enqueue({ type: "text-delta", path: [0], textDelta: title });
      controller.enqueue({ type: "part-finish", path: [0] });
      controller.close();
    },
  });
}
