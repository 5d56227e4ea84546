// CopilotKit: its built-in agent behind its runtime, served over HTTP on a free port of this machine.

import { once } from "node:events";
import { createServer } from "node:http";
import { EventType } from "@ag-ui/client";
import { BuiltInAgent, CopilotRuntime, InMemoryAgentRunner } from "@copilotkit/runtime/v2";
import { createCopilotNodeListener } from "@copilotkit/runtime/v2/node";
import { map } from "rxjs";
import { aiSDKModel } from "./scripted-model.mjs";

/**
 * The runtime's in-memory runner adds the run's input to RUN_STARTED, its parentRunId included, but leaves the event's own
 * parentRunId empty. This one repeats it there, where the protocol has it.
 */
class BranchingRunner extends InMemoryAgentRunner {
  run(request) {
    const { parentRunId } = request.input;
    const events = super.run(request);
    if (parentRunId === undefined) return events;
    return events.pipe(map((event) => (event.type === EventType.RUN_STARTED ? { ...event, parentRunId } : event)));
  }
}

export const builtInAgent = ({ script, tools, prompt }) =>
  new BuiltInAgent({ model: aiSDKModel(script), tools, prompt, maxSteps: 6, maxRetries: 0 });

/** Serves the agent while `use` runs; `use` gets the URL to post a RunAgentInput to. */
export async function withCopilotKit({ agent, openGenerativeUI = false }, use) {
  const runtime = new CopilotRuntime({ agents: { assistant: agent }, runner: new BranchingRunner(), openGenerativeUI });
  const server = createServer(createCopilotNodeListener({ runtime, basePath: "/api/copilotkit" }));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    await use(`http://127.0.0.1:${server.address().port}/api/copilotkit/agent/assistant/run`);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}
