import { setTimeout } from "node:timers/promises";
import { codeOf, isTransient } from "./index.ts";

export interface RetryOptions {
  /** Ends the attempts. The call then fails with the reason of the signal. */
  signal?: AbortSignal | undefined;
  /** How long to retry, in milliseconds. The default is until the call succeeds. */
  forAtMost?: number | undefined;
  /** Called before each retry, with the error of the attempt before. If it throws, the retry counts as failed. */
  onRetry?: ((error: unknown, attempt: number) => void | Promise<void>) | undefined;
}

const shortestPause = 20;
const longestPause = 2000;
/** Attempts at a statement that the server canceled: for a statement_timeout that is too short, each attempt fails. */
const maxCanceled = 4;

/** Makes a call until it succeeds or fails with an error that is not transient, with backoff and jitter. */
export async function retry<Result>(call: () => Promise<Result>, options: RetryOptions = {}): Promise<Result> {
  const { signal, forAtMost = Infinity, onRetry } = options;
  const begin = Date.now();
  let canceled = 0;
  let failure: unknown;
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted();
    try {
      if (attempt > 1) {
        await onRetry?.(failure, attempt);
      }
      return await call();
    } catch (error) {
      canceled = codeOf(error) === "57014" ? canceled + 1 : 0;
      if (!isTransient(error) || canceled === maxCanceled) {
        throw error;
      }
      failure = error;
    }
    const rest = Math.min(longestPause, shortestPause * 2 ** Math.min(attempt, 10)) * (0.5 + Math.random());
    if (Date.now() - begin + rest > forAtMost) {
      throw failure;
    }
    await pause(rest, signal);
  }
}

/** Resolves after some milliseconds, or when the signal is aborted. */
export async function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  await setTimeout(milliseconds, undefined, signal && { signal }).catch(() => {});
}
