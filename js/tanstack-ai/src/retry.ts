import { setTimeout as sleep } from "node:timers/promises";
import { isTransient } from "@pgagui/postgres";

/** Repeats a call that failed with a transient error, with backoff, for some milliseconds. */
export async function retry<Result>(
  call: () => Promise<Result>,
  options: { forAtMost: number; signal?: AbortSignal | undefined },
): Promise<Result> {
  const until = Date.now() + options.forAtMost;
  for (let pause = 50; ; pause = Math.min(2 * pause, 2_000)) {
    try {
      return await call();
    } catch (error) {
      if (!isTransient(error) || options.signal?.aborted || Date.now() + pause > until) throw error;
    }
    await pauseFor(pause * (0.5 + Math.random() / 2), options.signal);
  }
}

/** Resolves after some milliseconds, or when the signal is aborted. */
export async function pauseFor(milliseconds: number, signal?: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, signal && { signal }).catch(() => {});
}
