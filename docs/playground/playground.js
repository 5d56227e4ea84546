// The whole schema of pgagui in the browser: PGlite is PostgreSQL compiled to WebAssembly. Nothing leaves the page.

import { PGlite } from "./pglite/index.js";

const examples = {
  "the runs of the thread": `select run_id, parent_run_id, status, first_seq, last_seq
from agui.runs('trip-to-lisbon');`,
  "the lineage of a run": "select run_id from agui.lineage('trip-to-lisbon', 'run-4');",
  "the branches": "select * from agui.branches('trip-to-lisbon');",
  "back in time": `select role, message ->> 'content' as content
from agui.messages('trip-to-lisbon', 'run-2', at_seq => 60);`,
  "tool calls, with arguments and results": `select run_id, name, status, arguments, result
from agui.tool_calls('trip-to-lisbon', 'run-4');`,
  "what waits for an answer": "select * from agui.interrupts('trip-to-lisbon', 'run-3');",
  "the raw events": "select seq, run_id, payload from agui.events('trip-to-lisbon', after_seq => 160);",
  "append a run, on a branch of its own": `select agui.append('trip-to-lisbon', 'mine-' || to_char(clock_timestamp(), 'HH24MISS'), '[
    {"type": "RUN_STARTED"},
    {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Four days, then."},
    {"type": "TEXT_MESSAGE_END", "messageId": "m"},
    {"type": "RUN_FINISHED"}
]', parent_run_id => 'run-1',
    input => '{"messages": [{"id": "u", "role": "user", "content": "And four days?"}]}');`,
  "fold the runs into snapshots": "call agui.compact();",
  "how much there is": "select * from agui.stats();",
  "verify the snapshots against the log": "select * from agui.verify('trip-to-lisbon');",
};

const thread = "trip-to-lisbon";
const element = (id) => document.getElementById(id);
const text = async (path) => {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.text();
};

let database;
let chosen; // the id of a run

/** Appends a recording: its runs, one after the other, as the client posted them and the agent answered. */
async function load(recording) {
  let run;
  const store = async () => {
    if (run) {
      await database.query("select agui.append($1, $2, $3::text::json, parent_run_id => $4)", [run.threadId, run.runId, `[${run.lines.join()}]`, run.parentRunId ?? null]);
    }
  };
  for (const line of recording.trim().split("\n")) {
    const event = JSON.parse(line);
    if (event.type === "RUN_STARTED") {
      await store();
      run = { ...event, lines: [] };
    }
    run.lines.push(line);
  }
  await store();
}

async function showTree() {
  const { rows } = await database.query(
    "select run_id, parent_run_id, status, last_seq, run_id = agui.head($1) as is_head from agui.runs($1) order by first_seq", [thread]);
  const depths = new Map();
  const forks = new Map();
  for (const row of rows) forks.set(row.parent_run_id, (forks.get(row.parent_run_id) ?? 0) + 1);
  element("tree").replaceChildren(...rows.map((row) => {
    // A run that has the parent for itself continues its line.
    const before = depths.get(row.parent_run_id) ?? 0;
    depths.set(row.run_id, before + (row.parent_run_id !== null && forks.get(row.parent_run_id) > 1 ? 1 : 0));
    const item = document.createElement("li");
    item.style.setProperty("--depth", depths.get(row.run_id));
    const button = document.createElement("button");
    button.textContent = `● ${row.run_id}${row.is_head ? " (head)" : ""}${row.status === "finished" ? "" : `, ${row.status}`}`;
    button.dataset.run = row.run_id;
    button.setAttribute("aria-pressed", String(row.run_id === chosen));
    button.addEventListener("click", () => choose(row.run_id, Number(row.last_seq)));
    item.append(button);
    return item;
  }));
  return rows;
}

async function choose(run, lastSeq) {
  chosen = run;
  for (const button of element("tree").querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.run === run));
  Object.assign(element("seq"), { max: lastSeq, value: lastSeq, disabled: false });
  await showConversation();
}

async function showConversation() {
  const seq = Number(element("seq").value);
  element("at").textContent = seq;
  try {
    const { rows: [row] } = await database.query("select agui.restore($1, $2, at_seq => $3)::text as restored", [thread, chosen, seq]);
    const { messages, state } = JSON.parse(row.restored);
    element("messages").replaceChildren(...messages.map((message) => {
      const item = document.createElement("li");
      const role = document.createElement("b");
      role.textContent = message.role;
      const calls = (message.toolCalls ?? []).map((call) => `▸ ${call.function.name}(${call.function.arguments})`);
      const content = typeof message.content === "string" ? message.content : message.content ? JSON.stringify(message.content) : "";
      item.append(role, [content, ...calls].filter(Boolean).join("\n"));
      return item;
    }));
    element("state").textContent = JSON.stringify(state, null, 2);
  } catch (error) { // an event of another branch
    element("messages").replaceChildren();
    element("state").textContent = error.message;
  }
}

async function run() {
  const result = element("result");
  element("run").disabled = true;
  try {
    const results = await database.exec(element("sql").value);
    result.replaceChildren(...results.filter(({ fields }) => fields.length > 0).map(tableOf));
    if (!result.firstChild) result.textContent = "done";
    await showTree();
  } catch (error) {
    const line = document.createElement("p");
    line.className = "error";
    line.textContent = [error.code, error.message, error.hint].filter(Boolean).join(": ");
    result.replaceChildren(line);
  }
  element("run").disabled = false;
}

function tableOf({ fields, rows }) {
  const table = document.createElement("table");
  const add = (cells, kind) => {
    const row = table.insertRow();
    for (const cell of cells) {
      const made = document.createElement(kind);
      made.textContent = cell === null ? "" : typeof cell === "object" && !(cell instanceof Date) ? JSON.stringify(cell) : cell instanceof Date ? cell.toISOString() : String(cell);
      row.append(made);
    }
  };
  add(fields.map(({ name }) => name), "th");
  for (const row of rows) add(fields.map(({ name }) => row[name]), "td");
  return table;
}

for (const name of Object.keys(examples)) element("examples").append(new Option(name));
element("examples").addEventListener("change", ({ target }) => { element("sql").value = examples[target.value]; });
element("sql").value = Object.values(examples)[0];
element("sql").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !element("run").disabled) void run();
});
element("run").addEventListener("click", run);
element("seq").addEventListener("input", showConversation);

try {
  const [schema, recording] = await Promise.all([text("schema.sql"), text("trip-to-lisbon.ndjson")]);
  database = await PGlite.create();
  element("status").textContent = "installing the schema …";
  await database.exec(schema);
  await load(recording);
  const runs = await showTree();
  const head = runs.at(-1);
  await choose(head.run_id, Number(head.last_seq));
  const { rows: [{ version }] } = await database.query("select current_setting('server_version') as version");
  element("status").textContent = `PostgreSQL ${version} runs in this page, with the whole schema and a recorded conversation. Nothing leaves it.`;
  element("run").disabled = false;
} catch (error) {
  element("status").textContent = `the playground could not start: ${error.message}`;
  throw error;
}
