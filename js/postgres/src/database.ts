import pg from "pg";
import { Cluster, type ClusterMap, type ClusterNode, type Thread } from "./cluster.ts";

export interface DatabaseOptions {
  /** A pool of the caller, who also ends it. Without one, `connectionString` or `nodes` is needed. */
  pool?: pg.Pool | undefined;
  /** The address of the database, for a pool that `close` ends. */
  connectionString?: string | undefined;
  /** The databases of a cluster, instead of one database. */
  nodes?: ClusterNode[] | undefined;
  /** The tenant whose threads are meant. The default is the scope '', for databases without tenants. */
  scope?: string | undefined;
  /**
   * How long to wait for a connection, and then for the answer to a statement, which the network may have lost, in
   * milliseconds. Then the call fails with an error for which isTransient is true. Without it, a call waits as long as the pool
   * says.
   */
  timeout?: number | undefined;
}

/** What statements run on: a pool, or a connection with an open transaction. */
export interface Queryable {
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<pg.QueryResult<Row>>;
}

/** A pool, or a cluster of them, and those that `close` ends. */
interface Source {
  readonly at: pg.Pool | Cluster;
  readonly owned: pg.Pool[];
  ended?: Promise<unknown>;
}

/** What a statement is for, if the source is a cluster: a thread, or a node. */
type Target = { threadId?: string; node?: string };

/**
 * The database of a package, or the databases of a cluster. It prepares no named statements and keeps nothing in sessions, so it
 * works through PgBouncer in transaction mode.
 */
export class Database {
  readonly scope: string;
  readonly #options: DatabaseOptions;
  readonly #source: Source;
  readonly #target: Target;

  constructor(options: DatabaseOptions, source = sourceOf(options), target: Target = {}) {
    this.scope = options.scope ?? "";
    this.#options = options;
    this.#source = source;
    this.#target = target;
  }

  /** The same database for another tenant. It shares the pool, which only the original ends. */
  inScope(scope: string): Database {
    return scope === this.scope ? this : this.#derived({ scope });
  }

  /** The same database with a timeout of at most so many milliseconds. It shares the pool. */
  within(timeout: number): Database {
    return this.#derived({ timeout: Math.min(timeout, this.#options.timeout ?? timeout) });
  }

  /**
   * The database for the statements about a thread of the scope. In a cluster they go to the node that has the thread. While it
   * is being moved, they wait, up to 10 seconds; then they fail with UI027.
   */
  ofThread(threadId: string): Database {
    return this.#source.at instanceof Cluster ? this.#derived({}, { threadId }) : this;
  }

  /** The database of a node of the cluster. It refuses threads of others with UI027. undefined: there is no cluster. */
  onNode(node: string | undefined): Database {
    return node === undefined ? this : this.#derived({}, { node });
  }

  #derived(options: Partial<DatabaseOptions>, target = this.#target): Database {
    return new Database({ ...this.#options, ...options }, { at: this.#source.at, owned: [] }, target);
  }

  /** The databases for lists: one for each node. */
  get nodes(): Database[] {
    return this.#source.at instanceof Cluster ? this.#source.at.names.map((node) => this.onNode(node)) : [this];
  }

  /** The node that has a thread, as far as the process knows; undefined before `ready`, and without a cluster. */
  nodeOf(thread: Thread): string | undefined {
    return this.#source.at instanceof Cluster ? this.#source.at.nodeOf(thread) : undefined;
  }

  /** Makes sure that `nodeOf` knows the nodes of threads. */
  async ready(): Promise<void> {
    if (this.#source.at instanceof Cluster) {
      await this.#source.at.ready(this.#readMap);
    }
  }

  /** Learns from an error of `onNode` where threads are. Returns whether it says so. */
  learn(error: unknown): boolean {
    return this.#source.at instanceof Cluster && this.#source.at.learn(error);
  }

  /**
   * Makes a call for many threads: in a cluster at each node that has some of them, until each is done. Fails with UI027 if a
   * thread is being moved for longer than `patience`, in milliseconds.
   */
  async eachNode<Item extends Thread>(
    items: Item[], patience: number, call: (database: Database, items: Item[]) => Promise<void>,
  ): Promise<void> {
    const { at } = this.#source;
    if (!(at instanceof Cluster)) {
      return call(this, items);
    }
    let left = items;
    await at.settle(async () => {
      await this.ready();
      const groups = [...groupBy(left, (item) => at.nodeOf(item)!)];
      const results = await Promise.allSettled(groups.map(([node, group]) => call(this.onNode(node), group)));
      const failures = results.map((result) => (result.status === "rejected" ? result.reason : undefined));
      const isMoved = failures.map((failure) => at.learn(failure));
      left = groups.flatMap(([, group], i) => (isMoved[i] ? group : []));
      const failed = failures.find((failure, i) => failure !== undefined && !isMoved[i]) ?? failures[isMoved.indexOf(true)];
      if (failed !== undefined) {
        throw failed;
      }
    }, patience);
  }

  /** Runs one statement. */
  async query<Row extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<Row[]> {
    const run = async (connection: Queryable) => (await connection.query<Row>(text, values)).rows;
    return this.scope === "" ? this.#onConnection(run) : this.transaction(run);
  }

  /** Runs statements in one transaction, in which agui.scope is set for row-level security. */
  async transaction<Result>(work: (connection: Queryable) => Promise<Result>): Promise<Result> {
    return this.#onConnection(async (connection) => {
      await connection.query(this.scope === "" ? "begin" : `begin; set local agui.scope = ${pg.escapeLiteral(this.scope)}`);
      const result = await work(connection);
      await connection.query("commit");
      return result;
    });
  }

  async #onConnection<Result>(work: (connection: Queryable) => Promise<Result>): Promise<Result> {
    const { at } = this.#source;
    if (!(at instanceof Cluster)) {
      return this.#onPool(at, work);
    }
    const { node, threadId } = this.#target;
    if (node !== undefined) {
      return this.#onPool(await at.poolOf(node, this.#readMap), work);
    }
    if (threadId === undefined) {
      throw new Error("pgagui: a statement for a cluster names no thread and no node");
    }
    return at.settle(async () => {
      await this.ready();
      return this.#onPool(await at.poolOf(at.nodeOf({ scope: this.scope, threadId })!, this.#readMap), work);
    });
  }

  readonly #readMap = (pool: pg.Pool): Promise<ClusterMap> =>
    this.#onPool(pool, async (connection) => (await connection.query<{ map: ClusterMap }>("select agui.cluster_map() as map")).rows[0]!.map);

  async #onPool<Result>(pool: pg.Pool, work: (connection: Queryable) => Promise<Result>): Promise<Result> {
    const connection = await this.#connect(pool);
    let failure: unknown;
    // A connection that breaks while it is checked out reports that as an event, too.
    const note = (error: Error) => void (failure ??= error);
    connection.on("error", note);
    try {
      return await work({
        query: <Row extends pg.QueryResultRow>(text: string, values?: unknown[]) => connection.query<Row>(this.#timed(text, values)),
      });
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      connection.off("error", note);
      // After a failure the connection is not reused: its transaction, or its answer, may still be open.
      connection.release(failure !== undefined);
    }
  }

  /** Checks out a connection. A pool of the caller may wait without end for one: one that comes late goes back. */
  #connect(pool: pg.Pool): Promise<pg.PoolClient> {
    const { timeout } = this.#options;
    const connecting = pool.connect();
    if (timeout === undefined) {
      return connecting;
    }
    return new Promise((resolve, reject) => {
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        reject(new Error("timeout exceeded when trying to connect"));
      }, timeout);
      connecting.then((connection) => (isLate ? connection.release() : resolve(connection)), reject).finally(() => clearTimeout(timer));
    });
  }

  #timed(text: string, values?: unknown[]): pg.QueryConfig {
    const statement: pg.QueryConfig & { query_timeout?: number | undefined } = { text, query_timeout: this.#options.timeout };
    if (values?.length) {
      statement.values = values;
    }
    return statement;
  }

  /** Ends the pools that the caller did not give. */
  async close(): Promise<void> {
    await (this.#source.ended ??= Promise.all(this.#source.owned.map((pool) => pool.end())));
  }
}

function sourceOf({ pool, connectionString, nodes, timeout }: DatabaseOptions): Source {
  const owned: pg.Pool[] = [];
  const open = (place: { pool?: pg.Pool | undefined; connectionString?: string | undefined }, missing: string): pg.Pool => {
    if (place.pool) {
      return place.pool;
    }
    if (!place.connectionString) {
      throw new TypeError(`pgagui: ${missing}`);
    }
    const opened = new pg.Pool({
      connectionString: place.connectionString, connectionTimeoutMillis: Math.min(timeout ?? 10_000, 10_000), allowExitOnIdle: true,
    });
    // Without a listener, an idle connection that breaks would end the process. The next statement gets another connection.
    opened.on("error", () => {});
    owned.push(opened);
    return opened;
  };
  if (!nodes) {
    return { at: open({ pool, connectionString }, "no database is given (set pool, connectionString or nodes)"), owned };
  }
  if (pool || connectionString) {
    throw new TypeError("pgagui: nodes is given with pool or connectionString (expected the databases of a cluster, or one database)");
  }
  const members = nodes.map((node) => ({
    name: node.name, pool: open(node, `node ${JSON.stringify(node.name)} has no database (set its pool or connectionString)`),
  }));
  return { at: new Cluster(members), owned };
}

/** Items in groups of one scope each: a statement is for one tenant. */
export function byScope<Item extends { readonly scope: string }>(items: Iterable<Item>): Map<string, Item[]> {
  return groupBy(items, ({ scope }) => scope);
}

/** Items in groups that have the same key. */
export function groupBy<Item, Key>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key) ?? [];
    groups.set(key, group);
    group.push(item);
  }
  return groups;
}
