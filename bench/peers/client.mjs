// The official AG-UI client, unchanged.

import { AbstractAgent, compactEvents, transformChunks } from "@ag-ui/client";
import { from, lastValueFrom } from "rxjs";
import { seconds } from "./measure.mjs";

export const countEvents = (runs) => runs.reduce((count, run) => count + run.events.length, 0);

/** Compacts in memory, run by run or the whole thread in one call. compactEvents leaves the events that it is given as they are. */
export async function compact(runs, wholeThread) {
  const streams = wholeThread ? [runs.flatMap((run) => run.events)] : runs.map((run) => run.events);
  let compacted = 0;
  const took = await seconds(() => {
    for (const events of streams) compacted += compactEvents(events).length;
  });
  return { seconds: took, events: countEvents(runs), compacted };
}

/** An agent that folds given events as runAgent and connectAgent do, without their boundary, enforce and verify stages. */
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

/** Folds all events of a thread, as a client does that gets them for a reload. Their transport and parsing are not counted. */
export async function replay(runs) {
  // The reducer changes the events that it is given, so it gets copies.
  const events = structuredClone(runs.flatMap((run) => run.events));
  const agent = new Replay({ threadId: runs[0].threadId });
  const took = await seconds(() => agent.fold(events));
  return { seconds: took, events: events.length, messages: agent.messages.length };
}
