/** A message of the runner about a failure. */
export interface LogEntry {
  level: "info" | "warn" | "error";
  message: string;
  threadId?: string | undefined;
  runId?: string | undefined;
  error?: unknown;
}

export type Log = (entry: LogEntry) => void;

/** Writes to the console, in one line. */
export const logToConsole: Log = ({ level, message, threadId, runId, error }) => {
  const run = runId === undefined ? "" : ` run=${runId}`;
  const thread = threadId === undefined ? "" : ` thread=${threadId}`;
  console[level](`pgagui: ${message}${thread}${run}${error === undefined ? "" : `: ${messageOf(error)}`}`);
};

/** A log that does not throw: an error of the caller's function would end runs that it is not about. */
export function guarded(log: Log): Log {
  return (entry) => {
    try {
      log(entry);
    } catch (error) {
      logToConsole({ level: "error", message: `the function log threw an error for ${JSON.stringify(entry.message)}`, error });
    }
  };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Logs an outage: a failed call at most once a minute, and the first success after it. */
export class Outage {
  readonly #log: Log;
  readonly #what: string;
  #loggedAt = 0;
  readonly listeners = { onFailure: (error: unknown) => this.failed(error), onSuccess: () => this.succeeded() };

  constructor(log: Log, what: string) {
    this.#log = log;
    this.#what = what;
  }

  failed(error: unknown): void {
    if (Date.now() - this.#loggedAt > 60_000) {
      this.#loggedAt = Date.now();
      this.#log({ level: "warn", message: `the database does not answer, retrying ${this.#what}`, error });
    }
  }

  succeeded(): void {
    if (this.#loggedAt > 0) {
      this.#loggedAt = 0;
      this.#log({ level: "info", message: `the database answers ${this.#what}` });
    }
  }
}
