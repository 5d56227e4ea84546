// The code of the packages' README files and of pages of docs: what is TypeScript is compiled, and what is not marked
// no-run runs, block by block, with a database and a pgagui serve of the file's own.

import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { database, serve, serveAgent } from "@pgagui/testing";
import { transformSync } from "esbuild";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";

const execute = promisify(execFile);
const root = fileURLToPath(new URL("../../..", import.meta.url));
const frameworks = fileURLToPath(new URL("..", import.meta.url));
const packages = ["client", "copilotkit-runner", "tanstack-ai", "langgraph-checkpoint"];
const pages = [...packages.map((name) => `js/${name}/README.md`), "docs/frameworks.md", "docs/start/front-end.md"]
  .filter((page) => existsSync(join(root, page))); // packages.test.ts sees that each package has one

interface Block {
  language: string;
  runs: boolean;
  line: number;
  code: string;
}

function blocksOf(page: string): Block[] {
  const blocks: Block[] = [];
  const text = readFileSync(join(root, page), "utf8");
  for (const found of text.matchAll(/^```(\w+)(.*)\n([\s\S]*?)^```$/gm)) {
    blocks.push({
      language: found[1]!, runs: !/\bno-run\b/.test(found[2]!), line: text.slice(0, found.index).split("\n").length, code: found[3]!,
    });
  }
  return blocks;
}

/** A folder for the current test, in which the packages and the frameworks are installed. */
function project(): string {
  const folder = mkdtempSync(join(tmpdir(), "pgagui-docs-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  symlinkSync(join(frameworks, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  return folder;
}

/** Runs a program, and fails with what it printed if it fails. */
async function run(program: string, args: string[], env: NodeJS.ProcessEnv, cwd?: string): Promise<string> {
  const ended = execute(program, args, { env: { ...process.env, ...env }, cwd, timeout: 60_000 });
  return (await ended.catch((error) => {
    throw new Error(`${error.message}\n${error.stdout}\n${error.stderr}`);
  })).stdout;
}

/** An agent that greets. */
const greeting = () => serveAgent(async ({ input, send }) => {
  const ids = { threadId: input.threadId, runId: input.runId };
  const messageId = `answer-${input.runId}`;
  send({ type: "RUN_STARTED", ...ids });
  send({ type: "TEXT_MESSAGE_START", messageId, role: "assistant" });
  send({ type: "TEXT_MESSAGE_CONTENT", messageId, delta: "Hello" });
  send({ type: "TEXT_MESSAGE_END", messageId });
  send({ type: "RUN_FINISHED", ...ids });
});

describe.each(pages)("%s", (page) => {
  test("its TypeScript compiles", async () => {
    const folder = project();
    const blocks = blocksOf(page).filter(({ language }) => language === "ts" || language === "tsx");
    for (const { language, line, code } of blocks) writeFileSync(join(folder, `line${line}.${language}`), code);
    if (page.endsWith("README.md")) expect(blocks.length, "blocks of TypeScript").toBeGreaterThan(0);
    if (blocks.length === 0) return;
    for (const kind of new Set(blocks.map(({ language }) => language))) {
      writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({
        compilerOptions: {
          target: "es2022", module: "nodenext", moduleResolution: "nodenext", lib: ["es2023", "dom", "dom.iterable"], types: ["node"],
          strict: true, jsx: "react-jsx", noEmit: true, skipLibCheck: true,
          // What has React is for assistant-ui, which brings this version of the client.
          paths: kind === "tsx" ? { "@ag-ui/client": ["./node_modules/@ag-ui/client-0/dist/index.d.mts"] } : {},
        },
        files: blocks.filter(({ language }) => language === kind).map(({ language, line }) => `line${line}.${language}`),
      }));
      await run(process.execPath, [join(frameworks, "node_modules/typescript/bin/tsc"), "-p", folder], {}, folder);
    }
  });

  test("its code runs", async () => {
    const folder = project();
    const url = await database();
    const server = await serve(url, { assistant: await greeting() });
    const env = { DATABASE_URL: url };
    const client = new pg.Client(url);
    await client.connect();
    onTestFinished(() => client.end());
    for (const { language, runs, line, code } of blocksOf(page)) {
      if (!runs) continue;
      const placed = code.replaceAll("http://localhost:8080", server.url);
      switch (language) {
        case "ts":
        case "tsx": {
          const file = join(folder, `line${line}.mjs`);
          writeFileSync(file, transformSync(placed, { loader: language, format: "esm", jsx: "automatic" }).code);
          await run(process.execPath, [file], env, folder);
          break;
        }
        case "sql":
          await client.query(placed);
          break;
        case "sh":
          if (placed.includes("curl")) await run("bash", ["-e", "-c", placed], env, folder);
      }
    }
  });
});
