// docs/start/front-end.md, followed in a browser: its page is bundled, and talks to pgagui dev with the token that dev prints.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { binary, database, isMissing, listen } from "@pgagui/testing";
import { build } from "esbuild";
import type { Page } from "puppeteer-core";
import { expect, onTestFinished, test } from "vitest";
import { hasChromium, launchChromium } from "./chromium.ts";

const page = readFileSync(fileURLToPath(new URL("../../../docs/start/front-end.md", import.meta.url)), "utf8");

/** The block of the page that it names as this file. */
function file(name: string): string {
  const found = new RegExp(`\`${name.replace(".", "\\.")}\`:\\n\\n\`\`\`\\w+.*\\n([\\s\\S]*?)^\`\`\`$`, "m").exec(page);
  if (!found) throw new Error(`front-end.md has no ${name}`);
  return found[1]!;
}

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "pgagui-start-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** pgagui dev on a database of the test. */
async function dev(): Promise<{ url: string; token: string }> {
  const child = spawn(binary, ["dev", "--json", "--listen", "127.0.0.1:0", "--database-url", await database()],
    { env: { ...process.env, XDG_DATA_HOME: folder() }, stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGINT");
    await ended;
  });
  let printed = "";
  for await (const chunk of child.stdout) {
    printed += chunk;
    if (printed.includes("\n")) return JSON.parse(printed);
  }
  throw new Error("pgagui dev ended");
}

/** The address of the page, which calls the server at this address. */
async function serveStart(server: string): Promise<string> {
  const place = folder();
  symlinkSync(fileURLToPath(new URL("../node_modules", import.meta.url)), join(place, "node_modules"));
  writeFileSync(join(place, "chat.ts"), file("chat.ts").replace("http://localhost:8080", server));
  const { outputFiles } = await build({
    absWorkingDir: place, entryPoints: ["chat.ts"], bundle: true, format: "esm", write: false, logLevel: "error",
  });
  const script = Buffer.from(outputFiles[0]!.contents);
  const url = await listen((request, response) => {
    if (request.url === "/chat.js") response.writeHead(200, { "Content-Type": "text/javascript" }).end(script);
    else response.writeHead(200, { "Content-Type": "text/html" }).end(file("index.html"));
  });
  return url.replace("127.0.0.1", "localhost");
}

const shown = (tab: Page) => tab.$$eval("#messages li", (items) => items.map(({ textContent }) => textContent));

test.skipIf(isMissing("chromium", hasChromium))("the page keeps its conversation through a reload", async () => {
  const { url, token } = await dev();
  const address = await serveStart(url);
  const browser = await launchChromium();
  onTestFinished(() => browser.close());
  const tab = await browser.newPage();
  await tab.goto(`${address}/#${token}`);
  await tab.type("input", "Hello");
  await tab.keyboard.press("Enter");
  await expect.poll(() => shown(tab), { timeout: 30_000 }).toContain("user: Hello");
  const statuses = async () => {
    const answer = await fetch(`${url}/threads`, { headers: { Authorization: `Bearer ${token}` } });
    return (await answer.json()).threads.map((thread: { status: string }) => thread.status);
  };
  await expect.poll(statuses, { timeout: 30_000 }).toHaveLength(1); // the message has arrived
  await tab.reload(); // the sample still answers, token by token
  await expect.poll(async () => (await shown(tab)).at(-1), { timeout: 30_000 }).toMatch(/^assistant: ./);
  await expect.poll(statuses, { timeout: 60_000 }).toEqual(["finished"]);
  await expect.poll(async () => (await shown(tab)).at(-1), { timeout: 30_000 }).toMatch(/stop me\.\s*$/); // its last words
  const whole = await shown(tab);
  await tab.reload();
  await expect.poll(() => shown(tab), { timeout: 30_000 }).toEqual(whole);
  expect(whole[0]).toBe("user: Hello");
});
