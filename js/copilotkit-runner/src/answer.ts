import { createHash } from "node:crypto";
import { isObject, textOf } from "./events.ts";

/** What an input says to a question with which a run ended. */
export interface Answer {
  text: string;
  interruptIds: string[];
  /** The value of the CUSTOM event that asked, as JSON, if the input repeats it, as useInterrupt does. */
  question?: string | undefined;
}

/** Why an answer does not reach the agent. The client receives it as RUN_ERROR. */
export class AnswerRefused extends Error {
  readonly code = "ANSWER_REFUSED";
}

/** Returns the answer of an input: resume, or the command of LangGraph's clients. */
export function answerOf(input: object): Answer | undefined {
  const { resume, forwardedProps } = input as { resume?: unknown; forwardedProps?: unknown };
  if (Array.isArray(resume) && resume.length > 0) {
    return { text: JSON.stringify(resume), interruptIds: resume.flatMap((item) => (isObject(item) ? textOf(item, "interruptId") ?? [] : [])) };
  }
  const command = isObject(forwardedProps) ? forwardedProps.command : undefined;
  return isObject(command) && command.resume != null ? { text: JSON.stringify(command), interruptIds: [], question: JSON.stringify(command.interruptEvent) } : undefined;
}

/** Returns the id of the run of an answer: from the run that asks, and the one whose id is taken. pgagui serve gives it the same. */
export function idOfAnswer(asking: string, taken: string, answer: Answer): string {
  return `${asking}-answer-${createHash("sha256").update(`${taken}\0${answer.text}`).digest("hex").slice(0, 16)}`;
}
