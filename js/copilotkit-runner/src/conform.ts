// The schema of the events that clients of CopilotKit 1.75 parse (@ag-ui/client 0.0.59). An event that it refuses ends the run
// of the client with an error.

import type { AguiEvent } from "@pgagui/postgres";
import { isObject } from "./events.ts";
import { instead, parts, schemas } from "./protocol.ts";

type Check = (value: unknown) => boolean;

const any: Check = () => true;
const text: Check = (value) => typeof value === "string";
const flag: Check = (value) => typeof value === "boolean";
const count: Check = (value) => Number.isInteger(value) && (value as number) >= 0;
const list: Check = Array.isArray;
const oneOf = (...values: string[]): Check => (value) => values.includes(value as string);
const listOf = (item: Check): Check => (value) => Array.isArray(value) && value.every(item);
const atLeastOne = (item: Check): Check => (value) => listOf(item)(value) && (value as unknown[]).length > 0;
const either = (...checks: Check[]): Check => (value) => checks.some((check) => check(value));
/** An object with these members. Those whose names end with ? may be absent. */
const shape = (members: Record<string, Check>): Check => (value) =>
  isObject(value) && Object.entries(members).every(([name, check]) =>
    name.endsWith("?") ? value[name.slice(0, -1)] === undefined || check(value[name.slice(0, -1)]) : check(value[name]));

const source = either(
  shape({ type: oneOf("data"), value: text, mimeType: text }),
  shape({ type: oneOf("url"), value: text, "mimeType?": text }),
);
const content = either(
  shape({ type: oneOf("text"), text }),
  shape({ type: oneOf("image", "audio", "video", "document"), source }),
  (part) => shape({ type: oneOf("binary"), mimeType: text, "id?": text, "url?": text, "data?": text, "filename?": text })(part) &&
    isObject(part) && Boolean(part.id || part.url || part.data),
);
export const isToolCall = shape({
  id: text, type: oneOf("function"), function: shape({ name: text, arguments: text }), "encryptedValue?": text, "metadata?": isObject,
});
const common = { id: text, "subagentRunId?": text, "metadata?": isObject, "encryptedValue?": text };
const messages: Record<string, Check> = {
  developer: shape({ ...common, content: text, "name?": text }),
  system: shape({ ...common, content: text, "name?": text }),
  assistant: shape({ ...common, "content?": text, "name?": text, "toolCalls?": listOf(isToolCall) }),
  user: shape({ ...common, content: either(text, listOf(content)), "name?": text }),
  tool: shape({ ...common, content: text, toolCallId: text, "error?": text }),
  activity: shape({ id: text, activityType: text, content: isObject, "subagentRunId?": text, "metadata?": isObject }),
  reasoning: shape({ ...common, content: text }),
};
const isMessage: Check = (value) =>
  isObject(value) && typeof value.role === "string" && Object.hasOwn(messages, value.role) && messages[value.role]!(value);
const input = shape({
  threadId: text, runId: text, "parentRunId?": text, messages: listOf(isMessage),
  tools: listOf(shape({ name: text, description: text, "metadata?": isObject })),
  context: listOf(shape({ description: text, value: text })),
  "resume?": listOf(shape({ interruptId: text, status: oneOf("resolved", "cancelled"), "metadata?": isObject })),
});
const outcome = either(
  shape({ type: oneOf("success") }),
  shape({
    type: oneOf("interrupt"),
    interrupts: atLeastOne(shape({
      id: text, reason: text, "message?": text, "toolCallId?": text, "responseSchema?": isObject, "expiresAt?": text, "metadata?": isObject,
      "subagentRunId?": text,
    })),
  }),
);
const usage = listOf(shape({
  "provider?": text, "model?": text, "inputTokens?": count, "outputTokens?": count, "totalTokens?": count, "reasoningTokens?": count,
  "cachedInputTokens?": count,
}));
const ofAll = { "timestamp?": Number.isInteger, "metadata?": isObject, "subagentRunId?": text };

/** What the kinds and forms of values in the schemas mean to this client. */
const checks: Record<string, Check> = {
  any, string: text, boolean: flag, object: isObject, input, usage, patch: list, messages: list, result: text,
  "run outcome": outcome,
  "subagent outcome": either(shape({ type: oneOf("success") }), shape({ type: oneOf("suspended"), "interruptIds?": listOf(text) })),
};

function checkOf(holds: string | readonly string[]): Check {
  const check = typeof holds === "string" ? checks[holds] : oneOf(...holds);
  if (!check) {
    throw new Error(`pgagui: conform.ts has no check of "${String(holds)}", which protocol.ts names`);
  }
  return check;
}

const shapes = Object.fromEntries(Object.entries(schemas).map(([type, members]) => [
  type, { ...ofAll, ...Object.fromEntries(Object.entries(members).map(([name, holds]) => [name, checkOf(holds)])) },
]));

/**
 * Returns an event in the form that the client parses, or undefined if there is none. The event loses optional members that the
 * client refuses. Events that begin and end a run always have a form.
 */
export function conform(event: AguiEvent, run: { threadId: string; runId: string }): AguiEvent | undefined {
  event = instead.has(event.type) ? { ...event, type: instead.get(event.type)! } : event;
  const schema = Object.hasOwn(shapes, event.type) ? shapes[event.type]! : undefined;
  if (!schema) {
    return undefined;
  }
  let result = event;
  const set = (name: string, value: unknown) => {
    result = result === event ? { ...event } : result;
    if (value === undefined) {
      delete result[name];
    } else {
      result[name] = value;
    }
  };
  if (event.type === parts.reasoning.start && event.role !== "reasoning") {
    set("role", "reasoning");
  }
  for (const [name, check] of Object.entries(schema)) {
    const member = name.endsWith("?") ? name.slice(0, -1) : name;
    const value = result[member];
    if (check === any || check(value) || name.endsWith("?") && value === undefined) {
      continue;
    }
    if (member === "input" && isObject(value) && Array.isArray(value.messages)) { // it may carry a part of a history
      const accepted = { ...value, messages: acceptedOf(value.messages) };
      set(member, input(accepted) ? accepted : undefined);
    } else if (name.endsWith("?")) {
      set(member, undefined);
    } else if (event.type.startsWith("RUN_")) {
      set(member, { threadId: run.threadId, runId: run.runId, message: "The run failed." }[member]);
    } else {
      return undefined;
    }
  }
  if (event.type === "MESSAGES_SNAPSHOT") {
    const accepted = acceptedOf(event.messages as unknown[]);
    if (accepted !== event.messages) {
      set("messages", accepted);
    }
  }
  return result;
}

/** The messages of a list that the client takes. */
function acceptedOf(list: unknown[]): unknown[] {
  return list.every(isMessage) ? list : list.map(withoutNulls).filter(isMessage);
}

function withoutNulls(value: unknown): unknown {
  return isObject(value) ? Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null)) : value;
}
