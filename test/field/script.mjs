// What the scripted models say, and how the programs beside this one serve their agents. script.py is the same for Python.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

const gates = new Map();

function gate(name) {
  if (!gates.has(name)) gates.set(name, Promise.withResolvers?.() ?? deferred());
  return gates.get(name);
}

function deferred() {
  const gate = {};
  gate.promise = new Promise((resolve) => { gate.resolve = resolve; });
  return gate;
}

/** The model's answer to a history of { role, text }: pieces of text, and calls as { id, name, args }. */
export async function* reply(history) {
  const asked = history.findLast(({ role }) => role === "user").text;
  const results = history.slice(history.findLastIndex(({ role }) => role !== "tool") + 1);
  if (results.length > 0) return yield* ["It says: ", results.map(({ text }) => text).join(", ")];
  const words = asked.split(" ");
  const tools = words.filter((word) => ["look", "erase", "pick", "shatter"].includes(word));
  for (const name of tools) yield { id: `call-${randomUUID().slice(0, 8)}`, name, args: JSON.stringify({ at: "it" }) };
  if (tools.length > 0) return;
  yield "You ";
  if (words.includes("fail")) throw new Error("the model is out of order");
  yield "said ";
  if (words.includes("slowly")) await gate(words.at(-1)).promise;
  yield asked.length > 1000 ? `${asked.length} letters \u{1F600}.` : `${JSON.stringify(asked)} \u{1F600}.`;
}

/** Serves agents, a new one for each run. */
export function serve(newAgent) {
  listen((input, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    const running = newAgent().run(input).subscribe({
      next: (event) => response.write(`data: ${JSON.stringify(event)}\n\n`),
      error: () => response.end(),
      complete: () => response.end(),
    });
    response.on("close", () => running.unsubscribe());
  });
}

/** Answers each input of a run by answer(input, response), until stdin ends. The first line of stdout is the address. */
export function listen(answer) {
  const server = createServer(async (request, response) => {
    if (request.url.startsWith("/release/")) {
      gate(decodeURIComponent(request.url.slice("/release/".length))).resolve();
      return response.end();
    }
    let body = "";
    for await (const piece of request.setEncoding("utf8")) body += piece;
    answer(JSON.parse(body), response);
  });
  server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
  process.stdin.resume().on("end", () => process.exit(0));
}
