// How chunks are stored: as the AG-UI events that they are. What the package must know besides is in the member
// metadata["pgagui/tanstack-ai"] of an event, which readers of a stream never see.

import type { StreamChunk } from "@tanstack/ai";

const noteName = "pgagui/tanstack-ai";

interface Note {
  /** The event is not a chunk: it closes the stream, or shows that its writer is alive. */
  control?: "closed" | "alive";
  /** The ids that the chunk has. The log names its own. */
  ids?: { threadId?: string; runId?: string };
  /** Whether the chunk has metadata of its own. */
  hasMetadata?: boolean;
}

type Event = { type: string; metadata?: Record<string, unknown>; [member: string]: unknown };

/** The event to store for a chunk. agui.append refuses a RUN_STARTED that names another run, so the ids are replaced. */
export function eventOf(chunk: StreamChunk, threadId: string, runId: string): string {
  const json = JSON.stringify(chunk);
  if (!chunk.type.startsWith("RUN_")) return json;
  const event = JSON.parse(json) as Event;
  const ids: Record<string, string> = {};
  for (const [name, id] of Object.entries({ threadId, runId })) {
    const own = event[name];
    if (typeof own === "string" && own !== id) {
      ids[name] = own;
      event[name] = id;
    }
  }
  if (Object.keys(ids).length === 0) return json;
  const note: Note = { ids, hasMetadata: event.metadata !== undefined };
  event.metadata = { ...event.metadata, [noteName]: note };
  return JSON.stringify(event);
}

/** The chunk of a stored event, or undefined if the event is not a chunk. */
export function chunkOf(event: Event): StreamChunk | undefined {
  const note = noteOf(event);
  if (!note) return event as unknown as StreamChunk;
  if (note.control) return undefined;
  const { [noteName]: _, ...metadata } = event.metadata!;
  const chunk: Event = { ...event, metadata, ...note.ids };
  if (!note.hasMetadata) delete chunk.metadata;
  return chunk as unknown as StreamChunk;
}

/** Whether an event closes the stream, if nothing comes after it. */
export function isClosing(event: Event | undefined): boolean {
  return event !== undefined && noteOf(event)?.control === "closed";
}

/** The event that closes a stream. If the run is in progress, the event also ends it: a run must end. */
export function closingEvent(isRunning: boolean): string {
  return control("closed", isRunning
    ? { type: "RUN_ERROR", message: "The stream was closed without RUN_FINISHED or RUN_ERROR.", code: "STREAM_INCOMPLETE" }
    : { type: "CUSTOM", name: "pgagui.closed", value: {} });
}

/** The heartbeat of a stream that goes on after RUN_FINISHED, as that of an agent loop may. */
export function aliveEvent(): string {
  return control("alive", { type: "CUSTOM", name: "pgagui.alive", value: {} });
}

function control(control: Note["control"], event: Event): string {
  return JSON.stringify({ ...event, timestamp: Date.now(), metadata: { [noteName]: { control } } });
}

function noteOf(event: Event): Note | undefined {
  return event.metadata?.[noteName] as Note | undefined;
}
