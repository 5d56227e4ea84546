// Whether values are what the official schema says. Reads a value a line from stdin and answers each with a line: what is wrong with it,
// or nothing.
//
//   node schema.mjs AgentCapabilities

import { createInterface } from "node:readline";

const schema = (await import("@ag-ui/core/schemas"))[`${process.argv[2]}Schema`];
const known = (value, of, path = []) => {
  // The schemas let any member through, so that a misspelled one is not found. Here it is.
  while (of?.unwrap && !of.element) of = of.unwrap();
  if (of?.element && Array.isArray(value)) return value.flatMap((item, i) => known(item, of.element, [...path, i]));
  if (of?.shape === undefined || value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([name, member]) =>
    of.shape[name] ? known(member, of.shape[name], [...path, name]) : [`${[...path, name].join(".")} is unknown`],
  );
};

for await (const line of createInterface({ input: process.stdin })) {
  const value = JSON.parse(line);
  const parsed = schema.safeParse(value);
  const problems = parsed.success ? known(value, schema) : parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`);
  process.stdout.write(problems.join("; ") + "\n");
}
