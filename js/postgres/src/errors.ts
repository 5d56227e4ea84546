import { retries, unknownRun, unknownThread } from "./states.ts";

/** The SQLSTATE of an error of the database, or undefined for other errors. */
export function codeOf(error: unknown): string | undefined {
  // Not instanceof pg.DatabaseError: the pool may be of another copy of pg than this module's.
  const { severity, code } = (error ?? {}) as { severity?: unknown; code?: unknown };
  return error instanceof Error && typeof severity === "string" && typeof code === "string" ? code : undefined;
}

/** Whether an error says that the thread does not exist, or has no such run. */
export function isUnknown(error: unknown): boolean {
  return [unknownThread, unknownRun].includes(codeOf(error) ?? "");
}

/**
 * Whether a retry of a call that failed may succeed. permanent: each attempt fails. uncertain: a retry may succeed, or each
 * attempt may fail. transient: the connection was lost or could not be opened, the server is starting, stopping or lacks a
 * resource, or another transaction holds a lock. The classes are those of protocol/errors.json.
 */
export type ErrorClass = "permanent" | "uncertain" | "transient";

export function classOf(error: unknown): ErrorClass {
  const { message } = (error ?? {}) as { message?: unknown };
  const state = codeOf(error);
  if (state !== undefined) {
    return retries.find(([code, begin]) => state.startsWith(code) && String(message).startsWith(begin))?.[2] ?? "permanent";
  }
  const { code } = (error ?? {}) as { code?: unknown };
  const isOfSystem = typeof code === "string" && /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOST|ENET)/.test(code);
  const isOfConnection = error instanceof Error &&
    /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error/.test(error.message);
  return isOfSystem || isOfConnection || isTimeout(error) ? "transient" : "permanent";
}

/** Whether an error may be transient, so that a retry may succeed. */
export function isTransient(error: unknown): boolean {
  return classOf(error) !== "permanent";
}

/** Whether a statement got no answer in time. */
export function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === "Query read timeout";
}
