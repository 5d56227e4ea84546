// Conversations that are larger than a request should be.

import { randomBytes } from "node:crypto";
import { HttpAgent, type RunAgentInput } from "@ag-ui/client";
import { expect, test } from "vitest";
import { database, serve, serveAgent } from "@pgagui/testing";
import { PgaguiAgent } from "../src/index.ts";

/** How many turns with an image; make test-long has 50. */
const turns = Number(process.env.PGAGUI_IMAGE_TURNS ?? 4);
const time = turns * 30_000; // ms

/** An agent that says how many messages it received. */
const counting = () => serveAgent(async ({ input, send }) => {
  const ids = { threadId: input.threadId, runId: input.runId };
  const messageId = `a-${input.runId}`;
  send({ type: "RUN_STARTED", ...ids });
  send({ type: "TEXT_MESSAGE_START", messageId, role: "assistant" });
  send({ type: "TEXT_MESSAGE_CONTENT", messageId, delta: `${input.messages.length}` });
  send({ type: "TEXT_MESSAGE_END", messageId });
  send({ type: "RUN_FINISHED", ...ids });
});

/** Runs an agent, each time with a new image of 0.9 MiB, and expects it to receive all messages. */
async function converse(agent: HttpAgent): Promise<void> {
  for (let turn = 1; turn <= turns; turn++) {
    const value = randomBytes((0.9 * 2 ** 20 * 3) / 4).toString("base64"); // as hard to compress as an image
    const source = { type: "data" as const, value, mimeType: "image/png" };
    agent.addMessage({ id: `u${turn}`, role: "user", content: [{ type: "text", text: "What is this?" }, { type: "image", source }] });
    await agent.runAgent();
    expect(agent.messages.at(-1)?.content, `turn ${turn}`).toBe(`${2 * turn - 1}`);
  }
}

test(`${turns} turns with an image each, of a client that sends all messages`, async () => {
  const server = await serve(await database(), { assistant: await counting() }, ["--worker", "--worker-compact", "@every 1s"]);
  await converse(new HttpAgent({ url: `${server.url}/agent/assistant/run`, threadId: "t" }));
}, time);

test(`${turns} turns with an image each, of a client that sends new messages only`, async () => {
  const server = await serve(await database(), { assistant: await counting() }, ["--limits-max-body-bytes", "1000000", "--worker", "--worker-compact", "@every 1s"]);
  const url = `${server.url}/agent/assistant/run`;
  await converse(new PgaguiAgent({ url, threadId: "t", history: "new" }));
  const all = new HttpAgent({ url, threadId: "t2" });
  await expect(converse(all)).rejects.toThrow(/more than 1000000 bytes.*history/s);
}, time);

test("history: new edits, regenerates and sends results of tools", async () => {
  const sent: string[][] = [];
  class Seen extends PgaguiAgent {
    protected override requestInit(input: RunAgentInput): RequestInit {
      const init = super.requestInit(input);
      sent.push((JSON.parse(`${init.body}`) as RunAgentInput).messages.map(({ id }) => id));
      return init;
    }
  }
  const server = await serve(await database(), { assistant: await counting() });
  const agent = new Seen({ url: `${server.url}/agent/assistant/run`, threadId: "t", history: "new" });
  agent.addMessage({ id: "u1", role: "user", content: "one" });
  await agent.runAgent();
  agent.addMessage({ id: "u2", role: "user", content: "two" });
  await agent.runAgent();
  await agent.regenerate();
  expect(sent.at(-1)).toEqual(["u2"]);
  expect(agent.messages.at(-1)?.content).toBe("3");
  await agent.editMessage("u1", { content: "zero" });
  expect(agent.messages.at(-1)?.content).toBe("1");
});
