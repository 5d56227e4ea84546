// Generated streams of AG-UI events that the official client accepts.

export interface Event {
  type: string;
  [member: string]: unknown;
}

/** Numbers from 0 to 1 that are the same for the same seed. */
export function randomFrom(seed: number): () => number {
  let state = seed + 0x9e3779b9;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A stream of some 10 to 200 events. Messages, thoughts and tool calls are interleaved, and the end may be an error or missing. */
export function generate(seed: number, run: { threadId: string; runId: string }): Event[] {
  const random = randomFrom(seed);
  const below = (n: number) => Math.floor(random() * n);
  const words = ["Rome", " by train", "\n\n", "🚆", " \"quoted\" ", "data: x", "é", "id: 7", " ", "x".repeat(below(900)), "RUN_FINISHED"];
  const word = () => words[below(words.length)]! || "-";
  const events: Event[] = [{ type: "RUN_STARTED", ...run }];
  const open: Event[][] = [];
  let named = 0;
  let items = -1; // no state yet
  let activity: string | undefined;

  const lane = (): Event[] => {
    const id = `s${seed}-${++named}`;
    const pieces = (type: string, members: object, piece: () => string) =>
      Array.from({ length: 1 + below(8) }, () => ({ type, ...members, delta: piece() }));
    switch (below(3)) {
      case 0:
        return [
          { type: "TEXT_MESSAGE_START", messageId: id, role: "assistant" },
          ...pieces("TEXT_MESSAGE_CONTENT", { messageId: id }, word),
          { type: "TEXT_MESSAGE_END", messageId: id },
        ];
      case 1:
        return [
          { type: "TOOL_CALL_START", toolCallId: id, toolCallName: "book" },
          { type: "TOOL_CALL_ARGS", toolCallId: id, delta: '{"seats": [' },
          ...pieces("TOOL_CALL_ARGS", { toolCallId: id }, () => `${below(99)}, `),
          { type: "TOOL_CALL_ARGS", toolCallId: id, delta: "0]}" },
          { type: "TOOL_CALL_END", toolCallId: id },
          { type: "TOOL_CALL_RESULT", messageId: `${id}-result`, toolCallId: id, content: word(), role: "tool" },
        ];
      default:
        return [
          { type: "REASONING_START", messageId: id },
          { type: "REASONING_MESSAGE_START", messageId: id, role: "reasoning" },
          ...pieces("REASONING_MESSAGE_CONTENT", { messageId: id }, word),
          { type: "REASONING_MESSAGE_END", messageId: id },
          { type: "REASONING_END", messageId: id },
        ];
    }
  };
  const single = (): Event => {
    switch (below(5)) {
      case 0:
        items = 0;
        return { type: "STATE_SNAPSHOT", snapshot: { items: [], seed } };
      case 1:
        if (items >= 0) {
          return { type: "STATE_DELTA", delta: [{ op: "add", path: "/items/-", value: { number: items++, text: word() } }] };
        }
        return { type: "CUSTOM", name: "progress", value: { done: below(100) } };
      case 2:
        activity = `s${seed}-activity-${++named}`;
        return { type: "ACTIVITY_SNAPSHOT", messageId: activity, activityType: "plan", content: { steps: [] } };
      case 3:
        if (activity) {
          return { type: "ACTIVITY_DELTA", messageId: activity, activityType: "plan", patch: [{ op: "add", path: "/steps/-", value: word() }] };
        }
        return { type: "RAW", event: { any: word() } };
      default:
        return { type: "CUSTOM", name: "note", value: word() };
    }
  };

  for (let left = 5 + below(60); left > 0 || open.length > 0; left--) {
    if (left > 0 && open.length < 3 && random() < 0.25) {
      open.push(lane());
    } else if (open.length > 0 && random() < 0.85) {
      const index = below(open.length);
      events.push(open[index]!.shift()!);
      if (open[index]!.length === 0) open.splice(index, 1);
    } else {
      events.push(single());
    }
  }
  switch (below(10)) {
    case 0:
      return [...events, { type: "RUN_ERROR", message: "the model is overloaded", code: "OVERLOADED" }];
    case 1:
      return events; // the server adds the end
    default:
      return [...events, { type: "RUN_FINISHED", ...run }];
  }
}
