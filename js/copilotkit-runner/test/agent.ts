// An agent that a test plays, also in processes without vitest.

import type { PgaguiAgentRunner } from "../src/index.ts";
import type { AguiEvent } from "@pgagui/postgres";

/** An agent whose events the test sends. */
export class PlayedAgent {
  agentId = "helper";
  isAborted = false;
  /** What the runner has called it with. */
  input = { runId: "" };
  /** Resolves when the runner has called the agent. */
  readonly called: Promise<void>;
  #call!: () => void;
  #end!: (error?: Error) => void;
  #send!: (event: AguiEvent) => Promise<void>;
  readonly #abort: "ends" | "ignored";

  constructor(abort: "ends" | "ignored" = "ends") {
    this.#abort = abort;
    this.called = new Promise((resolve) => (this.#call = resolve));
  }

  runAgent(input: { runId: string }, subscriber: { onEvent(parameters: { event: AguiEvent }): void | Promise<void> }): Promise<void> {
    this.input = input;
    this.#send = async (event) => subscriber.onEvent({ event });
    return new Promise((resolve, reject) => {
      this.#end = (error) => (error ? reject(error) : resolve());
      this.#call();
    });
  }

  abortRun(): void {
    this.isAborted = true;
    if (this.#abort === "ends") {
      this.#end?.(new Error("aborted"));
    }
  }

  /** Sends events. Resolves when the runner takes more. */
  async send(...events: AguiEvent[]): Promise<void> {
    await this.called;
    for (const event of events) {
      await this.#send(event);
    }
  }

  async end(error?: Error): Promise<void> {
    await this.called;
    this.#end(error);
  }
}

type Run = Parameters<PgaguiAgentRunner["run"]>[0];

/** What the runner is called with. */
export function request(threadId: string, runId: string, agent: PlayedAgent, more: object = {}): Run {
  return { threadId, agent: agent as unknown as Run["agent"], input: inputOf(threadId, runId, more) as Run["input"] };
}

export function inputOf(threadId: string, runId: string, more: object = {}): object {
  return {
    threadId, runId, state: {}, messages: [{ id: `${runId}-question`, role: "user", content: "Hello?" }], tools: [], context: [],
    forwardedProps: {}, ...more,
  };
}

export const started = (threadId: string, runId: string): AguiEvent => ({ type: "RUN_STARTED", threadId, runId });
export const finished = (threadId: string, runId: string): AguiEvent => ({ type: "RUN_FINISHED", threadId, runId });
export const open = (messageId: string): AguiEvent => ({ type: "TEXT_MESSAGE_START", messageId, role: "assistant" });
export const token = (messageId: string, delta: string): AguiEvent => ({ type: "TEXT_MESSAGE_CONTENT", messageId, delta });
export const close = (messageId: string): AguiEvent => ({ type: "TEXT_MESSAGE_END", messageId });

/** A whole run with one message. */
export const talk = (threadId: string, runId: string, text: string): AguiEvent[] => [
  started(threadId, runId), open(`${runId}-answer`), token(`${runId}-answer`, text), close(`${runId}-answer`), finished(threadId, runId),
];
