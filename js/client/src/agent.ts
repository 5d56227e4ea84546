// The agent: a HttpAgent of AG-UI whose runs survive broken connections, and which knows threads and branches.

import {
  HttpAgent, randomUUID, transformHttpEventStream,
  type AgentSubscriber, type BaseEvent, type HttpAgentConfig, type Message, type RunAgentInput, type RunAgentResult,
} from "@ag-ui/client";
import { Observable } from "rxjs";
import { Positions, type Position, type PositionStorage } from "./position.ts";
import { PgaguiError, recordOf, send, type HeadersSource, type RetryOptions } from "./requests.ts";
import { follow, type Following } from "./stream.ts";
import { pathOf, positionHeader, queryOf, Threads, type Conversation, type ForkPoint } from "./threads.ts";

/** The settings of a {@link PgaguiAgent}: those of HttpAgent, and more. */
export interface PgaguiAgentConfig extends Omit<HttpAgentConfig, "headers"> {
  /** The address of the agent at `pgagui serve`: `https://example.com/agent/NAME/run`. What is before `/agent` is the server. */
  url: string;
  /** Headers of each request, or a function that returns them. It is called for each request, so tokens may expire. */
  headers?: HeadersSource;
  /** How broken streams are resumed and failed requests retried. */
  retry?: RetryOptions;
  /** Where the position is kept over reloads. Default: `sessionStorage` where there is one, memory otherwise. */
  storage?: PositionStorage;
  /** Takes the thread of the stored position if `threadId` is missing, as after a reload. Default: false, a new thread. */
  restore?: boolean;
  /** "new" sends the messages after the last answer only; the server has the others. Default: all messages, as HttpAgent does. */
  history?: "new";
  /** What `abortRun` does, which the stop buttons of UI frameworks call. Default: "disconnect", as HttpAgent does. */
  abort?: "disconnect" | "stop";
}

/** The parameters of {@link PgaguiAgent.runAgent}. */
export type RunParameters = NonNullable<Parameters<HttpAgent["runAgent"]>[0]> & {
  /**
   * The run that the new one continues; an empty text begins a new root. Without it the server compares the messages
   * with those at the head, and branches off before the first that differs.
   */
  parentRunId?: string;
};

/** The parameters of {@link PgaguiAgent.connectAgent}. */
export type ConnectParameters = NonNullable<Parameters<HttpAgent["connectAgent"]>[0]> & {
  /** Connects to this run, on whichever branch, and ends with it. Default: the head and those that follow it. */
  branchRunId?: string;
  /** Also waits for later runs, until `abortRun` or `detachActiveRun`. Default: false. */
  stay?: boolean;
};

/** The parameters of connectAgent, by the input that it makes for `connect`. */
const connections = new WeakMap<RunAgentInput, ConnectParameters>();

/**
 * An agent of `pgagui serve` for AG-UI clients. Use it in place of HttpAgent: `runAgent` resumes by itself when its
 * connection breaks, `connectAgent` brings the client up to date after a reload, and `editMessage`, `regenerate` and
 * `fork` make branches.
 *
 * If the server cannot be reached, requests are retried with backoff. What the server refuses (400, 401, 403, 404, 409,
 * 410, …) fails at once with a {@link PgaguiError}.
 */
export class PgaguiAgent extends HttpAgent {
  /** Where the client is, in the thread that it ran or connected to last. */
  position: Position;
  private settings: Pick<PgaguiAgentConfig, "retry" | "abort" | "history"> & {
    headers: Extract<HeadersSource, () => unknown> | undefined;
    positions: Positions;
  };
  private knownThreads: Threads | undefined;

  /** @throws TypeError if `url` is not the address of an agent. */
  constructor(config: PgaguiAgentConfig) {
    const { headers, retry, storage, restore, abort, history, ...rest } = config;
    const positions = new Positions(storage, config.url);
    const stored = positions.read();
    const threadId = config.threadId ?? (restore ? stored?.threadId : undefined);
    super({ ...rest, ...(typeof headers === "object" && { headers }), ...(threadId !== undefined && { threadId }) });
    this.settings = {
      ...(retry && { retry }), ...(abort && { abort }), ...(history && { history }), positions, headers: typeof headers === "function" ? headers : undefined,
    };
    this.position = { threadId: this.threadId, ...(stored?.threadId === this.threadId && stored) };
    void this.serverUrl; // throws if url is not that of an agent
  }

  /** The address of the server, without a slash at its end. */
  get serverUrl(): string {
    const match = /^(.*)\/agent\/[^/?]+\/run\/?(\?.*)?$/.exec(this.url);
    if (!match) {
      throw new TypeError(`${this.url} is not the address of an agent of pgagui serve (expected …/agent/NAME/run)`);
    }
    return match[1]!;
  }

  /** The threads of the server, with the headers of this agent. */
  get threads(): Threads {
    const agent = this;
    return this.knownThreads ??= new Threads({
      get url() { return agent.serverUrl; },
      headers: async () => ({ ...agent.headers, ...(await agent.settings.headers?.()) }),
      fetch: (url, init) => agent.fetch(url, init),
      ...(this.settings.retry && { retry: this.settings.retry }),
    }, (threadId) => this.positionIn(threadId).lastEventId);
  }

  /** Runs the agent, as HttpAgent does. If the connection breaks, the run is resumed. */
  override runAgent(parameters?: RunParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
    return super.runAgent(parameters, subscriber);
  }

  /**
   * Brings the client up to date: its messages and its state become those of the thread. If a run is in progress, its
   * events follow until it ends. A thread without runs changes nothing.
   */
  override async connectAgent(parameters?: ConnectParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
    this.abortController = new AbortController();
    // The client would refuse to connect while interrupts are open. They come with the history.
    const interrupts = this.pendingInterrupts;
    this.pendingInterrupts = [];
    try {
      return await super.connectAgent(parameters, subscriber);
    } catch (error) {
      this.pendingInterrupts = interrupts;
      throw error;
    }
  }

  /** Ends the connection. The run continues on the server, unless the agent was made with `abort: "stop"`. */
  override abortRun(): void {
    if (this.settings.abort === "stop" && this.isRunning) {
      this.stopRun().catch((error: unknown) => console.warn("pgagui: the run could not be stopped:", error));
    }
    super.abortRun();
  }

  /**
   * Asks the server to stop the run of this client, or without one, all runs of the thread that are in progress. The
   * promise of `runAgent` resolves when it has stopped. Returns how many runs were asked.
   */
  stopRun(reason?: string): Promise<number> {
    const runId = this.isRunning ? this.positionIn(this.threadId).runId : undefined;
    return this.threads.stop(this.threadId, { ...(runId !== undefined && { runId }), ...(reason !== undefined && { reason }) });
  }

  /**
   * Replaces a message and runs the agent on a branch that begins before it. The message gets a new id; the old one and
   * what follows it stay on their branch.
   *
   * @throws Error if the agent has no such message.
   */
  async editMessage(
    messageId: string, changes: { content: Extract<Message, { role: "user" }>["content"] }, parameters?: RunParameters,
    subscriber?: AgentSubscriber,
  ): Promise<RunAgentResult> {
    const index = this.indexOf(messageId);
    const edited = { ...this.messages[index], ...changes, id: randomUUID() } as Message;
    return this.branch(index, [edited], parameters, subscriber);
  }

  /**
   * Runs the agent a second time from before a message, on a branch. The default is the first message after the last one
   * of the user, so all of the last answer.
   *
   * @throws Error if the agent has no such message.
   */
  async regenerate(messageId?: string, parameters?: RunParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
    const index = messageId === undefined
      ? this.messages.findLastIndex((message) => message.role === "user") + 1
      : this.indexOf(messageId);
    return this.branch(index, [], parameters, subscriber);
  }

  /**
   * Goes back to the end of a run, or before a message. The agent gets the messages and the state of that point, and its
   * next run continues there, on a branch of its own.
   */
  async fork(point: ForkPoint): Promise<Conversation> {
    const run = await this.threads.fork(this.threadId, point);
    this.moveTo({ threadId: this.threadId, runId: run.runId });
    const conversation = await this.threads.conversation(this.threadId, { run: run.runId });
    this.setMessages(conversation.messages as Message[]);
    this.setConversationState(conversation);
    return conversation;
  }

  /** Returns a copy with the same settings and position. It stores its position under the same key. */
  override clone(): PgaguiAgent {
    const cloned = super.clone() as PgaguiAgent;
    cloned.settings = this.settings;
    cloned.position = { ...this.position };
    return cloned;
  }

  override run(input: RunAgentInput): ReturnType<HttpAgent["run"]> {
    return this.observe(input, (request, resume) => {
      this.moveTo({ ...this.positionIn(input.threadId), runId: undefined });
      return {
        until: "run",
        // Until a frame has arrived, a retry sends the same request: if the run has begun, the request attaches to it.
        open: (after, signal) => after === undefined
          ? request(this.url, signal)
          : resume(after, { run: input.runId }, signal),
      };
    });
  }

  protected override connect(input: RunAgentInput): ReturnType<HttpAgent["run"]> {
    return this.observe(input, (request, resume) => {
      const { branchRunId, stay } = connections.get(input) ?? {};
      const seen = this.positionIn(input.threadId).lastEventId;
      const query = { run: branchRunId, stay };
      return {
        until: stay ? "never" : branchRunId === undefined ? "idle" : "run",
        open: (after, signal) => {
          if (after === undefined && seen === undefined && branchRunId === undefined && !stay) {
            // This endpoint takes threads that do not exist yet.
            return request(this.url.replace(/\/run(\/?(\?.*)?)$/, "/connect$1"), signal);
          }
          return resume(after, query, signal, seen);
        },
        isEmpty: (signal) => this.isEmpty(input.threadId, signal),
      };
    });
  }

  protected override prepareRunAgentInput(parameters?: RunParameters & ConnectParameters): RunAgentInput {
    const input = super.prepareRunAgentInput(parameters);
    if (parameters?.parentRunId !== undefined) {
      input.parentRunId = parameters.parentRunId;
    }
    if (parameters) {
      connections.set(input, parameters);
    }
    return input;
  }

  protected override requestInit(input: RunAgentInput): RequestInit {
    return super.requestInit(this.settings.history === "new" ? onlyNew(input) : input);
  }

  /** Runs on a branch that begins before the message at `index`, with `added` in place of what follows. */
  private async branch(
    index: number, added: Message[], parameters: RunParameters | undefined, subscriber: AgentSubscriber | undefined,
  ): Promise<RunAgentResult> {
    const anchor = this.messages[index] ?? this.messages[index - 1];
    const parentRunId = anchor && (await this.parentOf(anchor.id));
    if (parentRunId !== undefined) {
      const conversation = parentRunId !== "" && (await this.threads.conversation(this.threadId, { run: parentRunId }));
      this.setConversationState(conversation || { state: {}, interrupts: [] });
    }
    this.setMessages([...this.messages.slice(0, index), ...added]);
    return this.runAgent({ ...parameters, ...(parentRunId !== undefined && { parentRunId }) }, subscriber);
  }

  /** The parent of the run that brought a message; undefined if the server does not have the message. */
  private async parentOf(messageId: string): Promise<string | undefined> {
    const origin = await ifKnown(this.threads.origin(this.threadId, messageId, this.positionIn(this.threadId).runId));
    return origin && (origin.parentRunId ?? "");
  }

  /** Whether a thread has no runs, or does not exist yet. Servers that say so in the stream are not asked: a 404 is logged. */
  private async isEmpty(threadId: string, signal: AbortSignal): Promise<boolean> {
    const thread = await ifKnown(this.threads.get(threadId, { signal }));
    return thread === undefined || thread.runs === 0;
  }

  private setConversationState({ state, interrupts }: Pick<Conversation, "state" | "interrupts">): void {
    this.setState(state ?? {});
    this.pendingInterrupts = interrupts as typeof this.pendingInterrupts;
  }

  private indexOf(messageId: string): number {
    const index = this.messages.findIndex((message) => message.id === messageId);
    if (index < 0) {
      throw new Error(`the agent has no message "${messageId}"`);
    }
    return index;
  }

  /** The position, if it is in that thread; otherwise the beginning of the thread. */
  private positionIn(threadId: string): Position {
    return this.position.threadId === threadId ? this.position : { threadId };
  }

  private moveTo(position: Position): void {
    this.position = position;
    this.settings.positions.write(position);
  }

  private request(url: string, init: RequestInit): Promise<Response> {
    return send(url, init, { headers: () => this.settings.headers?.() ?? {}, fetch: (url, init) => this.fetch(url, init) });
  }

  /** The events of a stream that continues over broken connections. `start` says how to request it. */
  private observe(input: RunAgentInput, start: Start): ReturnType<HttpAgent["run"]> {
    const observable = new Observable<BaseEvent>((subscriber) => {
      const connection = new AbortController();
      let isComplete = false;
      const { signal } = this.abortController;
      const abort = () => {
        if (this.settings.abort === "stop") {
          subscriber.error(signal.reason); // a stop by the user, of which the client's reader would make a RUN_ERROR
        }
        connection.abort(signal.reason);
      };
      const frames = new Observable<FrameEvent>((transport) => {
        this.deliver(input, start, connection.signal, transport).then(() => {
          isComplete = true;
          transport.complete();
        }, (error) => transport.error(error));
      });
      if (signal.aborted) {
        abort();
      }
      signal.addEventListener("abort", abort);
      // The client's own reader parses and validates the frames as its version does.
      const events = transformHttpEventStream(frames as unknown as Parameters<typeof transformHttpEventStream>[0], this.debugLogger);
      const reading = events.subscribe({
        next: (event) => subscriber.next(event), error: (error) => subscriber.error(error), complete: () => subscriber.complete(),
      });
      return () => {
        reading.unsubscribe();
        signal.removeEventListener("abort", abort);
        if (!isComplete) {
          connection.abort();
        }
      };
    });
    // Two copies of rxjs 7, the client's and ours, work together, but their types do not.
    return observable as unknown as ReturnType<HttpAgent["run"]>;
  }

  /** Passes the frames of a stream on to the client's reader. */
  private async deliver(
    input: RunAgentInput, start: Start, signal: AbortSignal, transport: { next(event: FrameEvent): void },
  ): Promise<void> {
    const encoder = new TextEncoder();
    const { threadId } = input;
    const { body } = this.requestInit(input); // a repeated request has the same bytes
    const request = (url: string, signal: AbortSignal) => this.request(url, { ...this.requestInit(input), body: body!, signal });
    const resume: Resume = (after, query, signal, seen) => {
      const { body: _, headers, ...init } = this.requestInit(input);
      const { "Content-Type": __, "content-type": ___, ...others } = recordOf(headers);
      return this.request(
        this.serverUrl + pathOf(threadId) + `/events${queryOf({ ...query, protocol_version: protocolOf(input) })}`,
        { ...init, method: "GET", headers: { ...others, ...(after && { "Last-Event-ID": after }), ...(seen && { [positionHeader]: seen }) }, signal },
      );
    };
    let runId: string | undefined;
    await follow({
      ...start(request, resume),
      retry: this.settings.retry,
      signal,
      begin: (response) => transport.next({ type: "headers", status: response.status, headers: response.headers }),
      enter: (id) => { runId = id; },
      deliver: (text, lastEventId) => {
        this.moveTo({ threadId, runId, lastEventId: lastEventId ?? this.positionIn(threadId).lastEventId });
        if (text !== "") {
          transport.next({ type: "data", data: encoder.encode(text) });
        }
      },
    });
  }
}

/** An input without the messages up to the last answer. */
function onlyNew(input: RunAgentInput): RunAgentInput {
  const answer = input.messages.findLastIndex(({ role }) => role === "assistant");
  const forwardedProps = { ...input.forwardedProps, pgagui: { ...input.forwardedProps?.pgagui, history: "new" } };
  return { ...input, messages: input.messages.slice(answer + 1), forwardedProps };
}

/** The answer; undefined if the server does not have what the request names. */
async function ifKnown<Answer>(answer: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof PgaguiError && error.status === 404) {
      return undefined;
    }
    throw error;
  }
}

/** Says how a stream is requested, and when it ends. */
type Start = (request: Post, resume: Resume) => Pick<Following, "open" | "until" | "isEmpty">;

/** Posts the input. */
type Post = (url: string, signal: AbortSignal) => Promise<Response>;

/** Requests what comes behind a frame, or the history. The answer must not be older than the frame `seen`. */
type Resume = (
  after: string | undefined, query: Record<string, string | boolean | undefined>, signal: AbortSignal, seen?: string,
) => Promise<Response>;

/** What the client's reader takes; its types are not exported. */
type FrameEvent = { type: "headers"; status: number; headers: Headers } | { type: "data"; data: Uint8Array };

/** The version of AG-UI that the client names. Those before 1.0.0 name none. */
function protocolOf(input: RunAgentInput): string | undefined {
  return (input as { protocolVersion?: string }).protocolVersion;
}
