// The events of thinking, which protocol 0 had, as those of reasoning that took their place. The client shows no thinking, and a reload
// shows it as the fold reads it (compaction/thinking.go): as a reasoning message with an id of the run and the seq of its start.

import type { AguiEvent } from "@pgagui/postgres";
import { textOf } from "./events.ts";
import { actions, became } from "./protocol.ts";

/** Translates the events of a stream, in their order. */
export class Thinking {
  #open = new Map<string, string>(); // the ids of what is open, by reasoning or span

  /** Returns the event of reasoning that an event of thinking means, at a seq of a run; any other event as it is. */
  read(event: AguiEvent, runId: string, seq: number): AguiEvent {
    const { does } = actions.get(event.type) ?? {};
    const type = became.get(event.type) ?? event.type;
    const part = actions.get(type)?.part;
    if (does?.endsWith(" run")) {
      this.#open.clear();
    }
    if (part !== "reasoning" && part !== "span") {
      return event;
    }
    const made = `${runId}-thinking-`;
    const open = this.#open.get(part);
    const id = type === event.type ? textOf(event, "messageId") : does !== "start" && open || made + seq;
    if (does === "start" && id?.startsWith(made) && /^\d+$/.test(id.slice(made.length))) {
      this.#open.set(part, id);
    } else if (does === "end" && id === open) {
      this.#open.delete(part);
    }
    return type === event.type ? event : { ...event, type, messageId: id };
  }
}
