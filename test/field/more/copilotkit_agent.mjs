// CopilotKit's own agent with a scripted model. It asks by an interrupt in RUN_FINISHED.

import { BuiltInAgent, defineTool } from "@copilotkit/runtime/v2";
import { z } from "zod";
import { serve } from "../script.mjs";
import { model } from "./model.mjs";

const parameters = z.object({ at: z.string() });

const tools = [
  defineTool({ name: "look", description: "Looks", parameters, execute: async ({ at }) => `seen ${at}` }),
  defineTool({ name: "erase", description: "Erases, if the user agrees", parameters, interrupt: true, interruptMessage: "Erase it?" }),
  defineTool({ name: "shatter", description: "Fails", parameters, execute: async ({ at }) => { throw new Error(`no tool for ${at}`); } }),
];

serve(() => new BuiltInAgent({ model, tools, maxSteps: 3, maxRetries: 0 }));
