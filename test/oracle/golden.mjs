// The golden cases in ../golden (README.md there says what a case is): asks the client what each stream means and compares that with
// what is written down, or writes it down:
//
//   node golden.mjs [--update]

import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";

const folder = new URL("../golden/", import.meta.url);
const update = process.argv[2] === "--update";
if (process.argv.length > (update ? 3 : 2)) {
  process.stderr.write("golden: usage: node golden.mjs [--update]\n");
  process.exit(2);
}

const files = readdirSync(folder).filter((name) => name.endsWith(".json")).map(read);
const cases = files.flatMap((file) => file.cases);
const streams = cases.map((golden) => `{"events":[${lineageOf(golden).join()}]}\n`).join("");
const answers = { client: ask([]), ours: ask(["--ours"]) };

const problems = [];
cases.forEach((golden, position) => {
  const before = golden.want;
  const problem = judge(golden, answers.client[position], answers.ours[position]);
  if (problem) problems.push(`${golden.file}: ${golden.name}: ${problem}`);
  else if (!update && !isDeepStrictEqual(before, golden.want)) {
    problems.push(`${golden.file}: ${golden.name}: its judge says otherwise (make oracle-update writes it down):\n${write(golden)}`);
  }
});
const names = cases.map(({ name }) => name);
for (const { file, name } of cases.filter(({ name }, position) => names.indexOf(name) !== position)) {
  problems.push(`${file}: ${name}: another case has that name; a name says what is different`);
}
for (const { name, text, cases } of files) {
  const written = `[\n${cases.map(write).join(",\n")}\n]\n`;
  if (update) writeFileSync(new URL(name, folder), written);
  else if (written !== text && problems.length === 0) problems.push(`${name}: not in the usual layout: make oracle-update`);
}
for (const problem of problems) process.stderr.write(`golden: ${problem}\n`);
if (problems.length > 0) process.exit(1);
process.stdout.write(`golden: ${cases.length} cases, each as its judge has it\n`);

// What the judge says --------------------------------------------------------------------------------------------------------------

/** Gives a case what its judge says; returns what is wrong with the case, if anything is. */
function judge(golden, client, ours) {
  const judges = {
    client: () => {
      if (client.error) return `the client refuses the stream (${client.error}); if that is meant: "judge": "pgagui", with a reason`;
      golden.want = client;
    },
    ours: () => {
      if (ours.error) return `the client refuses the stream (${ours.error}); if that is meant: "judge": "pgagui", with a reason`;
      if (isDeepStrictEqual(ours, client)) return `the client says the same without --ours: let it be the judge`;
      golden.want = ours;
    },
    pgagui: () => {
      if (!golden.reason) return `"judge": "pgagui" needs a "reason"`;
      if (!golden.want) return `"judge": "pgagui" needs a "want", written by hand`;
      if (!golden.exact && isDeepStrictEqual(parsed(golden.want), parsed(ours))) return `the client says the same: let it be the judge`;
    },
  };
  const decide = judges[golden.judge ?? "client"];
  return decide ? decide() : `no judge "${golden.judge}"; there are: ${Object.keys(judges).join(", ")}`;
}

/** Asks the oracle about all streams at once. */
function ask(flags) {
  const oracle = fileURLToPath(new URL("oracle.mjs", import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [oracle, ...flags], { input: streams, encoding: "utf8", maxBuffer: 2 ** 28 });
  if (status !== 0) throw new Error(`oracle: ${stderr}`);
  return stdout.trimEnd().split("\n").map((line) => {
    const { error, messages = [], state = null, interrupts = [] } = JSON.parse(line);
    const texts = (list) => list.map((value) => JSON.stringify(value));
    return { ...(error && { error }), messages: texts(messages), state: JSON.stringify(state), interrupts: texts(interrupts) };
  });
}

function parsed({ error, messages, state, interrupts }) {
  return JSON.parse(`[${JSON.stringify(error ?? null)},[${messages}],${state},[${interrupts}]]`);
}

/** The events that a case folds: those of its run's lineage, where it names a run. */
function lineageOf({ run, events }) {
  if (run === undefined) return events;
  const runs = new Map();
  let last;
  for (const text of events) {
    const event = JSON.parse(text);
    if (event.type === "RUN_STARTED") {
      runs.set(event.runId, { parent: runs.get(event.parentRunId) ?? last, events: [] });
      last = runs.get(event.runId);
    }
    last.events.push(text);
  }
  const lineage = [];
  for (let at = runs.get(run); at; at = at.parent) lineage.unshift(...at.events);
  return lineage;
}

// Files ----------------------------------------------------------------------------------------------------------------------------

// Events and hand-written results stay as they are spelled, so they are never decoded: a case may be about 1.0, an escape or a key
// that stands twice.

function read(name) {
  const text = readFileSync(new URL(name, folder), "utf8");
  try {
    JSON.parse(text);
  } catch (error) {
    throw new Error(`golden: ${name} is not JSON: ${error.message}`);
  }
  return { name, text, cases: parts(text).map((part) => ({ file: name, ...caseOf(part, name === "rules.json") })) };
}

/** Reads a case; ofList: one of rules.json, whose rules are in protocol/events.json. */
function caseOf(text, ofList) {
  const { name, rule, judge, reason, run, exact, events, want, ...others } = members(text);
  if (name === undefined || (rule === undefined) !== ofList || events === undefined || Object.keys(others).length > 0) {
    throw new Error(`golden: a case has name, rule and events, and may have the other fields of ../golden/README.md; this has not: ${text}`);
  }
  const decode = (part) => (part === undefined ? undefined : JSON.parse(part));
  return {
    ...{ name: decode(name), rule: decode(rule) },
    ...{ judge: decode(judge), reason: decode(reason), run: decode(run), exact: decode(exact) },
    events: parts(events).map(onOneLine),
    want: want && wantOf(members(want)),
  };
}

function wantOf({ messages, state, interrupts }) {
  return { messages: parts(messages).map(onOneLine), state: onOneLine(state), interrupts: parts(interrupts).map(onOneLine) };
}

function write({ name, rule, judge, reason, run, exact, events, want }) {
  const list = (texts, indent) => (texts.length === 0 ? "[]" : `[\n${texts.map((text) => indent + "  " + text).join(",\n")}\n${indent}]`);
  const fields = Object.entries({ name, rule, judge, reason, run, exact })
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `    "${key}": ${JSON.stringify(value)}`);
  fields.push(`    "events": ${list(events, "    ")}`);
  if (want) {
    fields.push(`    "want": {
      "messages": ${list(want.messages, "      ")},
      "state": ${want.state},
      "interrupts": ${list(want.interrupts, "      ")}
    }`);
  }
  return `  {\n${fields.join(",\n")}\n  }`;
}

/** The texts of the elements of a list, or of the members of an object. */
function parts(text) {
  const found = [];
  let depth = 0;
  let start;
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{},]/g)) {
    if ((token === "[" || token === "{") && depth++ === 0) start = index + 1;
    const ends = (token === "]" || token === "}") && --depth === 0;
    if (!ends && !(token === "," && depth === 1)) continue;
    found.push(text.slice(start, index).trim());
    start = index + 1;
  }
  return found.filter((part) => part !== "");
}

/** The texts of the members of an object by their keys. */
function members(text) {
  return Object.fromEntries(parts(text).map((part) => {
    const [key] = part.match(/^"(?:[^"\\]|\\.)*"/);
    return [JSON.parse(key), part.slice(key.length).replace(/^\s*:\s*/, "")];
  }));
}

function onOneLine(text) {
  return text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, "$1");
}
