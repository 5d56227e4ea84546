import type { AguiEvent } from "@pgagui/postgres";
import { isEnd, textOf } from "./events.ts";
import { actions, parts } from "./protocol.ts";

/** Why a run ends although its agent has sent no end. */
export interface Ending {
  /** Whether the run was requested to stop. */
  isStopped: boolean;
  /** The error of the agent. */
  message?: string | undefined;
  /** The code of a failure that ends the run even if its agent has sent an end. */
  code?: string | undefined;
}

/**
 * Makes the events that end a run whose agent did not: as finalizeRunEvents of CopilotKit's runtime does, but RUN_FINISHED has
 * the ids that clients require, and the outcome of a stop (ClientFilter takes it out for clients that refuse it); steps,
 * reasoning and subagents are ended, too.
 */
export class Finalizer {
  readonly #run: { threadId: string; runId: string };
  #open = new Map<string, AguiEvent>();
  #calls = new Map<string, { hasEnd: boolean; hasResult: boolean }>();
  hasStarted = false;
  hasEnded = false;

  constructor(threadId: string, runId: string) {
    this.#run = { threadId, runId };
  }

  observe(event: AguiEvent): void {
    this.hasStarted = true;
    this.hasEnded ||= isEnd(event);
    const tag = event.subagentRunId === undefined ? {} : { subagentRunId: event.subagentRunId };
    const { does, part } = actions.get(event.type) ?? {};
    const kind = part && ended.has(part) ? parts[part] : undefined;
    if (kind && (does === "start" || does === "end")) {
      const id = textOf(event, kind.id) ?? "";
      const owner = kind.id === "stepName" ? JSON.stringify(tag) : ""; // agents may take steps of the same name
      const key = `${kind.end}${owner} ${id}`;
      if (does === "end") {
        this.#open.delete(key);
      } else {
        this.#open.set(key, { type: kind.end, [kind.id]: id, ...tag });
      }
    }
    const callId = textOf(event, "toolCallId");
    if (callId === undefined) {
      return;
    }
    const call = this.#calls.get(callId);
    if (part === "tool" && does === "start" && !call) {
      this.#calls.set(callId, { hasEnd: false, hasResult: false });
    } else if (call && part === "tool" && does === "end") {
      call.hasEnd = true;
    } else if (call && does === "add result") {
      call.hasResult = true;
    }
    if (call?.hasEnd && call.hasResult) {
      this.#calls.delete(callId);
    }
  }

  /** Returns the events that end the run. */
  end({ isStopped, message, code }: Ending): AguiEvent[] {
    if (this.hasEnded) {
      return code === undefined ? [] : [{ type: "RUN_ERROR", message, code }];
    }
    const reason = message ?? (isStopped ? "Run stopped by user" : "Run ended without emitting a terminal event");
    const ending: AguiEvent[] = this.hasStarted ? [] : [{ type: "RUN_STARTED", ...this.#run }];
    const open = [...this.#open.values()];
    ending.push(...open.filter((event) => event.type === parts.text.end));
    for (const [toolCallId, call] of this.#calls) {
      if (!call.hasEnd) {
        ending.push({ type: parts.tool.end, toolCallId });
      }
      if (!call.hasResult) {
        const content = isStopped
          ? { status: "stopped", reason: "stop_requested", message: reason }
          : { status: "error", reason: "missing_terminal_event", message: reason };
        ending.push({ type: "TOOL_CALL_RESULT", toolCallId, messageId: `${toolCallId}-result`, role: "tool", content: JSON.stringify(content) });
      }
    }
    ending.push(...open.filter((event) => event.type !== parts.text.end).reverse());
    ending.push(
      isStopped
        ? { type: "RUN_FINISHED", ...this.#run, outcome: { type: "cancelled" } }
        : { type: "RUN_ERROR", message: reason, code: code ?? "INCOMPLETE_STREAM" },
    );
    return ending;
  }
}

/** What is ended by an event of its own. Tool calls also get results; what thinking had open, no client of today knows. */
const ended: ReadonlySet<string> = new Set(["text", "span", "reasoning", "step", "subagent"]);
