// The documented deviations of pgagui from the official client, as adapters around the unchanged client. Five steps, each on its own:
//
//   1. seeded state: RUN_STARTED with input.state sets the state to it
//   2. the spellings of the AG-UI proposals, rewritten to those of protocol 1.0 (a field that is null counts as absent there), and
//      messages without an id, which are never merged; members of messages that are null and may be absent count as absent
//   3. without what follows RUN_ERROR until the next RUN_STARTED: the client refuses it in its verifier, which the oracle leaves out
//   4. the ids of reasoning that came as THINKING_*: the client's boundary makes them up, ours are made of the run and of the place
//      of the event; the boundary itself is the client's
//   5. JSON patches after RFC 6902 in place of the client's patch library, which takes some that the RFC refuses

import { createRequire } from "node:module";
import { CompatibilityBoundary } from "@ag-ui/client";
import { applyPatch } from "./json-patch.mjs";

/** The events as the client has to get them for its answer to be pgagui's. */
export const inClientSpelling = (events) =>
  thinkingAsReasoning(events).flatMap((event) => (isObject(event) ? withProtocolSpelling(event) : [event])).flatMap(withSeededState);

/** The client's answer without what inClientSpelling had to add. */
export const inOurSpelling = (answer) => ({ ...answer, messages: answer.messages.map(withoutInventedId) });

// 1. Seeded state ------------------------------------------------------------------------------------------------------------------

function withSeededState(event) {
  const state = event?.type === "RUN_STARTED" ? event.input?.state : undefined;
  return state == null ? [event] : [event, { type: "STATE_SNAPSHOT", snapshot: structuredClone(state) }];
}

// 2. The proposals' spellings ------------------------------------------------------------------------------------------------------

function withProtocolSpelling(event) {
  switch (event.type) {
    case "STATE_DELTA":
      return [event.delta == null && event.patch != null ? { ...event, delta: operations(event.patch) } : event];
    case "STATE_SNAPSHOT":
      return [event.snapshot === undefined && event.state !== undefined ? { ...event, snapshot: event.state } : event];
    case "ACTIVITY":
      return activityEvents(event);
    case "RUN_STARTED":
      return [isObject(event.input) ? { ...event, input: withIds(event.input) } : event];
    case "MESSAGES_SNAPSHOT":
      return [withIds(event)];
    default:
      return [event];
  }
}

/** A patch, which the proposals also write as a single operation. */
const operations = (patch) => (isObject(patch) ? [patch] : patch);

function activityEvents({ snapshot, patch, ...event }) {
  const events = [];
  if (snapshot != null) events.push({ ...event, type: "ACTIVITY_SNAPSHOT", content: snapshot, replace: true });
  if (patch != null) events.push({ ...event, type: "ACTIVITY_DELTA", patch: operations(patch) });
  return events;
}

// A plain string is a user message without an id. The client merges messages by id, those without one too (an id that is no string
// is none), so each of them gets an id of its own until the answer is out. No stream has such an id: a random part keeps them apart from
// all that is in it.
const inventedIds = `invented ${crypto.randomUUID()} `;
const idsBefore = []; // what stood in their place, if anything did

function withIds(list) {
  if (!Array.isArray(list.messages)) return list;
  const messages = list.messages.map((element) => {
    const message = typeof element === "string" ? { role: "user", content: element } : withoutNulls(element);
    if (!isObject(message) || typeof message.id === "string") return message;
    idsBefore.push(message.id);
    return { ...message, id: inventedIds + (idsBefore.length - 1) };
  });
  return { ...list, messages };
}

const optionalMembers = ["content", "toolCalls", "name", "encryptedValue", "metadata"]; // the client itself drops subagentRunId

/** A message without members that are null and may be absent: the client's schema refuses null there, and serve leaves it out. */
function withoutNulls(message) {
  if (!isObject(message)) return message;
  const isSpare = ([name, value]) =>
    value === null && optionalMembers.includes(name) && (name !== "content" || message.role === "assistant");
  return Object.fromEntries(Object.entries(message).filter((member) => !isSpare(member)));
}

function withoutInventedId(message) {
  if (!(typeof message?.id === "string" && message.id.startsWith(inventedIds))) return message;
  return { ...message, id: idsBefore[message.id.slice(inventedIds.length)] };
}

// 3. What follows RUN_ERROR --------------------------------------------------------------------------------------------------------

/** The events without those that have no effect: their fold is the client's, and its verifier refuses the others. */
export function withoutLateEvents(events) {
  let hasFailed = false;
  return events.filter((event) => {
    const isLate = hasFailed && event?.type !== "RUN_STARTED";
    hasFailed = event?.type === "RUN_ERROR" || isLate;
    return !isLate;
  });
}

// 4. THINKING_* --------------------------------------------------------------------------------------------------------------------

const endsOrBegins = new Set(["RUN_STARTED", "RUN_FINISHED", "RUN_ERROR"]);

/** What the client's boundary makes of THINKING_*, a run at a time, with the ids of pgagui in place of its random ones. */
function thinkingAsReasoning(events) {
  let run = "";
  let boundary = new CompatibilityBoundary();
  const ids = new Map();
  return events.map((event, place) => {
    if (event?.type === "RUN_STARTED") run = typeof event.runId === "string" ? event.runId : "";
    if (endsOrBegins.has(event?.type)) boundary = new CompatibilityBoundary();
    if (!/^THINKING_/.test(event?.type)) return event;
    const reasoning = boundary.transformEvent(event);
    if (!ids.has(reasoning.messageId)) ids.set(reasoning.messageId, `${run}-thinking-${place + 1}`);
    return { ...reasoning, messageId: ids.get(reasoning.messageId) };
  });
}

// 5. JSON patches after RFC 6902 ---------------------------------------------------------------------------------------------------

/**
 * Puts a strict applyPatch into the library that the client calls. That library is a CommonJS module: the client's import is its
 * exports object, so a function replaced there is the one that the client calls (oracle.test.mjs checks it).
 */
export function applyPatchesByTheRFC() {
  const requireAsTheClient = createRequire(createRequire(import.meta.url).resolve("@ag-ui/client"));
  requireAsTheClient("fast-json-patch").applyPatch = (document, patch) => ({ newDocument: applyPatch(document, patch) });
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
