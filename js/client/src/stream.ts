// A stream of server-sent events that survives its connections. Each connection continues behind the last
// frame that was delivered, so nothing is missing and nothing comes twice.

import { Backoff, demandType, overNetwork, PgaguiError, startTimer, type RetryOptions } from "./requests.ts";

/** What ends a stream: the end of its run, a clean end of the connection behind the end of a run, or nothing. */
export type Ending = "run" | "idle" | "never";

/** What `follow` needs. */
export interface Following {
  /** Requests the stream from its beginning, or behind a frame. */
  open: (after: string | undefined, signal: AbortSignal) => Promise<Response>;
  until: Ending;
  retry?: RetryOptions | undefined;
  signal: AbortSignal;
  /** Whether there is nothing to follow. Called if a connection ended cleanly without a frame. */
  isEmpty?: (signal: AbortSignal) => Promise<boolean>;
  /** Called once, with the first answer. */
  begin: (response: Response) => void;
  /** Called with complete frames, up to one that has an id, and with that id. */
  deliver: (frames: string, id: string | undefined) => void;
  /** Called with the id of each run that starts. */
  enter?: (runId: string) => void;
}

/**
 * Follows a stream until it ends, and returns then. Frames without an id are delivered together with the next one
 * that has one: if the connection breaks between them, the server repeats them.
 *
 * @throws the reason of `signal`, or a {@link PgaguiError} if the server refuses the request or cannot be reached.
 */
export async function follow(stream: Following): Promise<void> {
  const backoff = new Backoff(stream.retry);
  const group = new Group(stream);
  let after: string | undefined;
  let hasBegun = false;
  for (;;) {
    const connection = new Connection(stream.signal, backoff.silence);
    let failure: unknown;
    try {
      const response = await stream.open(after, connection.signal);
      demandType(response, "text/event-stream");
      if (!hasBegun) {
        hasBegun = true;
        stream.begin(response);
      }
      const frames = new Frames();
      let isAlive = false;
      for await (const text of connection.texts(response)) {
        for (const frame of frames.push(text)) {
          group.add(frame);
          if (frame.id !== undefined) {
            after = frame.id;
            group.deliver(after);
          }
          if (frame.id !== undefined || frame.isComment) {
            isAlive = true;
            backoff.reset();
          }
        }
        if (stream.until === "run" && group.run === "ended") {
          return;
        }
      }
      if (group.endsRun) {
        group.deliver(undefined);
      }
      if (group.isEmpty && frames.isEmpty && stream.until !== "never") {
        if (group.run === "ended" || group.run === "none" && stream.isEmpty && (isAlive || (await stream.isEmpty(connection.signal)))) {
          return;
        }
      }
      failure = new PgaguiError("the connection ended before the run", { isTransient: true });
    } catch (error) {
      failure = error;
    } finally {
      connection.close(stream.until === "run" && group.run === "ended");
    }
    if (stream.until === "run" && group.run === "ended") {
      return;
    }
    group.clear();
    await backoff.wait(failure, stream.signal);
  }
}

/** Frames that are delivered together, and what they say about runs. */
class Group {
  readonly #stream: Following;
  #frames: Frame[] = [];
  /** Whether the frames that were delivered leave a run open. */
  run: "none" | "open" | "ended" = "none";

  constructor(stream: Following) {
    this.#stream = stream;
  }

  get isEmpty(): boolean {
    return this.#frames.length === 0;
  }

  /** Whether the frames that wait have the end of a run. */
  get endsRun(): boolean {
    return this.#frames.some((frame) => eventOf(frame)?.type === "RUN_FINISHED" || eventOf(frame)?.type === "RUN_ERROR");
  }

  add(frame: Frame): void {
    if (frame.data !== "") {
      this.#frames.push(frame);
    }
  }

  clear(): void {
    this.#frames = [];
  }

  deliver(id: string | undefined): void {
    for (const frame of this.#frames) {
      this.#examine(eventOf(frame));
    }
    const text = this.#frames.map((frame) => frame.data + "\n").join("");
    this.clear();
    this.#stream.deliver(text, id);
  }

  #examine(event: { type?: unknown; runId?: unknown } | undefined): void {
    switch (event?.type) {
      case "RUN_STARTED":
        if (this.run === "open") {
          // The client's messages would be a mixture of what the log has lost and what it has now.
          throw new PgaguiError("the server no longer has what the client has received, perhaps after a failover (call connectAgent)");
        }
        this.run = "open";
        this.#stream.enter?.(String(event.runId));
        break;
      case "RUN_FINISHED":
      case "RUN_ERROR":
        this.run = "ended";
    }
  }
}

/** The event of a frame that may begin or end a run. Others need not be parsed here. */
function eventOf(frame: Frame): { type?: unknown; runId?: unknown } | undefined {
  if (!/"RUN_(STARTED|FINISHED|ERROR)"/.test(frame.data)) {
    return undefined;
  }
  try {
    const value: unknown = JSON.parse(frame.data.replace(/^data: ?/gm, ""));
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined; // the client reports it
  }
}

/** A frame: the lines with data, each with its line feed, and the id. */
interface Frame {
  data: string;
  id: string | undefined;
  isComment: boolean;
}

/** Cuts a text that arrives in pieces into frames. */
class Frames {
  #line = "";
  #frame: Frame = emptyFrame();

  /** False at the end of the text if a frame broke off. */
  get isEmpty(): boolean {
    return this.#line === "" && this.#frame.data === "" && this.#frame.id === undefined;
  }

  *push(text: string): Generator<Frame> {
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      const line = (this.#line + text.slice(start, end)).replace(/\r$/, "");
      this.#line = "";
      start = end + 1;
      if (line === "") {
        const frame = this.#frame;
        this.#frame = emptyFrame();
        yield frame;
      } else if (line.startsWith("data:")) {
        this.#frame.data += line + "\n";
      } else if (line.startsWith("id:")) {
        this.#frame.id = line.slice(3).trim();
      } else if (line.startsWith(":")) {
        this.#frame.isComment = true;
      }
    }
    this.#line += text.slice(start);
  }
}

const emptyFrame = (): Frame => ({ data: "", id: undefined, isComment: false });

/** One connection. It aborts with the signal of the stream, and when nothing arrives for some time. */
class Connection {
  readonly #controller = new AbortController();
  readonly #silence: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  constructor(signal: AbortSignal, silence: number) {
    signal.throwIfAborted();
    signal.addEventListener("abort", () => this.#controller.abort(signal.reason), { signal: this.signal });
    this.#silence = silence;
    this.#expect();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The text of the answer, as it arrives. */
  async *texts(response: Response): AsyncGenerator<string> {
    const reader = (this.#reader = response.body?.getReader());
    // Some implementations of fetch do not end their answers with the signal. Errors come from read, too.
    this.signal.addEventListener("abort", () => void reader?.cancel().catch(() => {}));
    const decoder = new TextDecoder();
    for (;;) {
      const piece = reader && (await overNetwork(() => reader.read()));
      this.signal.throwIfAborted();
      if (!piece || piece.done) {
        return;
      }
      this.#expect();
      yield decoder.decode(piece.value, { stream: true });
    }
  }

  /** Ends the connection. If nothing more is expected, the server may end it first: browsers show others as aborted. */
  close(isComplete: boolean): void {
    clearTimeout(this.#timer);
    if (isComplete) {
      this.#timer = setTimeout(() => this.#controller.abort(), 1000);
      void this.#drain();
    } else {
      this.#controller.abort();
    }
  }

  async #drain(): Promise<void> {
    try {
      while (this.#reader && !(await this.#reader.read()).done);
    } catch {
      // The run has ended.
    }
    clearTimeout(this.#timer);
  }

  /** Waits for the next piece from now on. */
  #expect(): void {
    clearTimeout(this.#timer);
    this.#timer = startTimer(
      () => this.#controller.abort(new PgaguiError(`nothing arrived for ${this.#silence} ms`, { isTransient: true })),
      this.#silence,
    );
  }
}
