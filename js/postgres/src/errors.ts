/** The SQLSTATE of an error of the database, or undefined for other errors. */
export function codeOf(error: unknown): string | undefined {
  // Not instanceof pg.DatabaseError: the pool may be of another copy of pg than this module's.
  const { severity, code } = (error ?? {}) as { severity?: unknown; code?: unknown };
  return error instanceof Error && typeof severity === "string" && typeof code === "string" ? code : undefined;
}

/** Whether an error says that the thread does not exist, or has no such run. */
export function isUnknown(error: unknown): boolean {
  return ["UI001", "UI002"].includes(codeOf(error) ?? "");
}

/**
 * Whether a retry of a call that failed may succeed. permanent: each attempt fails. uncertain: a retry may succeed, or each
 * attempt may fail. transient: the connection was lost or could not be opened, the server is starting, stopping or lacks a
 * resource, or another transaction holds a lock. The classes are those of internal/live/retry.go.
 */
export type ErrorClass = "permanent" | "uncertain" | "transient";

const transientStates = /^(08...|40001|40003|40P01|53000|53100|53300|55006|55P03|57000|57P01|57P02|57P03|57P05|58000|58030|25006)$/;
/** Timeouts of the server, memory, and objects that an upgrade of the schema replaced while the call ran. */
const uncertainStates = /^(57014|53200|53400|55000|57P04|58P01|58P02|42883|42704|42703|42804)$/;
/** The error of a connection that is opened while the disk is full has no code of its own. */
const messageOfFullDisk = "could not write init file";
const messagesOfUpgrade: Record<string, RegExp> = { "0A000": /^cached plan/, XX000: /^(cache lookup failed|could not open relation)/ };

export function classOf(error: unknown): ErrorClass {
  const { message } = (error ?? {}) as { message?: unknown };
  const state = codeOf(error);
  if (state !== undefined) {
    const isUncertain = uncertainStates.test(state) || messagesOfUpgrade[state]?.test(String(message));
    return transientStates.test(state) || message === messageOfFullDisk ? "transient" : isUncertain ? "uncertain" : "permanent";
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
