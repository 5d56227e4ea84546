import type { AguiEvent } from "@pgagui/postgres";

/** Whether an event ends its run. */
export function isEnd(event: AguiEvent): boolean {
  return event.type === "RUN_FINISHED" || event.type === "RUN_ERROR";
}

/** A member of an event that is a string. */
export function textOf(event: object, member: string): string | undefined {
  const value = (event as Record<string, unknown>)[member];
  return typeof value === "string" ? value : undefined;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
