// The thread endpoints of CopilotKit's runtime. The runtime asks a runner for threads with a synchronous interface, which no
// database can meet, so these hooks answer the requests before the runtime does.

import { codeOf, Database, mergePages, retry, states, type Page } from "@pgagui/postgres";
import type pg from "pg";
import { isObject, textOf } from "./events.ts";
import { userMember } from "./recording.ts";
import { placeOf, scopeOf, userOf, type DatabaseOptions } from "./runner.ts";

/** A request that the runtime has routed, as its hooks receive it. */
interface Routed {
  request: Request;
  route: { method: string; threadId?: string };
}

/** Hooks for `createCopilotRuntimeHandler({ hooks })` and the other handlers of the runtime. */
export interface ThreadHooks {
  onBeforeHandler(context: Routed): Promise<void>;
  onResponse(context: Routed & { response: Response }): Promise<Response | void>;
  /** Ends the pool of the hooks, unless the caller gave it. */
  close(): Promise<void>;
}

interface ThreadRow {
  thread_id: string;
  title: string | null;
  agent: string | null;
  archived: boolean;
  created_at: Date;
  active_at: Date;
  head_run_id: string | null;
  metadata: Record<string, unknown>;
  cursor: string;
}

interface StoredMessage {
  id?: unknown;
  role?: unknown;
  content?: unknown;
  toolCallId?: unknown;
  toolCalls?: { id: string; function: { name: string; arguments: string } }[];
}

const largestPage = 1000;
/** How long to wait for the answer to a statement that writes, and to retry one that reads, in milliseconds. */
const timeout = 60_000;

/**
 * Returns hooks that serve the list of threads, their names, archive, deletion, messages, events and state from the database,
 * and tell clients that the runtime has them. Deletion is permanent and needs the role agui_maintainer. Reads are retried for up
 * to a minute while the database does not answer.
 *
 * Errors: a TypeError if no database is given. Requests are answered 404 for an unknown thread, 400
 * for invalid parameters, and otherwise with the error of the database, as the runtime answers errors.
 */
export function threadHooks(options: DatabaseOptions): ThreadHooks {
  const database = new Database({ ...placeOf(options), timeout });
  return {
    close: () => database.close(),
    async onBeforeHandler({ request, route }) {
      const answer = route.method.startsWith("threads/") && endpoints[route.method];
      if (answer) {
        // The runtime takes a response that is thrown for the answer.
        const { threadId = "" } = route;
        throw await respond(() => {
          const ours = database.inScope(scopeOf(options));
          return answer(threadId === "" ? ours : ours.ofThread(threadId), request, threadId, userOf(options));
        });
      }
    },
    async onResponse({ route, response }) {
      if (route.method !== "info" || !response.ok) {
        return;
      }
      const info = (await response.json()) as Record<string, unknown>;
      const threadEndpoints = { list: true, inspect: true, mutations: true, realtimeMetadata: false };
      info.threadEndpoints = threadEndpoints;
      if (isObject(info.singleRoute)) {
        info.singleRoute = { ...info.singleRoute, threadEndpoints };
      }
      return Response.json(info, { headers: withoutLength(response.headers) });
    },
  };
}

type Endpoint = (database: Database, request: Request, threadId: string, user: string | undefined) => Promise<unknown>;

const endpoints: Record<string, Endpoint> = {
  async "threads/list"(database, request, _threadId, user) {
    const query = new URL(request.url).searchParams;
    const limit = limitOf(query.get("limit"));
    const pages = await Promise.all(database.nodes.map(async (node) => (await read<Page<ThreadRow>>(
      node,
      `select coalesce((select json_agg(thread) from unnest(page.threads) as thread), '[]') as items, page.next_cursor as next
      from agui.thread_page(agent => $1, archived => $2, metadata => $3, max_rows => $4, cursor => $5, scope => $6) as page`,
      [query.get("agentId"), query.get("includeArchived") === "true" ? null : false,
        user === undefined ? null : JSON.stringify({ [userMember]: user }), limit, query.get("cursor"), database.scope],
    ))[0]!));
    // A cursor is the time of the thread and its key, in hexadecimal digits.
    const page = mergePages(pages, limit, { placeOf: (cursor) => cursor, idOf: (thread) => thread.thread_id });
    return { threads: page.items.map(threadOf), nextCursor: page.next };
  },
  async "threads/update"(database, request, threadId) {
    if (request.method.toUpperCase() === "DELETE") {
      await erase(database, threadId);
      return { threadId, deleted: true };
    }
    const body = (await request.json().catch(() => undefined)) as unknown;
    if (!isObject(body) || !["string", "undefined"].includes(typeof body.name) || !["boolean", "undefined"].includes(typeof body.archived)) {
      throw new BadRequest("expected a JSON object with a string name, or a boolean archived");
    }
    return setThread(database, threadId, { title: body.name, archived: body.archived });
  },
  async "threads/archive"(database, _request, threadId) {
    await setThread(database, threadId, { archived: true });
    return { threadId, archived: true };
  },
  async "threads/messages"(database, _request, threadId) {
    const rows = await ofThread(() => read<{ message: StoredMessage }>(
      database, "select message from agui.messages(thread_id => $1, scope => $2) order by position", [threadId, database.scope],
    ));
    return { messages: (rows ?? []).map(({ message }) => messageOf(message)) };
  },
  async "threads/events"(database, _request, threadId) {
    const rows = await ofThread(() => read<{ event: unknown }>(
      database, "select event from agui.replay(thread_id => $1, shape => 'stream', scope => $2) as event", [threadId, database.scope],
    ));
    return { events: (rows ?? []).map(({ event }) => event) };
  },
  async "threads/state"(database, _request, threadId) {
    const rows = await ofThread(() => read<{ state: unknown }>(
      database, "select agui.state(thread_id => $1, scope => $2) as state", [threadId, database.scope],
    ));
    return { state: isObject(rows?.[0]?.state) ? rows[0].state : null };
  },
};

/** Runs a statement that writes nothing, and retries it. */
function read<Row extends pg.QueryResultRow>(database: Database, text: string, values: unknown[]): Promise<Row[]> {
  return retry(() => database.within(timeout / 3).query<Row>(text, values), { forAtMost: timeout });
}

async function setThread(database: Database, threadId: string, changes: { title?: unknown; archived?: unknown }): Promise<object> {
  const [row] = await database.query<ThreadRow & Record<string, unknown>>(
    "select * from agui.set_thread(thread_id => $1, title => $2, archived => $3, scope => $4)",
    [threadId, changes.title ?? null, changes.archived ?? null, database.scope],
  );
  return threadOf(row!);
}

/** Stops the runs of a thread and erases it. If the thread is gone already, the answer is the same. */
async function erase(database: Database, threadId: string): Promise<void> {
  await ofThread(() => database.query("select agui.request_stop(thread_id => $1, reason => 'the thread is deleted', scope => $2)",
    [threadId, database.scope]));
  await ofThread(() => database.query("select from agui.erase(thread_id => $1, reason => 'deleted by its user', scope => $2)",
    [threadId, database.scope]));
}

/** Whether the thread is unknown or erased. */
function isGone(error: unknown): boolean {
  return [states.unknownThread, states.threadErased].includes(codeOf(error) ?? "");
}

/** The result of a query, or undefined if the thread is unknown or erased. */
async function ofThread<Result>(query: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await query();
  } catch (error) {
    if (isGone(error)) {
      return undefined;
    }
    throw error;
  }
}

function threadOf(row: ThreadRow): object {
  const updatedAt = new Date(row.active_at).toISOString();
  return {
    id: row.thread_id, name: row.title, agentId: row.agent ?? "", organizationId: "",
    createdById: textOf(row.metadata, userMember) ?? "", archived: row.archived,
    createdAt: new Date(row.created_at).toISOString(), updatedAt, ...(row.head_run_id !== null && { lastRunAt: updatedAt }),
  };
}

/** A message as the inspector shows it. */
function messageOf({ id, role, content, toolCallId, toolCalls = [] }: StoredMessage): object {
  return {
    id, role, content, toolCallId,
    ...(toolCalls.length > 0 && { toolCalls: toolCalls.map((call) => ({ id: call.id, name: call.function.name, args: call.function.arguments })) }),
  };
}

class BadRequest extends Error {}

function limitOf(text: string | null): number {
  const limit = text === null ? 50 : Number(text);
  if (!Number.isInteger(limit) || limit < 1) {
    throw new BadRequest(`limit is ${text} (expected a number from 1 on)`);
  }
  return Math.min(limit, largestPage);
}

async function respond(answer: () => Promise<unknown>): Promise<Response> {
  try {
    return Response.json(await answer());
  } catch (error) {
    if (error instanceof BadRequest || codeOf(error) === states.invalidArgument) {
      return Response.json({ error: (error as Error).message }, { status: 400 });
    }
    if (isGone(error)) {
      return Response.json({ error: "Thread not found" }, { status: 404 });
    }
    throw error;
  }
}

function withoutLength(headers: Headers): Headers {
  const own = new Headers(headers);
  own.delete("content-length");
  return own;
}
