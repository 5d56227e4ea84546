// Mastra with a scripted model, behind its AG-UI adapter. It asks by an interrupt in RUN_FINISHED, and by CUSTOM on_interrupt besides.

import { MastraAgent } from "@ag-ui/mastra";
import { Mastra } from "@mastra/core";
import { Agent } from "@mastra/core/agent";
import { InMemoryStore } from "@mastra/core/storage";
import { createTool } from "@mastra/core/tools";
import { z } from "zod";
import { serve } from "../script.mjs";
import { model } from "./model.mjs";

const inputSchema = z.object({ at: z.string() });

const tools = {
  look: createTool({ id: "look", description: "Looks", inputSchema, execute: async ({ at }) => `seen ${at}` }),
  erase: createTool({
    id: "erase", description: "Erases, if the user agrees", inputSchema,
    suspendSchema: z.object({ message: z.string() }), resumeSchema: z.any(),
    execute: async ({ at }, { agent }) => agent.resumeData === undefined
      ? agent.suspend({ message: `Erase ${at}?` }) : `the answer is ${JSON.stringify(agent.resumeData)}`,
  }),
  shatter: createTool({ id: "shatter", description: "Fails", inputSchema, execute: async ({ at }) => { throw new Error(`no tool for ${at}`); } }),
};

const scripted = new Agent({ id: "scripted", name: "scripted", instructions: "Answer.", model, tools, maxRetries: 0 });
const mastra = new Mastra({ agents: { scripted }, storage: new InMemoryStore(), logger: false });

serve(() => new MastraAgent({ agent: mastra.getAgent("scripted"), resourceId: "user" }));
