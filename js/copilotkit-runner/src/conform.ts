// The schema of the events that clients of CopilotKit 1.75 parse (@ag-ui/client 0.0.59). An event that it refuses ends the run
// of the client with an error.

import type { AguiEvent } from "@pgagui/postgres";
import { isObject } from "./events.ts";

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
const role = oneOf("developer", "system", "assistant", "user");

const ofAll = { "timestamp?": Number.isInteger, "metadata?": isObject, "subagentRunId?": text };
const schemas: Record<string, Record<string, Check>> = {
  TEXT_MESSAGE_START: { messageId: text, "role?": role, "name?": text },
  TEXT_MESSAGE_CONTENT: { messageId: text, delta: text },
  TEXT_MESSAGE_END: { messageId: text },
  TEXT_MESSAGE_CHUNK: { "messageId?": text, "role?": role, "delta?": text, "name?": text },
  THINKING_START: { "title?": text },
  THINKING_END: {},
  THINKING_TEXT_MESSAGE_START: {},
  THINKING_TEXT_MESSAGE_CONTENT: { delta: text },
  THINKING_TEXT_MESSAGE_END: {},
  TOOL_CALL_START: { toolCallId: text, toolCallName: text, "parentMessageId?": text },
  TOOL_CALL_ARGS: { toolCallId: text, delta: text },
  TOOL_CALL_END: { toolCallId: text },
  TOOL_CALL_CHUNK: { "toolCallId?": text, "toolCallName?": text, "parentMessageId?": text, "delta?": text },
  TOOL_CALL_RESULT: { messageId: text, toolCallId: text, content: text, "role?": oneOf("tool") },
  STATE_SNAPSHOT: { snapshot: any },
  STATE_DELTA: { delta: list },
  MESSAGES_SNAPSHOT: { messages: list },
  ACTIVITY_SNAPSHOT: { messageId: text, activityType: text, content: isObject, "replace?": flag },
  ACTIVITY_DELTA: { messageId: text, activityType: text, patch: list },
  RAW: { event: any, "source?": text },
  CUSTOM: { name: text, value: any },
  RUN_STARTED: { threadId: text, runId: text, "parentRunId?": text, "input?": input },
  RUN_FINISHED: { threadId: text, runId: text, "outcome?": outcome, "usage?": usage },
  RUN_ERROR: { message: text, "code?": text, "usage?": usage },
  STEP_STARTED: { stepName: text },
  STEP_FINISHED: { stepName: text },
  REASONING_START: { messageId: text },
  REASONING_MESSAGE_START: { messageId: text, "role?": oneOf("reasoning") },
  REASONING_MESSAGE_CONTENT: { messageId: text, delta: text },
  REASONING_MESSAGE_END: { messageId: text },
  REASONING_MESSAGE_CHUNK: { "messageId?": text, "delta?": text },
  REASONING_END: { messageId: text },
  REASONING_ENCRYPTED_VALUE: { subtype: oneOf("tool-call", "message"), entityId: text, encryptedValue: text },
  SUBAGENT_STARTED: {
    subagentRunId: text, name: text, "description?": text, "parentSubagentRunId?": text, "parentToolCallId?": text, "parentMessageId?": text,
  },
  SUBAGENT_FINISHED: {
    subagentRunId: text, "outcome?": either(shape({ type: oneOf("success") }), shape({ type: oneOf("suspended"), "interruptIds?": listOf(text) })),
  },
  SUBAGENT_ERROR: { subagentRunId: text, message: text, "code?": text },
};

/**
 * Returns an event in the form that the client parses, or undefined if there is none. The event loses optional members that the
 * client refuses. Events that begin and end a run always have a form.
 */
export function conform(event: AguiEvent, run: { threadId: string; runId: string }): AguiEvent | undefined {
  const schema = Object.hasOwn(schemas, event.type) ? schemas[event.type]! : undefined;
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
  for (const [name, check] of Object.entries({ ...ofAll, ...schema })) {
    const member = name.endsWith("?") ? name.slice(0, -1) : name;
    const value = event[member];
    if (check === any || check(value) || name.endsWith("?") && value === undefined) {
      continue;
    }
    if (name.endsWith("?")) {
      set(member, undefined);
    } else if (event.type.startsWith("RUN_")) {
      set(member, { threadId: run.threadId, runId: run.runId, message: "The run failed." }[member]);
    } else {
      return undefined;
    }
  }
  if (event.type === "REASONING_MESSAGE_START" && result.role === undefined) {
    set("role", "reasoning");
  }
  if (event.type === "MESSAGES_SNAPSHOT") {
    const all = event.messages as unknown[];
    if (!all.every(isMessage)) {
      set("messages", all.map(withoutNulls).filter(isMessage));
    }
  }
  return result;
}

function withoutNulls(value: unknown): unknown {
  return isObject(value) ? Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null)) : value;
}
