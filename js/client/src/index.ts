// AG-UI clients of pgagui serve.

export { PgaguiAgent, type ConnectParameters, type PgaguiAgentConfig, type RunParameters } from "./agent.ts";
export type { Position, PositionStorage } from "./position.ts";
export { PgaguiError, type Fetch, type HeadersSource, type Problem, type RequestOptions, type RetryOptions } from "./requests.ts";
export {
  Threads, type Branch, type CallOptions, type Change, type Conversation, type FeedPlace, type ForkPoint, type FoundMessage, type Point, type Report,
  type Run, type RunStatus, type SearchFilter, type Thread, type ThreadChanges, type ThreadFilter, type ThreadPage, type ThreadsConfig,
  type WaitingInterrupt,
} from "./threads.ts";
