// Runs streams through both official clients, whole: HttpAgent.runAgent with an HTTP answer, from their SSE parser to their reducer.
// Reads one stream a line, a JSON string with the text of the answer (text/event-stream), and answers each with one line: a list with
// what each client made of it, {error?, messages, state, interrupts}.

import { createInterface } from "node:readline";

for (const method of ["debug", "error", "info", "log", "warn"]) console[method] = () => {};
process.env.SUPPRESS_TRANSFORMATION_WARNINGS = "true";

const clients = [await import("client-0"), await import("client-1")];

async function run({ HttpAgent }, answer) {
  const fetch = async () => new Response(answer, { headers: { "content-type": "text/event-stream" } });
  const agent = new HttpAgent({ url: "http://agent.invalid", threadId: "t", fetch });
  let error;
  try {
    await agent.runAgent({ runId: "r" });
  } catch (thrown) {
    error = (thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown)).slice(0, 1000);
  }
  return { error, messages: agent.messages, state: agent.state, interrupts: agent.pendingInterrupts };
}

function asJSON(results) {
  return JSON.stringify(results.map((result) => {
    try {
      return JSON.parse(JSON.stringify(result));
    } catch (error) {
      return { error: result.error, unreadable: String(error) }; // a patch can leave the client with a cycle
    }
  }));
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const answer = JSON.parse(line);
  const results = [];
  for (const client of clients) results.push(await run(client, answer));
  process.stdout.write(asJSON(results) + "\n");
}
