// Stock clients, for the Go tests beside this file, which say what the clients do. A line of stdin is a call, {"id", "op", …};
// its answer is a line of stdout, {"id", "result"} or {"id", "error"}. Calls run in parallel.

import { createInterface } from "node:readline";

// The clients report on the console what they drop. Stdout belongs to the answers.
for (const method of ["debug", "error", "info", "log", "warn"]) console[method] = () => {};
Object.assign(process.env, {
  SUPPRESS_TRANSFORMATION_WARNINGS: "true", COPILOTKIT_TELEMETRY_DISABLED: "1", SCARF_ANALYTICS: "false", DO_NOT_TRACK: "1", MASTRA_TELEMETRY_DISABLED: "1",
});

/** The operations of a kind of client: agui.run is run in agui.mjs. */
async function operation(op) {
  const [kind, name] = op.split(".");
  return (await import(`./${kind}.mjs`)).operations[name];
}

function messageOf(thrown) {
  return (thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown)).slice(0, 2000);
}

function answer(line) {
  process.stdout.write(JSON.stringify(line) + "\n");
}

// What a client leaves unhandled would end the process, and is a fault all the same: the tests ask for it at their end. Both versions
// leave a connection unhandled that breaks: they report it, and then cancel the body that has failed.
const unhandled = [];
process.on("unhandledRejection", (thrown) => {
  if (!(thrown instanceof TypeError && thrown.message === "terminated")) unhandled.push(messageOf(thrown));
});
process.on("uncaughtException", (thrown) => unhandled.push(messageOf(thrown)));

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const { id, op, ...args } = JSON.parse(line);
  const result = op === "unhandled" ? Promise.resolve(unhandled) : operation(op).then((perform) => perform(args));
  result.then(
    (result) => answer({ id, result: result ?? null }),
    (thrown) => answer({ id, error: messageOf(thrown) }),
  );
}
process.exit(0); // connections that clients keep open would hold the process
