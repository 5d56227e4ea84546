// Requests to a server: their headers, their errors, and when they are retried.

import type { components } from "./openapi.ts";

/** A problem document (RFC 9457), with which the server answers what it refuses. */
export type Problem = components["schemas"]["Problem"];

/** Headers of requests, or a function that returns them for each request, for tokens that expire. */
export type HeadersSource = Record<string, string> | (() => Record<string, string> | Promise<Record<string, string>>);

/** What sends a request, with the signature of the global `fetch` for texts as addresses. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** When and how often a request is retried that failed because of the network or the load of the server. */
export interface RetryOptions {
  /** The pause before the first retry in milliseconds; it doubles each time, with jitter. Default: 200. */
  minDelay?: number;
  /** The longest pause in milliseconds, unless the server asks for more with Retry-After. Default: 10,000. */
  maxDelay?: number;
  /** After how many failures in succession the error is final. Frames of a stream reset the count. Default: 30. */
  maxAttempts?: number;
  /**
   * After how many milliseconds without a byte a connection counts as broken. Default: 45,000, three heartbeats of
   * the server.
   */
  silence?: number;
  /** Called before each pause: a UI can show that it reconnects. */
  onRetry?: (retry: { error: unknown; attempt: number; delay: number }) => void;
}

/** A request that failed for good. Errors of the network are its `cause`. */
export class PgaguiError extends Error {
  override readonly name = "PgaguiError";
  /** The HTTP status, if the server answered. */
  readonly status: number | undefined;
  /** The problem document of the server, if it sent one. */
  readonly problem: Problem | undefined;
  /** Whether the same request may succeed later. */
  readonly isTransient: boolean;
  /** How long to wait before a retry, in milliseconds, if the server sent Retry-After. */
  readonly retryAfter: number | undefined;

  constructor(
    message: string,
    options: { cause?: unknown; status?: number; problem?: Problem; isTransient?: boolean; retryAfter?: number | undefined } = {},
  ) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.status = options.status;
    this.problem = options.problem;
    this.isTransient = options.isTransient ?? false;
    this.retryAfter = options.retryAfter;
  }
}

/** Options of all requests to a server. */
export interface RequestOptions {
  /** Headers of each request, or a function that returns them, for tokens that expire. */
  headers?: HeadersSource;
  /** What sends requests. Default: the global `fetch`. */
  fetch?: Fetch;
}

/** Sends a request once. Throws what `headers` throws, and TypeError for a request that the platform cannot send. */
export async function send(url: string, init: RequestInit, options: RequestOptions): Promise<Response> {
  const sent = { ...init, headers: { ...recordOf(init.headers), ...(await resolveHeaders(options.headers)) } };
  const response = await overNetwork(() => (options.fetch ?? fetch)(url, sent)).catch((failure: NetworkFailure) => {
    throw isSendable(url, sent, failure.cause) ? failure : failure.cause;
  });
  if (!response.ok) {
    throw await errorOf(`${init.method ?? "GET"} ${url}`, response);
  }
  return response;
}

/** A failure of the network. What else is thrown stays as it is, so `Backoff` throws it again. */
class NetworkFailure extends Error {}

/** Waits for the network. All its errors are failures: implementations of fetch report these with different classes. */
export async function overNetwork<Answer>(call: () => Promise<Answer>): Promise<Answer> {
  try {
    return await call();
  } catch (cause) {
    throw new NetworkFailure("the network failed", { cause });
  }
}

/** Whether a request that failed has reached the network: an invalid address or header fails before. */
function isSendable(url: string, { signal: _, ...init }: RequestInit, error: unknown): boolean {
  try {
    return Boolean(new Request(url, init));
  } catch (invalid) {
    // Without a page, a `fetch` of the application may know what an address without a server refers to.
    return url.startsWith("/") && typeof location === "undefined" && String(error) !== String(invalid);
  }
}

/** Throws unless an answer has a media type. Pages of proxies and of routers are 200 with another one. */
export function demandType(response: Response, type: string): void {
  const actual = response.headers.get("Content-Type");
  if (!actual?.startsWith(type)) {
    const { url, status } = response;
    throw new PgaguiError(`${url}: the answer is ${actual ?? "of no type"}, not ${type} (is the address that of pgagui serve?)`, {
      status, isTransient: actual === null, // it broke off in its headers
    });
  }
}

/** Headers as an object. Applications may have them as Headers or as a list. */
export function recordOf(headers: HeadersInit = {}): Record<string, string> {
  return headers instanceof Headers || Array.isArray(headers) ? Object.fromEntries(new Headers(headers)) : headers;
}

async function resolveHeaders(source: HeadersSource | undefined): Promise<Record<string, string> | undefined> {
  return typeof source === "function" ? await source() : source;
}

async function errorOf(request: string, response: Response): Promise<PgaguiError> {
  const { status } = response;
  const body = await overNetwork(() => response.text());
  const problem = readProblem(body);
  const said = problem ? [problem.detail ?? problem.title, problem.hint].filter(Boolean).join(" ") : body.slice(0, 200);
  const after = response.headers.get("Retry-After");
  return new PgaguiError(`${request}: ${status}: ${said || response.statusText}`, {
    status,
    ...(problem && { problem }),
    isTransient: status === 408 || status === 429 || (status >= 500 && status !== 501),
    retryAfter: after === null ? undefined : millisecondsOf(after),
  });
}

function readProblem(body: string): Problem | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null && "title" in value ? (value as Problem) : undefined;
  } catch {
    return undefined;
  }
}

/** The value of Retry-After, which is in seconds or a date. */
function millisecondsOf(text: string): number | undefined {
  const seconds = Number(text);
  const delay = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(delay) ? Math.max(0, delay) : undefined;
}

/** The pauses between the attempts of a request. */
export class Backoff {
  readonly #options: Required<Omit<RetryOptions, "onRetry">> & Pick<RetryOptions, "onRetry">;
  #attempt = 0;

  constructor(options: RetryOptions = {}) {
    this.#options = { minDelay: 200, maxDelay: 10_000, maxAttempts: 30, silence: 45_000, ...options };
  }

  get silence(): number {
    return this.#options.silence;
  }

  /** Notes that the server answers. */
  reset(): void {
    this.#attempt = 0;
  }

  /** Waits after a failure. If the failure is final, or `signal` aborts, it throws. */
  async wait(failure: unknown, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const error = failure instanceof NetworkFailure ? failure.cause : failure;
    if (error === failure && !(error instanceof PgaguiError && error.isTransient)) {
      throw error;
    }
    const { minDelay, maxDelay, maxAttempts, onRetry } = this.#options;
    if (++this.#attempt >= maxAttempts) {
      const { status, problem, retryAfter } = error as Partial<PgaguiError>;
      throw new PgaguiError(`gave up after ${this.#attempt} failures in succession, the last one: ${error instanceof Error ? error.message : error}`, {
        cause: error, ...(status && { status }), ...(problem && { problem }), retryAfter,
      });
    }
    const pause = Math.min(maxDelay, minDelay * 2 ** (this.#attempt - 1)) * (0.5 + Math.random() / 2);
    const asked = error instanceof PgaguiError ? (error.retryAfter ?? 0) : 0;
    const delay = Math.max(pause, asked * (1 + Math.random() / 10)); // so that not all clients come back at once
    onRetry?.({ error, attempt: this.#attempt, delay });
    signal.throwIfAborted(); // onRetry may have aborted it
    await sleep(delay, signal, asked === 0);
  }
}

/** As setTimeout, which takes a longer time than 24.8 days, or Infinity, for none. */
export function startTimer(call: () => void, milliseconds: number): ReturnType<typeof setTimeout> {
  return setTimeout(call, Math.min(milliseconds, 2 ** 31 - 1));
}

/** Waits. The return of the network ends the pause early, if `endsOnline`. */
function sleep(milliseconds: number, signal: AbortSignal, endsOnline: boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = new AbortController();
    const end = (settle: () => void) => () => {
      clearTimeout(timer);
      done.abort();
      settle();
    };
    const timer = startTimer(end(resolve), milliseconds);
    signal.addEventListener("abort", end(() => reject(signal.reason)), { signal: done.signal });
    if (endsOnline && typeof addEventListener === "function") {
      addEventListener("online", end(resolve), { signal: done.signal });
    }
  });
}
