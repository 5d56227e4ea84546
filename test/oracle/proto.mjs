// What is lost of events in application/vnd.ag-ui.event+proto, and how large they are, by @ag-ui/proto: why the server does not write it (docs/server.md).
// Encodes and decodes every event of testdata/recordings.
//
//   node test/oracle/proto.mjs

import { readFileSync, readdirSync } from "node:fs";
import { gzipSync } from "node:zlib";

console.error = console.warn = () => {};
const { decode, encode } = await import("@ag-ui/proto");

const recordings = new URL("../../testdata/recordings/", import.meta.url);
const sorted = (value) =>
  JSON.stringify(value, (_, member) =>
    member !== null && typeof member === "object" && !Array.isArray(member) ? Object.fromEntries(Object.entries(member).sort()) : member,
  );
const report = (event) => {
  try {
    return sorted(decode(encode(event))) === sorted(event) ? "as it was" : `${JSON.stringify(decode(encode(event)))}`;
  } catch (error) {
    return `refused: ${error.message}`;
  }
};

let [events, changed] = [0, 0];
const [frames, messages] = [[], []];
for (const name of readdirSync(recordings).filter((name) => name.endsWith(".ndjson"))) {
  for (const line of readFileSync(new URL(name, recordings), "utf8").split("\n").filter(Boolean)) {
    events++;
    if (report(JSON.parse(line)) !== "as it was") changed++;
    const message = encode(JSON.parse(line));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(message.length);
    messages.push(length, message);
    frames.push(Buffer.from(`data: ${line}\n\n`));
  }
}
const bytes = (parts) => `${Buffer.concat(parts).length} bytes, ${gzipSync(Buffer.concat(parts)).length} with gzip`;
console.log(`${events} events, ${changed} of them change on the way`);
console.log(`server-sent events: ${bytes(frames)}`);
console.log(`protobuf: ${bytes(messages)}`);
for (const event of [
  { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "x", vendor: 1 },
  { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "\ud83d" },
  { type: "VENDOR_EVENT", value: 1 },
  { type: "THINKING_START" },
]) {
  console.log(`${JSON.stringify(event)}: ${report(event)}`);
}
