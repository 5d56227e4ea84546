// CopilotKit's runtime on PostgreSQL, with pgagui.

export { PgaguiAgentRunner, type DatabaseOptions, type CustomEvents, type LogEntry, type RunnerOptions } from "./runner.ts";
export { threadHooks, type ThreadHooks } from "./threads.ts";
