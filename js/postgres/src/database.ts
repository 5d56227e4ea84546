import pg from "pg";

export interface DatabaseOptions {
  /** A pool of the caller, who also ends it. Without one, `connectionString` is needed. */
  pool?: pg.Pool | undefined;
  /** The address of the database, for a pool that `close` ends. */
  connectionString?: string | undefined;
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

/**
 * The database of a package. It prepares no named statements and keeps nothing in sessions, so it works through PgBouncer in
 * transaction mode.
 */
export class Database {
  readonly scope: string;
  readonly #options: DatabaseOptions;
  readonly #pool: pg.Pool;
  readonly #ownsPool: boolean;
  #ended: Promise<void> | undefined;

  constructor(options: DatabaseOptions) {
    if (!options.pool && !options.connectionString) {
      throw new TypeError("pgagui: no database is given (set pool or connectionString)");
    }
    this.scope = options.scope ?? "";
    this.#options = options;
    this.#ownsPool = !options.pool;
    this.#pool = options.pool ?? new pg.Pool({
      connectionString: options.connectionString, connectionTimeoutMillis: Math.min(options.timeout ?? 10_000, 10_000), allowExitOnIdle: true,
    });
    if (this.#ownsPool) {
      // Without a listener, an idle connection that breaks would end the process. The next statement gets another connection.
      this.#pool.on("error", () => {});
    }
  }

  /** The same database for another tenant. It shares the pool, which only the original ends. */
  inScope(scope: string): Database {
    return scope === this.scope ? this : new Database({ ...this.#options, pool: this.#pool, scope });
  }

  /** The same database with a timeout of at most so many milliseconds. It shares the pool. */
  within(timeout: number): Database {
    return new Database({ ...this.#options, pool: this.#pool, timeout: Math.min(timeout, this.#options.timeout ?? timeout) });
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
    const connection = await this.#connect();
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
  #connect(): Promise<pg.PoolClient> {
    const { timeout } = this.#options;
    const connecting = this.#pool.connect();
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

  /** Ends the pool, unless the caller gave it. */
  async close(): Promise<void> {
    if (this.#ownsPool) {
      await (this.#ended ??= this.#pool.end());
    }
  }
}

/** Items in groups of one scope each: a statement is for one tenant. */
export function byScope<Item extends { readonly scope: string }>(items: Iterable<Item>): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const group = groups.get(item.scope) ?? [];
    groups.set(item.scope, group);
    group.push(item);
  }
  return groups;
}
