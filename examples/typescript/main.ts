/** DATABASE_URL=postgres://… node main.ts */

import { randomUUID } from "node:crypto";
import { EventType } from "@ag-ui/client";
import pg from "pg";
import { Conversation, StoredAgent } from "./conversation.ts";

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
const conversation = new Conversation(pool, randomUUID());
const [threadId, runId, messageId] = [conversation.threadId, "run-1", "answer-1"];

// What a backend does with the events of its agent, a few at a time.
const seq = await conversation.append(runId, [
  { type: EventType.RUN_STARTED, threadId, runId },
  { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" },
  { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "Three days" },
], 0);

// A page that is opened meanwhile begins with the history, and sees the rest live.
const agent = new StoredAgent(conversation);
const shown = agent.connectAgent();
await conversation.append(runId, [
  { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: " in Lisbon" },
  { type: EventType.TEXT_MESSAGE_END, messageId },
  { type: EventType.RUN_FINISHED, threadId, runId },
], seq);
await shown;

console.log("the page shows:", agent.messages);
console.log("the database has:", await conversation.messages());
await pool.end();
