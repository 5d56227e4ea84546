// Records the streams in the folder above anew: npm ci && npm run record

import { writeFile } from "node:fs/promises";

// Set before the framework is loaded: recording sends nothing to anybody.
process.env.COPILOTKIT_TELEMETRY_DISABLED = "true";

const { recipeCard } = await import("./conversations/recipe-card.mjs");
const { releaseApproval } = await import("./conversations/release-approval.mjs");
const { tripToLisbon } = await import("./conversations/trip-to-lisbon.mjs");
const { weatherTools } = await import("./conversations/weather-tools.mjs");

async function write(name, content) {
  await writeFile(new URL(`../${name}`, import.meta.url), content);
  console.log(`${name}: ${Buffer.byteLength(content)} bytes`);
}

const lines = (events) => events.map((event) => event + "\n").join("");

await write("trip-to-lisbon.ndjson", lines(await tripToLisbon()));
await write("release-approval.ndjson", lines(await releaseApproval()));
await write("weather-tools.ndjson", lines(await weatherTools()));
const card = await recipeCard();
await write("recipe-card.ndjson", lines(card.events));
await write("recipe-card.sse", card.wire);
