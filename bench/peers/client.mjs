// The official AG-UI client, unchanged.

import { AbstractAgent, compactEvents, transformChunks } from "@ag-ui/client";
import { from, lastValueFrom } from "rxjs";
import { seconds, spent } from "./measure.mjs";

export const countEvents = (runs) => runs.reduce((count, run) => count + run.events.length, 0);

/**
 * Compacts in memory, run by run or the whole thread in one call. compactEvents does not change its
 * input.
 */
export async function compact(runs, wholeThread) {
  const streams = wholeThread ? [runs.flatMap((run) => run.events)] : runs.map((run) => run.events);
  let compacted = 0;
  const took = await spent(() => {
    for (const events of streams) compacted += compactEvents(events).length;
  });
  return { ...took, events: countEvents(runs), compacted };
}

/**
 * An agent that folds given events as runAgent and connectAgent do, without their stages boundary,
 * enforce and verify.
 */
export class Replay extends AbstractAgent {
  async fold(events) {
    const { threadId, messages, state } = this;
    const input = { threadId, runId: "", state, messages, tools: [], context: [], forwardedProps: {} };
    const applied = this.apply(input, from(events).pipe(transformChunks()), []);
    await lastValueFrom(this.processApplyEvents(input, applied, []), { defaultValue: undefined });
  }

  run() {
    throw new Error("a replay has no agent to run");
  }
}

/**
 * Folds all events of a thread, as a client does after a reload. The time excludes transport and
 * parsing.
 */
export async function replay(runs) {
  // The reducer changes its input, so it gets copies.
  const events = structuredClone(runs.flatMap((run) => run.events));
  const agent = new Replay({ threadId: runs[0].threadId });
  const took = await seconds(() => agent.fold(events));
  return { seconds: took, events: events.length, messages: agent.messages.length };
}
