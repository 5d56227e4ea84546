// docs/playground in a browser, from a server of files.

import { existsSync, readFileSync } from "node:fs";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { isMissing, listen } from "@pgagui/testing";
import type { Page } from "puppeteer-core";
import { expect, onTestFinished, test } from "vitest";
import { hasChromium, launchChromium } from "./chromium.ts";

const folder = fileURLToPath(new URL("../../../bin/playground", import.meta.url)); // make playground
const types: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };

const serveFiles = () =>
  listen((request, response) => {
    const path = join(folder, normalize(request.url === "/" ? "/index.html" : request.url!));
    if (!existsSync(path)) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { "Content-Type": types[extname(path)] ?? "application/octet-stream" }).end(readFileSync(path));
  });

const texts = (page: Page, selector: string) => page.$$eval(selector, (found) => found.map(({ textContent }) => textContent));
const textOf = (page: Page, selector: string) => page.$eval(selector, ({ textContent }) => textContent ?? "");

test.skipIf(isMissing("chromium", hasChromium))("the playground runs the schema in the page", async () => {
  const address = await serveFiles();
  const browser = await launchChromium();
  onTestFinished(() => browser.close());
  const page = await browser.newPage();
  const elsewhere: string[] = [];
  page.on("request", (request) => {
    if (!/^(http:\/\/127\.0\.0\.1:|data:|blob:)/.test(request.url())) elsewhere.push(request.url());
  });
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  await page.goto(address);
  await expect.poll(() => textOf(page, "#status"), { timeout: 120_000 }).toMatch(/^PostgreSQL \d+\S* runs in this page/);

  expect(await texts(page, "#tree button")).toEqual([
    "● run-1", "● run-2", "● run-3, interrupted", "● run-4", "● run-5", "● run-6, failed", "● run-7 (head)",
  ]);
  await page.click("#tree button[data-run=run-3]");
  await expect.poll(() => texts(page, "#messages li").then((all) => all.at(-1))).toContain("▸ bookHotel(");
  await page.$eval("#seq", (slider) => { // as a person drags it: back to the first event
    (slider as HTMLInputElement).value = "1";
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await expect.poll(() => texts(page, "#messages li")).toEqual(["userPlan three days in Lisbon in May for two. We love food and hate queues 🍤"]);

  // Every example runs.
  const examples = await texts(page, "#examples option");
  expect(examples.length).toBeGreaterThan(5);
  for (const example of examples) {
    await page.select("#examples", example!);
    await page.click("#run");
    await page.waitForSelector("#run:not([disabled])", { timeout: 60_000 });
    expect(await texts(page, "#result .error"), example!).toEqual([]);
    if (example!.startsWith("fold")) expect(await textOf(page, "#result")).toBe("done");
    else expect((await texts(page, "#result tr")).length, example!).toBeGreaterThan(example!.startsWith("verify") ? 0 : 1); // no problem is no row
  }
  expect(await texts(page, "#tree button")).toHaveLength(8); // one of them has appended a run
  await page.$eval("#sql", (box) => { (box as HTMLTextAreaElement).value = "delete from agui.batch"; });
  await page.click("#run");
  await page.waitForSelector("#result .error");
  expect(await textOf(page, "#result")).toMatch(/^UI010: /);
  expect(problems).toEqual([]);
  expect(elsewhere).toEqual([]);
}, 180_000);
