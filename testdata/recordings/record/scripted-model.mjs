// The scripted model: what a language model would have answered, written down. A conversation is a list of turns, a turn is one
// answer of the model, a list of the parts below. Both frameworks are driven by the same turns: CopilotKit through the mock model
// of the AI SDK, TanStack AI through the HTTP answers that its OpenAI client would have got.

import { MockLanguageModelV3, simulateReadableStream } from "ai/test";

export const reasoning = (id, text) => ({ kind: "reasoning", id, text });
export const text = (id, text) => ({ kind: "text", id, text });
export const toolCall = (id, name, input) => ({ kind: "tool call", id, name, input });
export const failure = (message) => ({ kind: "failure", message });

/** A queue of turns that a model takes its answers from, in order. */
export class Script {
  #turns = [];

  add(...turns) {
    this.#turns.push(...turns);
  }

  next() {
    if (this.#turns.length === 0) throw new Error("the model was asked more often than its script has turns");
    return this.#turns.shift();
  }

  assertSpent() {
    if (this.#turns.length > 0) throw new Error(`the script has ${this.#turns.length} turns that the model was never asked for`);
  }
}

// Models stream tokens. Pieces of about three words keep the recordings small and still streams.
const words = (text) => text.match(/[^]{1,18}(?:\s+|$)|\S+\s*/g);
const slices = (text) => text.match(/[^]{1,48}/gu);

const usage = {
  inputTokens: { total: 412, noCache: 412, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 96, text: 96, reasoning: 0 },
};

/** A model for the AI SDK that answers from the script. */
export const aiSDKModel = (script) =>
  new MockLanguageModelV3({
    modelId: "scripted-model",
    doStream: async () => ({ stream: simulateReadableStream({ chunks: aiSDKParts(script.next()) }) }),
  });

function aiSDKParts(turn) {
  const parts = turn.flatMap((part) => {
    switch (part.kind) {
      case "reasoning":
      case "text":
        return [
          { type: `${part.kind}-start`, id: part.id },
          ...words(part.text).map((delta) => ({ type: `${part.kind}-delta`, id: part.id, delta })),
          { type: `${part.kind}-end`, id: part.id },
        ];
      case "tool call": {
        const input = JSON.stringify(part.input);
        return [
          { type: "tool-input-start", id: part.id, toolName: part.name },
          ...slices(input).map((delta) => ({ type: "tool-input-delta", id: part.id, delta })),
          { type: "tool-input-end", id: part.id },
          { type: "tool-call", toolCallId: part.id, toolName: part.name, input },
        ];
      }
      case "failure":
        return [{ type: "error", error: new Error(part.message) }];
    }
  });
  const reason = turn.some((part) => part.kind === "tool call") ? "tool-calls" : "stop";
  return [...parts, { type: "finish", finishReason: { unified: reason, raw: reason }, usage }];
}

/** A fetch for the OpenAI client that answers from the script, in the Responses API's stream format. */
export const openAIFetch = (script) => async () => {
  const output = script.next().map(openAIItem);
  const response = { id: "resp_scripted", object: "response", model: "gpt-4o-mini", output: output.map(({ item }) => item) };
  const events = [
    { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
    ...output.flatMap(({ item, deltas }, output_index) => [
      { type: "response.output_item.added", output_index, item: { ...item, content: [], summary: [], arguments: "" } },
      ...deltas.map((delta) => ({ ...delta, output_index, item_id: item.id })),
      { type: "response.output_item.done", output_index, item },
    ]),
    { type: "response.completed", response: { ...response, status: "completed" } },
  ];
  const body = events.map((event, sequence_number) => `event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number })}\n\n`);
  return new Response(body.join(""), { headers: { "content-type": "text/event-stream" } });
};

function openAIItem(part) {
  switch (part.kind) {
    case "reasoning":
      return {
        item: { type: "reasoning", id: part.id, summary: [{ type: "summary_text", text: part.text }] },
        deltas: words(part.text).map((delta) => ({ type: "response.reasoning_summary_text.delta", summary_index: 0, delta })),
      };
    case "text":
      return {
        item: { type: "message", id: part.id, role: "assistant", content: [{ type: "output_text", text: part.text, annotations: [] }] },
        deltas: words(part.text).map((delta) => ({ type: "response.output_text.delta", content_index: 0, delta })),
      };
    case "tool call": {
      const input = JSON.stringify(part.input);
      return {
        item: { type: "function_call", id: `item-${part.id}`, call_id: part.id, name: part.name, arguments: input },
        deltas: [
          ...slices(input).map((delta) => ({ type: "response.function_call_arguments.delta", delta })),
          { type: "response.function_call_arguments.done", name: part.name, arguments: input },
        ],
      };
    }
    default:
      throw new Error(`the scripted Responses API has no ${part.kind}`);
  }
}
