// A question of an agent, answered with the useInterrupt of CopilotKit: a run of its own, which counts once.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { database, isMissing, serve } from "@pgagui/testing";
import { build } from "esbuild";
import pg from "pg";
import type { Browser, Page } from "puppeteer-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { hasChromium, launchChromium } from "./chromium.ts";
import { begin, finish, startAgent, startRuntime, type PlayedCall } from "./copilotkit-stage.ts";

type Ask = (call: PlayedCall, id: string, text: string) => void;

const asks: Record<string, Ask> = {
  outcome: ({ input: { threadId, runId }, send }, id, message) => {
    send({ type: "RUN_STARTED", threadId, runId });
    send({ type: "RUN_FINISHED", threadId, runId, outcome: { type: "interrupt", interrupts: [{ id, reason: "approval", message }] } });
  },
  "a CUSTOM event": ({ input: { threadId, runId }, send }, _, value) => {
    send({ type: "RUN_STARTED", threadId, runId });
    send({ type: "CUSTOM", name: "on_interrupt", value });
    send({ type: "RUN_FINISHED", threadId, runId });
  },
};
const answerIn = ({ input }: PlayedCall) => {
  const { resume, forwardedProps } = input as { resume?: { payload: unknown }[]; forwardedProps?: { command?: { resume?: unknown } } };
  return resume?.[0]?.payload ?? forwardedProps?.command?.resume;
};

describe.skipIf(isMissing("chromium", hasChromium))("useInterrupt", () => {
  let browser: Browser;
  let pages: { url: string; close(): void };

  beforeAll(async () => {
    pages = await servePage();
    browser = await launchChromium();
  });

  afterAll(async () => {
    await browser?.close();
    pages?.close();
  });

  describe.each(["pgagui serve", "the runner"])("with %s", (kind) => {
    test.each(Object.keys(asks))("asked by %s", async (spelling) => {
      const databaseURL = await database();
      const agent = await startAgent();
      const ask = asks[spelling]!;
      const runtime = kind === "the runner"
        ? (await startRuntime({ runner: "pgagui", databaseURL, agentURL: agent.url })).url
        : `${(await serve(databaseURL, { helper: agent.url }, ["--origins", pages.url])).url}/copilotkit`;
      const open = async () => {
        const page = await browser.newPage();
        onTestFinished(() => page.close());
        await page.goto(`${pages.url}/?runtime=${encodeURIComponent(runtime)}`);
        return page;
      };

      const page = await open();
      await click(page, "begin");
      const first = await agent.call();
      ask(first, "i1", "Erase it?");
      first.end();
      await shows(page, "#question", "Erase it?");
      const late = await open();
      await shows(late, "#question", "Erase it?");

      await click(page, "yes");
      const second = await agent.call();
      expect(answerIn(second)).toBe("yes");
      expect(second.input.runId).not.toBe(first.input.runId);
      ask(second, "i2", "The backup, too?"); // the page has the id of the first run for this question, too
      second.end();
      await shows(page, "#question", "The backup, too?");
      await click(page, "yes");
      const third = await agent.call();
      expect(answerIn(third)).toBe("yes");
      begin(third, "Done.");
      finish(third);
      await shows(page, "#texts", "Clean up.|Done.");

      await click(late, "no");
      await expect.poll(() => late.$eval("#errors", (item) => item.textContent), { timeout: 30_000 }).toMatch(/answered|another branch/);
      expect(agent.calls).toBe(3);
      expect(await page.$eval("#errors", (item) => item.textContent)).toBe("");
      const client = new pg.Client(databaseURL);
      await client.connect();
      const { rows } = await client.query("select run_id, parent_run_id, status from agui.runs('t')");
      await client.end();
      const ids = [first, second, third].map(({ input }) => input.runId);
      expect(rows).toEqual(ids.map((run_id, i) => ({ run_id, parent_run_id: ids[i - 1] ?? null, status: i < 2 ? "interrupted" : "finished" })));
    });
  });
});

async function click(page: Page, label: string): Promise<void> {
  await page.bringToFront(); // a page behind another one has no frames, which a click waits for
  await page.locator(`[aria-label="${label}"]`).click();
}

const shows = (page: Page, selector: string, text: string) => expect.poll(
  () => page.$eval(selector, (item) => item.textContent).catch(() => undefined), { timeout: 30_000 },
).toBe(text);

async function servePage(): Promise<{ url: string; close(): void }> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL("interrupt/page.tsx", import.meta.url))],
    bundle: true, format: "esm", jsx: "automatic", write: false, logLevel: "error",
    define: { "process.env.NODE_ENV": "\"production\"", "process.env": "{}" },
  });
  const script = Buffer.from(outputFiles[0]!.contents);
  const server = createServer((request, response) => {
    const isScript = request.url === "/page.js";
    response.writeHead(200, { "Content-Type": isScript ? "text/javascript" : "text/html" })
      .end(isScript ? script : "<!doctype html><link rel=icon href=data:,><div id=root></div><script type=module src=/page.js></script>");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
