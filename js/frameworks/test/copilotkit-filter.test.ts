// What the runner sends, judged by the client that CopilotKit 1.75 has: its schema, its expansion of chunks and its verifier.

import { EventSchemas, EventType, transformChunks, verifyEvents, type BaseEvent } from "@ag-ui/client-0";
import { finalizeRunEvents } from "@copilotkit/runtime/v2";
import { from, lastValueFrom, toArray, type Observable } from "rxjs";
import { expect, test } from "vitest";
import { ClientFilter } from "../../copilotkit-runner/src/filter.ts";
import { Finalizer } from "../../copilotkit-runner/src/finalize.ts";
import type { AguiEvent } from "../../postgres/src/index.ts";

/** A generator of random numbers that can be repeated. */
function random(seed: number) {
  const next = () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return { next, chance: (p: number) => next() < p, pick: <T>(items: readonly T[]): T => items[Math.floor(next() * items.length)]! };
}
type Random = ReturnType<typeof random>;

const odd = [null, 1, 1.5, {}, [], "", "s", true, [{ op: "move", from: "/a", path: "/a/b" }], { type: "cancelled" }] as const;

function message(r: Random): unknown {
  const id = r.pick(["m1", "m2", "m3"]);
  const tag = r.chance(0.3) ? { subagentRunId: r.pick(["s1", "s2", null]) } : {};
  return r.pick([
    { id, role: "user", content: "q", ...tag },
    { id, role: "user", content: [{ type: "text", text: "q" }, { type: "image", source: { type: "url", value: "u" } }] },
    { id, role: "user", content: [{ type: "file", source: { type: "file", value: "x" } }] },
    { id, role: "user", content: [{ type: "binary", mimeType: "a/b" }] },
    { id, role: "assistant", content: null, ...tag, toolCalls: [{ id: r.pick(["c1", "c2"]), type: "function", function: { name: "f", arguments: "" } }] },
    { id, role: "tool", content: "x", toolCallId: "c1" },
    { id, role: "tool", content: [{ type: "text", text: "parts" }], toolCallId: "c1" },
    { id, role: "reasoning", content: "hm", ...tag },
    { id, role: "activity", activityType: "a", content: {}, ...tag },
    { id, role: "narrator", content: "x" },
    "no message",
  ]);
}

/** An event of any type, with members that are mostly right. */
function event(r: Random): AguiEvent {
  const tag = r.chance(0.3) ? { subagentRunId: r.pick(["s1", "s2", "s1", "s2", null]) } : {};
  const messageId = r.pick(["m1", "m2", "m3"]);
  const toolCallId = r.pick(["c1", "c2"]);
  const type = r.pick([...Object.values(EventType), ...Object.values(EventType), "UNKNOWN"]) as string;
  const maybe = (members: object) => (r.chance(0.6) ? members : {});
  const members: Record<string, object> = {
    STATE_DELTA: { delta: [{ op: "add", path: "/a", value: 1 }] },
    TOOL_CALL_START: { toolCallId, toolCallName: "f", ...maybe({ parentMessageId: messageId }) },
    TOOL_CALL_ARGS: { toolCallId, delta: "{" },
    TOOL_CALL_END: { toolCallId },
    TOOL_CALL_CHUNK: { ...maybe({ toolCallId }), ...maybe({ toolCallName: "f" }), ...maybe({ delta: "{" }), ...maybe({ parentMessageId: messageId }) },
    TOOL_CALL_RESULT: { messageId, toolCallId, content: "x" },
    TEXT_MESSAGE_CHUNK: { ...maybe({ messageId }), ...maybe({ delta: "x" }), ...maybe({ role: "assistant" }) },
    REASONING_MESSAGE_CHUNK: { ...maybe({ messageId }), ...maybe({ delta: "x" }) },
    MESSAGES_SNAPSHOT: { messages: Array.from({ length: 3 }, () => message(r)) },
    ACTIVITY_SNAPSHOT: { messageId, activityType: "a", content: {}, ...maybe({ replace: r.chance(0.5) }) },
    ACTIVITY_DELTA: { messageId, activityType: "a", patch: [] },
    RAW: { event: {} },
    CUSTOM: { name: "n", value: 1 },
    RUN_STARTED: {
      threadId: "t", runId: "r",
      ...maybe({ input: { threadId: "t", runId: "r", messages: [message(r)], tools: [], context: [], state: {}, forwardedProps: {} } }),
    },
    RUN_FINISHED: {
      threadId: "t", runId: "r", ...maybe({ outcome: r.pick([{ type: "success" }, { type: "interrupt", interrupts: [] }, { type: "cancelled" }]) }),
    },
    RUN_ERROR: { message: "no" },
    STEP_STARTED: { stepName: r.pick(["a", "b"]) },
    STEP_FINISHED: { stepName: r.pick(["a", "b"]) },
    REASONING_ENCRYPTED_VALUE: { subtype: r.pick(["tool-call", "message"]), entityId: r.pick([messageId, toolCallId]), encryptedValue: "x" },
    SUBAGENT_STARTED: { subagentRunId: r.pick(["s1", "s2"]), name: "n", ...maybe({ parentSubagentRunId: r.pick(["s1", "s2", null]) }) },
    SUBAGENT_FINISHED: { subagentRunId: r.pick(["s1", "s2"]), ...maybe({ outcome: r.pick([{ type: "success" }, { type: "odd" }]) }) },
    SUBAGENT_ERROR: { subagentRunId: r.pick(["s1", "s2"]), message: "no" },
  };
  const made: AguiEvent = { ...tag, messageId, delta: "x", snapshot: {}, role: type === "REASONING_MESSAGE_START" ? "reasoning" : "assistant", ...members[type], type };
  if (type === "TOOL_CALL_RESULT") {
    delete made.role;
  }
  if (r.chance(0.15)) {
    const name = r.pick([...Object.keys(made), "timestamp", "metadata", "name", "role"]);
    made[name] = r.pick(odd);
    made.type = type;
  }
  return made;
}

/** What the client makes of a stream; it throws what ends the client's run. */
async function judge(events: AguiEvent[]): Promise<BaseEvent[]> {
  const parsed = (JSON.parse(JSON.stringify(events)) as AguiEvent[]).map((event) => EventSchemas.parse(event) as BaseEvent);
  // The client brings its own copy of rxjs, whose types differ.
  const verified = verifyEvents()(transformChunks()(from(parsed) as never)) as unknown as Observable<BaseEvent>;
  return lastValueFrom(verified.pipe(toArray()), { defaultValue: [] });
}

/** Starts favour streams that go on for a while. */
function stream(r: Random): AguiEvent[] {
  const length = 5 + Math.floor(r.next() * 60);
  const events = Array.from({ length }, () => event(r)).filter(({ type }) => !/^RUN_/.test(type) || r.chance(0.3));
  return r.chance(0.9) ? [{ type: "RUN_STARTED", threadId: "t", runId: "r" }, ...events] : events;
}

test("the client accepts what the filter makes of 2,000 streams of any events", async () => {
  let sentEvents = 0;
  let refused = 0;
  for (let seed = 1; seed <= 2000; seed++) {
    const r = random(seed);
    const filter = new ClientFilter("t", "r");
    const given = stream(r);
    const sent: AguiEvent[] = [];
    for (const next of given) {
      if (r.chance(0.02)) {
        sent.push(...filter.begin("r2"));
      }
      sent.push(...filter.push(next));
    }
    sent.push(...filter.end(r.chance(0.3) ? { message: "gone", code: "GONE" } : undefined));
    await judge(sent).catch((error: unknown) => {
      throw new Error(`seed ${seed}: ${String(error)}\ngiven ${JSON.stringify(given, null, 1)}\nsent ${JSON.stringify(sent, null, 1)}`);
    });
    sentEvents += sent.length;
    refused += await judge(given).then(() => 0, () => 1);
  }
  expect(sentEvents).toBeGreaterThan(20_000);
  expect(refused).toBeGreaterThan(1500); // the filter has something to do
});

test("a stream that the client accepts passes unchanged, and chunks as what they mean", async () => {
  let accepted = 0;
  for (let seed = 1; accepted < 200; seed++) {
    const r = random(seed);
    const given: AguiEvent[] = [{ type: "RUN_STARTED", threadId: "t", runId: "r" }];
    for (let i = 0; i < 40; i++) { // grow it by what the client accepts
      const next = event(r);
      if (/^RUN_|^THINKING/.test(next.type) || next.type === "UNKNOWN") {
        continue;
      }
      try {
        const conformed = EventSchemas.parse(JSON.parse(JSON.stringify(next))) as AguiEvent;
        await judge([...given, conformed]);
        given.push(conformed);
      } catch {
        // not this one
      }
    }
    given.push({ type: "RUN_ERROR", message: "no" });
    const filter = new ClientFilter("t", "r");
    const sent = given.flatMap((next) => filter.push(next));
    // Without what is repaired for later versions of the client: reasoning that has no start, and times that are no integers.
    const compared = async (events: AguiEvent[]) =>
      (await judge(events)).filter(({ type }) => !type.startsWith("REASONING") && !type.endsWith("DELTA")).map(({ rawEvent: _, timestamp: __, ...event }) => event);
    const expected = await compared(given).catch(() => undefined);
    if (expected) { // the client may not be able to end its chunks
      expect(await compared(sent), `seed ${seed}`).toEqual(expected);
      accepted++;
    }
  }
});

test("a run is ended as CopilotKit's runtime ends it, on 2,000 streams", () => {
  for (let seed = 1; seed <= 2000; seed++) {
    const r = random(seed);
    const events = [{ type: "RUN_STARTED", threadId: "t", runId: "r" }, ...stream(r)]
      .filter(({ type }) => /^(TEXT_MESSAGE_(START|CONTENT|END)|TOOL_CALL_(START|ARGS|END|RESULT)|RUN_STARTED|CUSTOM)$/.test(type))
      .filter((next: AguiEvent) => typeof next.messageId === "string" && next.messageId !== "" || next.type.startsWith("TOOL"))
      .filter((next: AguiEvent) => !("toolCallId" in next) || typeof next.toolCallId === "string" && next.toolCallId !== "") as AguiEvent[];
    const isStopped = r.chance(0.5);
    const message = r.chance(0.5) ? "no model" : undefined;
    const finalizer = new Finalizer("t", "r");
    finalizer.observe({ type: "RUN_STARTED", threadId: "t", runId: "r" });
    events.forEach((next) => finalizer.observe(next));
    const theirs = finalizeRunEvents(structuredClone(events) as unknown as BaseEvent[], {
      stopRequested: isStopped, ...(message && { interruptionMessage: message }),
    }) as unknown as AguiEvent[];
    const ours = finalizer.end({ isStopped, message }).map((next) => (next.type === "RUN_FINISHED" ? { type: "RUN_FINISHED" } : next));
    expect(ours.map(({ subagentRunId: _, ...next }) => next), `seed ${seed}`).toEqual(theirs);
  }
});
