// Strands in TypeScript with a scripted model, behind its AG-UI adapter.

import { StrandsAgent } from "@ag-ui/aws-strands";
import { Agent, Model, tool } from "@strands-agents/sdk";
import { from } from "rxjs";
import { z } from "zod";
import { reply, serve } from "../script.mjs";

function turns(messages) {
  return messages.flatMap(({ role, content }) => content.flatMap((block) => {
    if (block.type === "toolResultBlock") return { role: "tool", text: block.content.map((part) => part.text ?? "").join("") };
    return block.type === "textBlock" ? { role, text: block.text } : [];
  }));
}

class Scripted extends Model {
  updateConfig() {}
  getConfig() { return { modelId: "scripted" }; }

  async *stream(messages) {
    yield { type: "modelMessageStartEvent", role: "assistant" };
    let isText = false, stopReason = "endTurn";
    for await (const part of reply(turns(messages))) {
      if (typeof part === "string") {
        if (!isText) yield { type: "modelContentBlockStartEvent" };
        isText = true;
        yield { type: "modelContentBlockDeltaEvent", delta: { type: "textDelta", text: part } };
        continue;
      }
      yield { type: "modelContentBlockStartEvent", start: { type: "toolUseStart", name: part.name, toolUseId: part.id } };
      for (const input of [part.args.slice(0, 4), part.args.slice(4)]) {
        yield { type: "modelContentBlockDeltaEvent", delta: { type: "toolUseInputDelta", input } };
      }
      yield { type: "modelContentBlockStopEvent" };
      stopReason = "toolUse";
    }
    if (isText) yield { type: "modelContentBlockStopEvent" };
    yield { type: "modelMessageStopEvent", stopReason };
    yield { type: "modelMetadataEvent", usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } };
  }
}

const inputSchema = z.object({ at: z.string() });

const tools = [
  tool({ name: "look", description: "Looks", inputSchema, callback: ({ at }) => `seen ${at}` }),
  tool({
    name: "erase", description: "Erases, if the user agrees", inputSchema,
    callback: ({ at }, context) => `the answer is ${JSON.stringify(context.interrupt({ name: "erase", reason: `Erase ${at}?` }))}`,
  }),
  tool({ name: "shatter", description: "Fails", inputSchema, callback: ({ at }) => { throw new Error(`no tool for ${at}`); } }),
];

const agent = new StrandsAgent({ agent: new Agent({ model: new Scripted(), tools, printer: false }), name: "scripted" });

serve(() => ({ run: (input) => from(agent.run(input)) }));
