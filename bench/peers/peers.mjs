// The peers of the benchmark, in one long-lived process. It reads one command per line from stdin,
// {"do":…}, and answers each with one line on stdout, in order: its seconds and counts, or
// {"error":…}. README.md lists the commands.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

// The client and LangGraph log to the console. Only answers may go to stdout, and logging would
// take time.
for (const method of ["debug", "error", "info", "log", "warn"]) console[method] = () => {};

function fail(error) {
  process.stderr.write(`bench/peers: ${error.message.split("\n")[0]}\n`);
  process.exit(1);
}
process.on("uncaughtException", fail);

const [client, langgraph, checkpoints] = await Promise.all([import("./client.mjs"), import("./langgraph.mjs"), import("./checkpoints.mjs")]).catch((error) => {
  const missing = /^Cannot find package '(.+?)'/.exec(error.message)?.[1];
  fail(missing ? new Error(`the package ${missing} is not installed: run npm ci in bench/peers`) : error);
});

/** The loaded conversations, each a list of runs, by file. */
const conversations = new Map();

/** Reads a file with one run per line: {"threadId","runId","parentRunId","events"}. */
function read(file) {
  const runs = readFileSync(file, "utf8").trimEnd().split("\n").map((line, index) => {
    const run = JSON.parse(line);
    if (typeof run.threadId !== "string" || !Array.isArray(run.events)) {
      throw new Error(`${file}:${index + 1}: not a run (expected {"threadId","runId","parentRunId","events"})`);
    }
    return run;
  });
  conversations.set(file, runs);
  return { runs: runs.length, events: client.countEvents(runs) };
}

function conversation({ file }) {
  const runs = conversations.get(file);
  if (!runs) throw new Error(`${file} is not loaded: send {"do":"load","file":…} first`);
  return runs;
}

const commands = {
  load: ({ file }) => read(file),
  unload: ({ file }) => ({ unloaded: conversations.delete(file) }),
  versions: () => {
    const { dependencies } = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8"));
    return { node: process.versions.node, ...dependencies };
  },
  "client.compactEvents": (command) => client.compact(conversation(command), command.thread === true),
  "client.replay": (command) => client.replay(conversation(command)),
  "langgraph.load": (command) => langgraph.load(command.url, conversation(command), command.deltas === true),
  "langgraph.getTuple": (command) => langgraph.getTuple(command.url, conversation(command), command.times ?? 1),
  "checkpoints.put": (command) => checkpoints.put(command),
  "checkpoints.getTuple": (command) => checkpoints.getTuple(command),
  "langgraph.getState": (command) => langgraph.getState(command.url, conversation(command), command.times ?? 1),
};

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  let answer;
  try {
    const command = JSON.parse(line);
    if (!Object.hasOwn(commands, command.do)) {
      throw new Error(`unknown command ${JSON.stringify(command.do)} (expected ${Object.keys(commands).join(", ")})`);
    }
    answer = await commands[command.do](command);
  } catch (error) {
    answer = { error: error instanceof Error ? error.message : String(error) };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
await Promise.all([langgraph.end(), checkpoints.end()]);
