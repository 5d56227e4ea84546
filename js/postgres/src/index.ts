// What the packages that talk to PostgreSQL share: a pool or the pools of a cluster, the scope of a tenant in each transaction,
// which errors are transient, heartbeats and polls.

export { bucketOf, mergePages, type ClusterNode, type Page } from "./cluster.ts";
export { byScope, Database, type DatabaseOptions, type Queryable } from "./database.ts";
export * as states from "./states.ts";
export { classOf, codeOf, isTimeout, isTransient, isUnknown, type ErrorClass } from "./errors.ts";
export { Heartbeats, type Beating, type HeartbeatOptions, type Signal } from "./heartbeats.ts";
export { Poller, type AguiEvent, type Batch, type Follower, type News, type PollerOptions, type Position } from "./poller.ts";
export { pause, retry, type RetryOptions } from "./retry.ts";
