// The oracle: what the official AG-UI client makes of event streams. Reads one stream a line from stdin, {"events":[…]}, and answers each
// with one line on stdout (README.md has the fields):
//
//   node oracle.mjs [--ours] [--verify]
//
// --ours     apply the documented deviations of this project first (ours.mjs)
// --verify   say too whether the client's verifyEvents accepts the stream

import { createInterface } from "node:readline";
import { setImmediate } from "node:timers/promises";

// The client reports what it drops on the console. Stdout belongs to the answers, and the noise helps nobody.
for (const method of ["debug", "error", "info", "log", "warn"]) console[method] = () => {};

const { AbstractAgent, CompatibilityBoundary, transformChunks, verifyEvents } = await import("@ag-ui/client");
const { from, lastValueFrom } = await import("rxjs");
const { applyPatchesByTheRFC, inOurSpelling, inClientSpelling, withoutLateEvents } = await import("./ours.mjs");

/**
 * An agent that folds a given stream as runAgent does, without its enforce and verify stages. Of its boundary it has the reading of
 * messages in lists.
 */
class Replay extends AbstractAgent {
  async fold(events) {
    const input = { threadId: this.threadId, runId: "", state: {}, messages: [], tools: [], context: [], forwardedProps: {} };
    const applied = this.apply(input, from(arriving(events.map(withMessagesAsRead))).pipe(transformChunks()), []);
    await lastValueFrom(this.processApplyEvents(input, applied, []), { defaultValue: undefined });
  }

  run() {
    throw new Error("a replay has no agent to run");
  }
}

/**
 * The events one after another, as from a network: the client has folded each before the next comes. Given all at once, it forgets on
 * an error what it had not come to.
 */
async function* arriving(events) {
  for (const event of events) {
    yield event;
    await setImmediate();
  }
}

/** An event whose messages have their parts as the client's boundary reads them. */
function withMessagesAsRead(event) {
  const lists = event?.type === "MESSAGES_SNAPSHOT" || event?.type === "RUN_STARTED";
  return lists ? new CompatibilityBoundary().transformEvent(event) : event;
}

async function fold(events) {
  const agent = new Replay({ threadId: "" });
  let error;
  try {
    await agent.fold(events);
  } catch (thrown) {
    error = thrown;
  }
  return {
    ...(error !== undefined && { error: messageOf(error) }),
    messages: agent.messages,
    state: agent.state,
    interrupts: agent.pendingInterrupts,
  };
}

/** An agent whose run is a given stream. */
class Source extends AbstractAgent {
  constructor(events) {
    super({ threadId: "" });
    this.events = events;
  }

  run() {
    return from(this.events);
  }
}

/** Whether the verifier accepts the events; the boundary, which comes before it in runAgent, knows those of protocol 0.x. */
async function verify(events) {
  const input = { threadId: "", runId: "", state: {}, messages: [], tools: [], context: [], forwardedProps: {} };
  try {
    const known = new CompatibilityBoundary().run(input, new Source(events));
    await lastValueFrom(known.pipe(transformChunks(), verifyEvents()), { defaultValue: undefined });
    return { verified: true };
  } catch (error) {
    return { verified: false, verifyError: messageOf(error) };
  }
}

/** The answer as JSON, or an error in its place: a patch that moves a state into itself leaves the client with a cycle. */
function asJSON(answer) {
  try {
    return JSON.stringify(answer);
  } catch (error) {
    return JSON.stringify({ error: messageOf(error) });
  }
}

const messageOf = (error) => (error instanceof Error ? error.message : String(error));

function usage(problem) {
  process.stderr.write(`oracle: ${problem}; usage: node oracle.mjs [--ours] [--verify] < streams.ndjson\n`);
  process.exit(2);
}

const flags = new Set(process.argv.slice(2));
for (const flag of flags) if (!["--ours", "--verify"].includes(flag)) usage(`unknown flag ${flag}`);
if (flags.has("--ours")) applyPatchesByTheRFC();

let line = 0;
for await (const text of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  line++;
  // Parsed anew for each use: the client changes the events that it is given.
  const parse = () => {
    let stream;
    try {
      stream = JSON.parse(text);
    } catch (error) {
      usage(`line ${line} is not JSON (${error.message})`);
    }
    if (!Array.isArray(stream?.events)) usage(`line ${line} is not an object with a list "events"`);
    return flags.has("--ours") ? inClientSpelling(stream.events) : stream.events;
  };
  let answer = await fold(flags.has("--ours") ? withoutLateEvents(parse()) : parse());
  if (flags.has("--ours")) answer = inOurSpelling(answer);
  if (flags.has("--verify")) answer = { ...answer, ...(await verify(parse())) };
  process.stdout.write(asJSON(answer) + "\n");
}
