// A process of CopilotKit's runtime, as a team runs it, with the runner of pgagui or its own.

import { createServer } from "node:http";
import { HttpAgent } from "@ag-ui/client-0";
import { CopilotRuntime, createCopilotRuntimeHandler, InMemoryAgentRunner } from "@copilotkit/runtime/v2";
import { createCopilotNodeHandler } from "@copilotkit/runtime/v2/node";
import { PgaguiAgentRunner, threadHooks } from "@pgagui/copilotkit-runner";

const { RUNNER, DATABASE_URL, AGENT_URL, PG_MODULE, MODE } = process.env;

const { default: pg } = await import(PG_MODULE ?? "pg");
const pool = new pg.Pool({ connectionString: DATABASE_URL });
const runner = RUNNER === "memory" ? new InMemoryAgentRunner() : new PgaguiAgentRunner({ pool, heartbeatInterval: 100 });
const runtime = new CopilotRuntime({ agents: { helper: new HttpAgent({ url: AGENT_URL }) }, runner });
const hooks = RUNNER === "memory" ? undefined : threadHooks({ pool });
const server = createServer(createCopilotNodeHandler(createCopilotRuntimeHandler({ runtime, basePath: "/copilotkit", mode: MODE, hooks, cors: true })));
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/copilotkit`));
