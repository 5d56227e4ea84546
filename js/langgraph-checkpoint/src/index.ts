// A checkpointer of LangGraph. The schema agui stores the checkpoints beside the log of the same
// thread: each value of a channel once for each version, and each element of a list once.

import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  maxChannelVersion,
  TASKS,
  WRITES_IDX_MAP,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  type PendingWrite,
  type SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import { Database, isUnknown, mergePages, retry, type ClusterNode, type Page } from "@pgagui/postgres";
import type pg from "pg";

export interface PgaguiSaverOptions {
  /** A pool of the caller, who also ends it. Without one, `connectionString` or `nodes` is needed. */
  pool?: pg.Pool;
  /** The address of the database, for a pool that `end` ends. */
  connectionString?: string;
  /** The databases of a cluster, each with its name there and with one of the above. */
  nodes?: ClusterNode[];
  /** The tenant whose threads are meant. The default is the scope '', for databases without tenants. */
  scope?: string;
  /** How values become JSON or bytes. The default is that of LangGraph, which makes JSON of most. */
  serde?: SerializerProtocol;
}

/** A piece of a checkpoint. */
interface PieceRow {
  thread_id: string;
  namespace: string;
  checkpoint_id: string;
  parent_id: string | null;
  cursor: string;
  kind: "document" | "metadata" | "value" | "write";
  task_id: string | null;
  channel: string | null;
  type: string;
  body: string | null;
  bytes: Buffer | null;
}

/** What `getDeltaChannelHistory` returns for a channel. */
interface ChannelHistory {
  writes: CheckpointPendingWrite[];
  seed?: unknown;
}

interface Place {
  threadId: string | null;
  namespace: string | null;
  checkpointId: string | null;
}

interface FoundTuple {
  tuple: CheckpointTuple;
  /** Its place in the list, to continue from. */
  cursor: string;
}

/** Tuples that one statement reads. */
const pageRows = 50;

/** How long to wait for the answer to a statement, in milliseconds: it may have a checkpoint of 64 MB. */
const timeout = 30_000;
/** How long to retry a statement whose answer is lost, in milliseconds. */
const retryTimeout = 3 * timeout;

const tuplesQuery = `
  select thread_id, namespace, checkpoint_id, parent_id, cursor, kind, task_id, channel, type, body::text, bytes
  from agui.checkpoint_contents($1, $2, $3, $4, $5, $6, $7, $8)`;

/**
 * Stores the checkpoints of LangGraph in PostgreSQL, in the schema agui. It creates nothing:
 * `pgagui migrate up` installs the schema. Calls are retried for up to 90 seconds while the database
 * does not answer; then they fail with its error.
 */
export class PgaguiSaver extends BaseCheckpointSaver {
  readonly #database: Database;

  constructor(options: PgaguiSaverOptions) {
    super(options.serde);
    this.#database = new Database({ ...options, timeout });
  }

  /** Makes a saver for the database at this address, with a pool of its own. */
  static fromConnString(connectionString: string, options: Omit<PgaguiSaverOptions, "pool" | "connectionString" | "nodes"> = {}): PgaguiSaver {
    return new PgaguiSaver({ ...options, connectionString });
  }

  /** Ends the pool of the saver. A pool of the caller stays open. */
  async end(): Promise<void> {
    await this.#database.close();
  }

  /** Returns the checkpoint that `config` names, or the one with the greatest id; `undefined` if there is none. */
  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const place = placeOf(config);
    if (place.threadId === null) {
      return undefined;
    }
    const { items: [found] } = await this.#tuples({ ...place, namespace: place.namespace ?? "" }, { limit: 1 });
    return found?.tuple;
  }

  /**
   * Yields checkpoints, the greatest id first: those of the thread, the namespace and the id that
   * `config` names, or else of all of the scope. `filter` compares like `@>` of jsonb.
   */
  async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    let left = options.limit ?? Infinity;
    let cursor: string | null = null;
    while (left > 0) {
      const wanted = Math.min(left, pageRows);
      const { items, next }: Page<FoundTuple> = await this.#tuples(placeOf(config), { ...options, limit: wanted, cursor });
      for (const { tuple } of items) {
        yield tuple;
      }
      if (next === null) {
        return;
      }
      left -= items.length;
      cursor = next;
    }
  }

  /**
   * Stores a checkpoint, with the values of the channels that `newVersions` names. A second call with
   * the same id replaces the checkpoint. If `configurable.run_id` is the id of a run of the
   * thread's log, `checkpointAt` finds the checkpoint by it.
   */
  async put(config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, newVersions: ChannelVersions): Promise<RunnableConfig> {
    const { threadId, namespace, checkpointId } = requireThread(config, "put a checkpoint");
    const { channel_values: values, ...document } = checkpoint;
    const changed = Object.entries(newVersions).filter(([channel]) => Object.hasOwn(values, channel));
    const contents = await this.#contents(changed.map(([channel]) => values[channel]));
    const runId: unknown = config.configurable?.run_id;
    await this.#query(
      threadId,
      "select agui.put_checkpoint($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
      [
        threadId, checkpoint.id, JSON.stringify(document), await this.#metadataText(metadata), checkpointId,
        changed.map(([channel]) => channel), changed.map(([, version]) => String(version)), contents.types, contents.json,
        typeof runId === "string" && runId !== "" ? runId : null, namespace, this.#database.scope,
      ],
    );
    return { configurable: { thread_id: threadId, checkpoint_ns: namespace, checkpoint_id: checkpoint.id } };
  }

  /** Stores what a task wrote after a checkpoint. It is idempotent; special channels, such as the one for errors, are replaced. */
  async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath = ""): Promise<void> {
    const { threadId, namespace, checkpointId } = requireThread(config, "put writes");
    if (checkpointId === null) {
      throw new Error('pgagui: put writes: configurable.checkpoint_id is missing (name the checkpoint that the task continued from)');
    }
    const contents = await this.#contents(writes.map(([, value]) => value));
    await this.#query(
      threadId,
      "select agui.put_checkpoint_writes($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
      [
        threadId, checkpointId, taskId, writes.map(([channel]) => channel), contents.types, contents.json,
        writes.map(([channel], place) => (Object.hasOwn(WRITES_IDX_MAP, channel) ? WRITES_IDX_MAP[channel] : place)), taskPath, namespace, this.#database.scope,
      ],
    );
  }

  /**
   * Returns the version after `current`, with a random fraction. Branches that begin at one checkpoint continue from the same
   * version, and a version of a channel is stored once. Without the fraction, one branch would get the values of the other.
   */
  override getNextVersion(current: number | undefined): number {
    return Math.floor(super.getNextVersion(current)) + Math.random();
  }

  /** Removes the checkpoints of a thread. Its log stays. */
  async deleteThread(threadId: string): Promise<void> {
    await this.#query(threadId, "select agui.remove_checkpoints($1, $2)", [threadId, this.#database.scope]);
  }

  /**
   * Returns the config of the checkpoint that belongs to a run of the thread's log: the one stored
   * last at the run, or else at the nearest run before it on its lineage. Invoke the graph with it to
   * continue from a branch of the conversation. `undefined` if there is none.
   */
  async checkpointAt(run: { threadId: string; runId: string; checkpointNs?: string }): Promise<RunnableConfig | undefined> {
    const { threadId, runId, checkpointNs = "" } = run;
    try {
      const [row] = await this.#query<{ checkpoint_id: string }>(
        threadId, "select checkpoint_id from agui.load_checkpoint($1, null, $2, $3, $4)", [threadId, checkpointNs, runId, this.#database.scope]);
      return row && { configurable: { thread_id: threadId, checkpoint_ns: checkpointNs, checkpoint_id: row.checkpoint_id } };
    } catch (error) {
      if (isUnknown(error)) { // The thread or the run has no log.
        return undefined;
      }
      throw error;
    }
  }

  /** Returns what built the values of DeltaChannels at a checkpoint, in one call for the whole lineage. */
  override async getDeltaChannelHistory(options: { config: RunnableConfig; channels: string[] }): Promise<Record<string, ChannelHistory>> {
    const history: Record<string, ChannelHistory> = {};
    for (const channel of options.channels) {
      history[channel] = { writes: [] };
    }
    const { threadId, namespace, checkpointId } = placeOf(options.config);
    if (threadId === null || options.channels.length === 0) {
      return history;
    }
    const rows = await this.#query<Pick<PieceRow, "task_id" | "type" | "body" | "bytes"> & { channel: string }>(
      threadId, `select channel, task_id, type, body::text, bytes from agui.channel_history($1, $2, $3, $4, $5) order by place`,
      [threadId, options.channels, checkpointId, namespace ?? "", this.#database.scope]);
    const values = await Promise.all(rows.map((row) => this.#load(row)));
    for (const [n, { channel, task_id: taskId }] of rows.entries()) {
      if (taskId === null) {
        history[channel]!.seed = values[n];
      } else {
        history[channel]!.writes.push([taskId, channel, values[n]]);
      }
    }
    return history;
  }

  /** Runs a statement about a thread, and retries it while errors are transient: all statements are idempotent. */
  #query<Row extends pg.QueryResultRow>(threadId: string, text: string, values: unknown[]): Promise<Row[]> {
    return retried(() => this.#database.ofThread(threadId).query<Row>(text, values));
  }

  async #tuples(
    { threadId, namespace, checkpointId }: Place,
    { limit, before, filter, cursor = null }: CheckpointListOptions & { limit: number; cursor?: string | null },
  ): Promise<Page<FoundTuple>> {
    const values = [
      threadId, checkpointId, namespace, before?.configurable?.checkpoint_id ?? null, filter ? JSON.stringify(filter) : null, limit, cursor,
      this.#database.scope,
    ];
    const databases = threadId === null ? this.#database.nodes : [this.#database.ofThread(threadId)];
    const pages = await Promise.all(databases.map(async (database) => {
      const items = await this.#found(await retried(() => database.query<PieceRow>(tuplesQuery, values)));
      return { items, next: items.length < limit ? null : items.at(-1)!.cursor };
    }));
    return mergePages(pages, limit, {
      // A cursor is the key of the thread and a number, in 48 digits, and the id, which orders the list first.
      placeOf: (cursor) => `${cursor.slice(48)}\0${cursor.slice(0, 48)}`,
      idOf: ({ tuple }) => JSON.stringify(tuple.config.configurable),
    });
  }

  async #found(rows: PieceRow[]): Promise<FoundTuple[]> {
    const tuples: PieceRow[][] = [];
    for (const row of rows) {
      if (row.kind === "document") { // the first piece of each
        tuples.push([]);
      }
      tuples.at(-1)!.push(row);
    }
    return Promise.all(tuples.map(async (pieces) => ({ tuple: await this.#tuple(pieces), cursor: pieces[0]!.cursor })));
  }

  async #tuple(rows: PieceRow[]): Promise<CheckpointTuple> {
    const { thread_id, namespace: checkpoint_ns, checkpoint_id, parent_id } = rows[0]!;
    const checkpoint = { channel_values: {}, channel_versions: {}, versions_seen: {} } as Checkpoint;
    const pendingWrites: CheckpointPendingWrite[] = [];
    let metadata: CheckpointMetadata | undefined;
    const loaded = await Promise.all(rows.map((row) => {
      switch (row.kind) {
        case "document":
          return JSON.parse(row.body!);
        case "metadata":
          return this.#metadataOf(row.body!);
        default:
          return this.#load(row);
      }
    }));
    for (const [n, { kind, channel, task_id }] of rows.entries()) {
      switch (kind) {
        case "document":
          Object.assign(checkpoint, loaded[n]);
          break;
        case "metadata":
          metadata = loaded[n] as CheckpointMetadata;
          break;
        case "value":
          checkpoint.channel_values[channel!] = loaded[n];
          break;
        case "write":
          pendingWrites.push([task_id!, channel!, loaded[n]]);
      }
    }
    const configOf = (id: string) => ({ configurable: { thread_id, checkpoint_ns, checkpoint_id: id } });
    if (checkpoint.v < 4 && parent_id !== null) {
      await this.#takeSendsOfParent(checkpoint, configOf(parent_id));
    }
    const tuple: CheckpointTuple = { config: configOf(checkpoint_id), checkpoint, pendingWrites };
    if (metadata !== undefined) {
      tuple.metadata = metadata;
    }
    if (parent_id !== null) {
      tuple.parentConfig = configOf(parent_id);
    }
    return tuple;
  }

  /** Before version 4 of the format, messages to nodes were writes after the parent; later they are a channel. */
  async #takeSendsOfParent(checkpoint: Checkpoint, parentConfig: RunnableConfig): Promise<void> {
    const parent = await this.getTuple(parentConfig);
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_values[TASKS] = (parent?.pendingWrites ?? []).filter(([, channel]) => channel === TASKS).map(([, , value]) => value);
    checkpoint.channel_versions[TASKS] = versions.length > 0 ? maxChannelVersion(...versions) : super.getNextVersion(undefined);
  }

  /** The types of values, and their contents as a JSON array: JSON as it is, bytes as base64. */
  async #contents(values: unknown[]): Promise<{ types: string[]; json: string }> {
    const dumped = await Promise.all(values.map(async (value) => {
      const [type, data] = await this.serde.dumpsTyped(value);
      // A function has no JSON. In a member of an object it would count as undefined, too.
      return type === "json" && data.length === 0 ? this.serde.dumpsTyped(undefined) : [type, data] as const;
    }));
    const texts = dumped.map(([type, data]) => (type === "json" ? textOf(data) : JSON.stringify(Buffer.from(data).toString("base64"))));
    return { types: dumped.map(([type]) => type), json: `[${texts.join(",")}]` };
  }

  /**
   * Metadata is JSON even if the serializer makes something else of values: lists filter by it. LangGraph's serializer makes a text
   * of metadata that has a bigint, which would lose the step.
   */
  async #metadataText(metadata: CheckpointMetadata): Promise<string> {
    const [type, data] = await this.serde.dumpsTyped(metadata);
    const text = type === "json" ? textOf(data) : "";
    return text.startsWith("{") ? text : JSON.stringify(metadata, (_, value) => (typeof value === "bigint" ? String(value) : value));
  }

  async #metadataOf(text: string): Promise<CheckpointMetadata> {
    return this.serde.loadsTyped(...(await this.serde.dumpsTyped(JSON.parse(text))));
  }

  async #load({ type, body, bytes }: Pick<PieceRow, "type" | "body" | "bytes">): Promise<unknown> {
    return this.serde.loadsTyped(type, body ?? new Uint8Array(bytes!));
  }
}

function retried<Result>(call: () => Promise<Result>): Promise<Result> {
  return retry(call, { forAtMost: retryTimeout });
}

function textOf(data: Uint8Array): string {
  return new TextDecoder().decode(data);
}

function placeOf(config: RunnableConfig): Place {
  const { thread_id: threadId, checkpoint_ns: namespace, checkpoint_id: checkpointId } = config.configurable ?? {};
  return { threadId: threadId == null ? null : String(threadId), namespace: namespace ?? null, checkpointId: checkpointId || null };
}

/** The place in a config that must name a thread, with the default namespace. */
function requireThread(config: RunnableConfig, purpose: string): { threadId: string; namespace: string; checkpointId: string | null } {
  const { threadId, namespace, checkpointId } = placeOf(config);
  if (threadId === null || threadId === "") {
    throw new Error(`pgagui: ${purpose}: configurable.thread_id is missing (invoke the graph with {configurable: {thread_id: "…"}})`);
  }
  return { threadId, namespace: namespace ?? "", checkpointId };
}
