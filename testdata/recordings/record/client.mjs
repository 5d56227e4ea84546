// The client's side of a conversation: the official AG-UI client, which holds the messages and the state, as a browser would. What
// comes back over HTTP is kept verbatim.

import { HttpAgent } from "@ag-ui/client";

export class Conversation extends HttpAgent {
  /** The bodies of the HTTP answers so far: server-sent events. */
  wire = [];
  #parentRunId;
  #afterRun = new Map();

  constructor({ url, threadId, initialState }) {
    super({
      url,
      threadId,
      initialState,
      fetch: async (address, request) => {
        const response = await fetch(address, request);
        const body = await response.text();
        if (!response.ok) throw new Error(`${address} answered ${response.status}: ${body}`);
        this.wire.push(body);
        return new Response(body, response);
      },
    });
  }

  /**
   * Runs the agent once. `says` is the user's message, if there is one. With `parentRunId` the conversation first goes back to
   * where that run left it. `fails` says that the run is meant to end in RUN_ERROR.
   */
  async turn({ runId, parentRunId, says, resume, tools, fails = false }) {
    if (parentRunId !== undefined) this.#goBackTo(parentRunId);
    this.#parentRunId = parentRunId;
    if (says !== undefined) this.addMessage({ id: `user-of-${runId}`, role: "user", content: says });
    let failed = false;
    try {
      await this.runAgent({ runId, resume, tools }, { onRunErrorEvent: () => { failed = true; } });
    } catch (error) {
      if (!fails) throw error;
      failed = true;
    }
    if (failed !== fails) throw new Error(`run ${runId} ${failed ? "failed" : "did not fail"}`);
    this.#afterRun.set(runId, { messages: this.messages, state: this.state, interrupts: this.pendingInterrupts });
  }

  #goBackTo(runId) {
    const { messages, state, interrupts } = this.#afterRun.get(runId);
    this.messages = structuredClone(messages);
    this.state = structuredClone(state);
    this.pendingInterrupts = structuredClone(interrupts);
  }

  // The client has no parameter for the parent; the protocol's RunAgentInput has the field.
  prepareRunAgentInput(parameters) {
    const input = super.prepareRunAgentInput(parameters);
    return this.#parentRunId === undefined ? input : { ...input, parentRunId: this.#parentRunId };
  }

  /** The events as JSON, each as it was on the wire. */
  events() {
    return eventsOf(this.wire.join(""));
  }
}

/** The data of each server-sent event: both frameworks write one line of JSON for each. */
export const eventsOf = (serverSentEvents) =>
  serverSentEvents
    .split("\n\n")
    .filter((block) => block.startsWith("data: "))
    .map((block) => block.slice("data: ".length));
