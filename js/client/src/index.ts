// AG-UI clients of pgagui serve.

export { PgaguiAgent, type ConnectParameters, type PgaguiAgentConfig, type RunParameters } from "./agent.ts";
export type { Position, PositionStorage } from "./position.ts";
export { PgaguiError, type Fetch, type HeadersSource, type Problem, type RequestOptions, type RetryOptions } from "./requests.ts";
export {
  Threads, type Branch, type CallOptions, type Conversation, type ForkPoint, type Point, type Run, type RunStatus, type Thread,
  type ThreadChanges, type ThreadFilter, type ThreadPage, type ThreadsConfig,
} from "./threads.ts";
