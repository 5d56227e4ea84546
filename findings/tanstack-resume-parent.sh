#!/usr/bin/env bash
# @tanstack/ai 0.58.0 and @ag-ui/client 1.0.0 (npm)
#
# Behaviour: the server asks for an approval by an interrupt, as the protocol has it, but an answer in `resume` is an error unless the input
# names the run that asked in `parentRunId`. The official client cannot send that member. If the server fills it in, the answer begins
# with TOOL_CALL_RESULT, before any RUN_STARTED, which the official client refuses.
#
# Why it matters: one would guess that `resume` with the id of the interrupt is enough. A proxy or store that knows the runs has to add
# parentRunId to what the agent receives, and RUN_STARTED to what the client does.
#
# Output:
#   sent: RUN_STARTED TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END MESSAGES_SNAPSHOT RUN_FINISHED
#   failure: none
#   messages: u1 m1
#   sent: RUN_ERROR
#   failure: Interrupt continuation requires parentRunId to identify the interrupted run.
#   messages: u1 m1
#   sent: TOOL_CALL_RESULT RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_FINISHED
#   failure: First event must be 'RUN_STARTED'
#   messages: u1 m1
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --silent --no-audit --no-fund --prefix "$dir" @tanstack/ai@0.58.0 @ag-ui/client@1.0.0
cat > "$dir/run.mjs" <<'END'
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { HttpAgent } from "@ag-ui/client";
import { chat, chatParamsFromRequestBody, toolDefinition, toServerSentEventsResponse } from "@tanstack/ai";

const inputSchema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const definition = { name: "weather", description: "Says the weather", inputSchema, needsApproval: true };
const tools = [toolDefinition(definition).server(({ city }) => `rain in ${city}`)];

// A model that calls the tool, and then says something. Adapters begin and end a run at each call of the model.
const adapter = {
  kind: "text", name: "scripted", model: "scripted", "~types": {},
  async *chatStream({ messages, threadId, runId }) {
    const event = (type, members) => ({ type, timestamp: 1, model: "scripted", threadId, runId, ...members });
    yield event("RUN_STARTED");
    if (messages.at(-1).role === "tool") {
      yield event("TEXT_MESSAGE_START", { messageId: "m2", role: "assistant" });
      yield event("TEXT_MESSAGE_CONTENT", { messageId: "m2", delta: "Take a coat." });
      yield event("TEXT_MESSAGE_END", { messageId: "m2" });
      yield event("RUN_FINISHED", { finishReason: "stop" });
      return;
    }
    const call = { toolCallId: "c1", toolCallName: "weather", toolName: "weather" };
    yield event("TOOL_CALL_START", { ...call, parentMessageId: "m1", index: 0 });
    yield event("TOOL_CALL_ARGS", { toolCallId: "c1", delta: '{"city":"Oslo"}' });
    yield event("TOOL_CALL_END", { ...call, input: { city: "Oslo" } });
    yield event("RUN_FINISHED", { finishReason: "tool_calls" });
  },
};

let parentRunId; // what the server fills in
const sent = [];
const server = createServer(async (request, response) => {
  let body = "";
  for await (const piece of request) body += piece;
  const { messages, threadId, runId, resume } = await chatParamsFromRequestBody(JSON.parse(body));
  const answer = toServerSentEventsResponse(chat({ adapter, tools, messages, threadId, runId, resume, parentRunId, debug: false }));
  const text = await answer.text();
  sent.push([...text.matchAll(/"type":"([A-Z_]+)","timestamp"/g)].map(([, type]) => type).join(" "));
  response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(text);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
console.error = () => {};
const agent = new HttpAgent({ url: `http://127.0.0.1:${server.address().port}`, threadId: "t" });
agent.addMessage({ id: "u1", role: "user", content: "Do I need a coat?" });

async function run(input) {
  let failure = "none";
  await agent.runAgent(input, { onRunFailed: ({ error }) => { failure = error.message; }, onRunErrorEvent: ({ event }) => { failure = event.message; } })
    .catch((error) => { failure = error.message; });
  console.log(`sent: ${sent.at(-1)}\nfailure: ${failure}\nmessages: ${agent.messages.map(({ id }) => id).join(" ")}`);
  return failure;
}

assert.equal(await run({ runId: "r1" }), "none");
const resume = agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: { approved: true } }));
assert.match(await run({ runId: "r2", resume }), /requires parentRunId/);
parentRunId = "r1";
assert.match(await run({ runId: "r3", resume }), /First event must be 'RUN_STARTED'/);
assert.match(sent[2], /^TOOL_CALL_RESULT RUN_STARTED /);
process.exit();
END
node "$dir/run.mjs"
