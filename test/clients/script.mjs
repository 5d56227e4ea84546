// What the models of the frameworks say: they look first, with a tool, and then answer. Where the user asks for it to be slow,
// they wait in the middle of the answer until the test lets them go on.

const gates = new Map();

function gate(text) {
  if (!gates.has(text)) {
    const gate = {};
    gate.opened = new Promise((resolve) => { gate.open = resolve; });
    gates.set(text, gate);
  }
  return gates.get(text);
}

export const release = (text) => gate(text).open();

/** The pieces of the answer to a text of the user. */
export async function* pieces(text) {
  yield* ["You ", "said "];
  if (text.includes("slowly")) await gate(text).opened;
  yield* [JSON.stringify(text), " \u{1F600}", "."];
}

export const tool = { name: "look", args: JSON.stringify({ at: "it" }), result: { seen: 42 } };

export const textOf = (content) =>
  typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? part.content ?? "").join("");
