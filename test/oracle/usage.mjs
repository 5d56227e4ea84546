// What the official client counts of the usage of runs. Reads a list of entries a line from stdin, as RUN_FINISHED.usage has them, and
// answers each with a line: one entry for each provider and model. What the schema refuses is left out; an entry without totalTokens
// has the sum that the schema says it is.

import { createInterface } from "node:readline";

const { aggregateTokenUsage } = await import("@ag-ui/core");
const { TokenUsageSchema } = await import("@ag-ui/core/schemas");

const counts = ["inputTokens", "outputTokens", "totalTokens", "reasoningTokens", "cachedInputTokens", "cacheWriteInputTokens"];

for await (const line of createInterface({ input: process.stdin })) {
  const entries = [];
  for (const given of JSON.parse(line)) {
    if (typeof given !== "object" || given === null || Array.isArray(given)) continue;
    const entry = {};
    for (const name of ["provider", "model", ...counts]) {
      const parsed = TokenUsageSchema.safeParse({ [name]: given[name] });
      if (parsed.success && given[name] !== undefined) entry[name] = given[name];
    }
    if (counts.every((name) => entry[name] === undefined)) continue;
    if (entry.totalTokens === undefined && entry.inputTokens !== undefined && entry.outputTokens !== undefined) {
      entry.totalTokens = entry.inputTokens + entry.outputTokens;
    }
    entries.push(entry);
  }
  process.stdout.write(JSON.stringify(aggregateTokenUsage(entries)) + "\n");
}
