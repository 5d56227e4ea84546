import { setTimeout } from "node:timers/promises";
import { classOf, type ErrorClass } from "./errors.ts";

export interface RetryOptions {
  /** Ends the attempts. The call then fails with the reason of the signal. */
  signal?: AbortSignal | undefined;
  /** How long to retry, in milliseconds. The default is until the call succeeds. */
  forAtMost?: number | undefined;
  /** Called before each retry, with the error of the attempt before. If it throws, the retry counts as failed. */
  onRetry?: ((error: unknown, attempt: number) => void | Promise<void>) | undefined;
  /** The default is classOf. */
  classify?: ((error: unknown) => ErrorClass) | undefined;
}

const shortestPause = 20;
const longestPause = 2000;
/** Uncertain failures of the call in a row. */
const maxUncertain = 3;

/**
 * Makes a call until it succeeds or fails with a permanent error, with backoff and jitter. Uncertain failures are retried a few
 * times.
 */
export async function retry<Result>(call: () => Promise<Result>, options: RetryOptions = {}): Promise<Result> {
  const { signal, forAtMost = Infinity, onRetry, classify = classOf } = options;
  const begin = Date.now();
  let uncertain = 0;
  let failure: unknown;
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted();
    let isCalled = false;
    try {
      if (attempt > 1) {
        await onRetry?.(failure, attempt);
      }
      isCalled = true;
      return await call();
    } catch (error) {
      const errorClass = classify(error);
      uncertain = isCalled && errorClass === "uncertain" ? uncertain + 1 : 0;
      if (errorClass === "permanent" || uncertain > maxUncertain) {
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
