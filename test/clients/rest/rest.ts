// Calls of every kind with a client that openapi-typescript and openapi-fetch make of openapi.yaml. What it uses must compile, and the
// answers must be as the types say. Prints what it found as JSON.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { argv: string[] };

const client = createClient<paths>({ baseUrl: process.argv[2] });
const thread = "a thread/ü";
const event = (type: string, members: Record<string, unknown> = {}): components["schemas"]["Event"] => ({ type, ...members });

function ok<T>(answer: { data?: T; error?: components["schemas"]["Problem"]; response: Response }): T {
  if (answer.error !== undefined || answer.data === undefined) {
    throw new Error(`${answer.response.url}: ${answer.response.status} ${JSON.stringify(answer.error)}`);
  }
  return answer.data;
}

async function main() {
  const path = { thread, run: "run-1" };
  const appended = ok(
    await client.POST("/threads/{thread}/runs/{run}/events", {
      params: { path },
      body: {
        afterSeq: 0,
        input: { messages: [] },
        events: [
          event("RUN_STARTED"),
          event("TEXT_MESSAGE_START", { messageId: "m", role: "assistant" }),
          event("TEXT_MESSAGE_CONTENT", { messageId: "m", delta: "Hello" }),
          event("TEXT_MESSAGE_END", { messageId: "m" }),
          event("RUN_FINISHED"),
        ],
      },
    }),
  );
  ok(await client.PATCH("/threads/{thread}", { params: { path: { thread } }, body: { title: "A title", metadata: { a: 1 } } }));
  const page = ok(await client.GET("/threads", { params: { query: { status: "finished", limit: 10 } } }));
  const conversation = ok(await client.GET("/threads/{thread}/conversation", { params: { path: { thread }, query: { run: "run-1" } } }));
  const history = ok(await client.GET("/threads/{thread}/history", { params: { path: { thread }, query: { type: ["RUN_STARTED", "RUN_FINISHED"] } } }));
  const key = { thread, key: "memory" };
  const saved = ok(
    await client.PUT("/threads/{thread}/session-state/{key}", { params: { path: key, header: { "If-None-Match": "*" } }, body: { n: 1 } }),
  );
  const stale = await client.PUT("/threads/{thread}/session-state/{key}", { params: { path: key, header: { "If-Match": '"7"' } }, body: { n: 2 } });
  const fork = ok(await client.POST("/threads/{thread}/fork", { params: { path: { thread } }, body: { runId: "run-2", parentRunId: "" } }));
  const unknown = await client.GET("/threads/{thread}", { params: { path: { thread: "unknown" } } });
  const problem: components["schemas"]["Problem"] | undefined = unknown.error;
  await client.DELETE("/threads/{thread}", { params: { path: { thread } } });
  const gone = await client.GET("/threads/{thread}/head", { params: { path: { thread } } });

  // @ts-expect-error There is no such status.
  await client.GET("/threads", { params: { query: { status: "done" } } });

  console.log(
    JSON.stringify({
      lastSeq: appended.lastSeq,
      title: page.threads[0].title,
      messages: conversation.messages.length,
      types: history.events.map((e) => e.type),
      version: saved.version,
      stale: [stale.response.status, stale.error?.currentVersion],
      fork: [fork.runId, fork.status],
      problem: [problem?.status, problem?.sqlstate],
      gone: gone.response.status,
    }),
  );
}

main();
