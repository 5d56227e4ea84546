import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { database, isMissing, serve, serveAgent, type Call } from "@pgagui/testing";
import { Threads } from "@pgagui/client";
import { build } from "esbuild";
import { Client } from "pg";
import type { Browser, HTTPRequest, Page } from "puppeteer-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { hasChromium, launchChromium } from "./chromium.ts";

test("the README has the code that the page uses", () => {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
  expect(read("../../client/README.md")).toContain(`\`\`\`tsx\n${read("assistant-ui/chat-runtime.tsx")}\`\`\``);
});

// What assistant-ui brings, and the newest version.
describe.skipIf(isMissing("chromium", hasChromium)).each([
  { client: "@ag-ui/client-0", mode: "production" },
  { client: "@ag-ui/client", mode: "development" }, // React mounts everything twice
])("with $client, $mode", ({ client, mode }) => {
  let browser: Browser;
  let pages: Pages;

  beforeAll(async () => {
    pages = await servePages(client, mode);
    browser = await launchChromium();
  });

  afterAll(async () => {
    await browser?.close();
    pages?.close();
  });

  test("lists, names, archives and deletes threads", async () => {
    const chat = await open();
    await chat.say("first");
    await chat.shows(["user: first", "assistant: Re first"]);
    await chat.click("New");
    await chat.shows([]);
    await chat.say("second");
    await chat.shows(["user: second", "assistant: Re second"]);
    await chat.click("New");
    await chat.say("third");
    await chat.shows(["user: third", "assistant: Re third"]);
    expect(await chat.run("select array_agg(distinct thread_id)::text from agui.event")).not.toContain("LOCALID");

    await chat.reload();
    await chat.shows(["user: third", "assistant: Re third"]);
    await chat.lists("threads", ["third", "second", "first"]);
    await chat.clickIn("#threads > :nth-child(2)", "Rename");
    await chat.lists("threads", ["third", "Renamed", "first"]);
    await chat.clickIn("#threads > :nth-child(2)", "Archive");
    await chat.lists("archive", ["Renamed"]);
    await chat.clickIn("#threads > :nth-child(2)", "Delete");
    await chat.lists("threads", ["third"]);
    // The list shows a change before it is stored.
    await expect.poll(async () => (await chat.threads.list({ archived: "with" })).threads.map(({ title, archived }) => [title, archived]))
      .toEqual([["third", false], ["Renamed", true]]);

    await chat.reload();
    await chat.lists("threads", ["third"]);
    await chat.lists("archive", ["Renamed"]);
    await chat.clickIn("#archive > :nth-child(1)", "Unarchive");
    await chat.lists("archive", []);
    await chat.clickTitle("Renamed");
    await chat.shows(["user: second", "assistant: Re second"]);
    expect(chat.problems).toEqual([]);
  });

  test("a new thread, and a reload of it, log no errors", async () => {
    const chat = await open();
    await chat.shows([]);
    await chat.click("New");
    await chat.reload();
    await chat.shows([]);
    await chat.say("first");
    await chat.shows(["user: first", "assistant: Re first"]);
    await chat.click("New");
    await chat.shows([]);
    await chat.reload();
    await chat.shows([]);
    await chat.lists("threads", ["first"]);
    expect(chat.problems).toEqual([]);
  });

  test("requests of runs that finished are not aborted", async () => {
    const chat = await open();
    const ends: string[] = [];
    const note = (end: string) => (request: HTTPRequest) => {
      if (/\/run$|\/events/.test(request.url()) && request.method() !== "OPTIONS") ends.push(end);
    };
    chat.page.on("requestfinished", note("finished"));
    chat.page.on("requestfailed", note("failed"));
    const shown: string[] = [];
    for (const text of ["one", "two", "three", "four"]) { // whether the server is faster than the page is a matter of luck
      await chat.say(text);
      shown.push(`user: ${text}`, `assistant: Re ${text}`);
      await chat.shows(shown);
    }
    await expect.poll(() => ends, { timeout: 30_000 }).toEqual(["finished", "finished", "finished", "finished"]);
    await chat.say("slow");
    await chat.shows([...shown, "user: slow", "assistant: Re sl"], "running");
    await chat.reload();
    await chat.shows([...shown, "user: slow", "assistant: Re sl"], "running");
    ends.length = 0; // the reload aborts
    chat.release();
    await chat.shows([...shown, "user: slow", "assistant: Re slow"]);
    await expect.poll(() => ends, { timeout: 30_000 }).toEqual(["finished"]);
  });

  test("an edited message is a branch in the database, and each branch continues", async () => {
    const chat = await open();
    await chat.say("one");
    await chat.shows(["user: one", "assistant: Re one"]);
    await chat.say("two");
    await chat.shows(["user: one", "assistant: Re one", "user: two", "assistant: Re two"]);
    await chat.edit(3, "deux");
    await chat.shows(["user: one", "assistant: Re one", "user: deux 2/2", "assistant: Re deux"]);
    expect(await chat.tree()).toEqual({ one: "", two: "one", deux: "one" });

    // useAgUiRuntime takes an edited message off the page, and leaves its answer.
    await chat.clickIn(message(3), "Previous");
    await chat.shows(["user: one", "assistant: Re one", "assistant: Re two 1/2"]);
    await chat.click("Refresh");
    await chat.shows(["user: one", "assistant: Re one", "user: deux 2/2", "assistant: Re deux"]);
    await chat.clickIn(message(3), "Previous");
    await chat.shows(["user: one", "assistant: Re one", "user: two 1/2", "assistant: Re two"]);

    // The branch that the user sees continues, not the head.
    await chat.say("three");
    await chat.shows(["user: one", "assistant: Re one", "user: two 1/2", "assistant: Re two", "user: three", "assistant: Re three"]);
    expect(await chat.tree()).toEqual({ one: "", two: "one", deux: "one", three: "two" });

    await chat.reload();
    await chat.shows(["user: one", "assistant: Re one", "user: two 1/2", "assistant: Re two", "user: three", "assistant: Re three"]);
    await chat.clickIn(message(3), "Next");
    await chat.shows(["user: one", "assistant: Re one", "user: deux 2/2", "assistant: Re deux"]);
    await chat.say("trois");
    await chat.shows(["user: one", "assistant: Re one", "user: deux 2/2", "assistant: Re deux", "user: trois", "assistant: Re trois"]);
    await chat.edit(1, "uno");
    await chat.shows(["user: uno 2/2", "assistant: Re uno"]);
    expect(await chat.tree()).toEqual({ one: "", two: "one", deux: "one", three: "two", trois: "deux", uno: "" });
    expect(chat.received).toEqual([
      "one", "one|Re one|two", "one|Re one|deux", "one|Re one|two|Re two|three", "one|Re one|deux|Re deux|trois", "uno",
    ]);
    // The conversation of a branch has each message once.
    await chat.reload();
    await chat.shows(["user: uno 2/2", "assistant: Re uno"]);
    await chat.clickIn(message(1), "Previous");
    await chat.clickIn(message(3), "Next");
    await chat.shows(["user: one 1/2", "assistant: Re one", "user: deux 2/2", "assistant: Re deux", "user: trois", "assistant: Re trois"]);
    expect(chat.problems).toEqual([]);
  });

  test("an answer that is generated once more is a branch", async () => {
    const chat = await open();
    await chat.say("one");
    await chat.shows(["user: one", "assistant: Re one"]);
    await chat.say("two");
    await chat.shows(["user: one", "assistant: Re one", "user: two", "assistant: Re two"]);
    await chat.clickIn(message(4), "Reload");
    await chat.shows(["user: one", "assistant: Re one", "user: two", "assistant: Re two 2/2"]);
    await chat.clickIn(message(2), "Reload");
    await chat.shows(["user: one", "assistant: Re one 2/2"]);
    expect(await chat.parents()).toEqual(["", "1", "1", ""]);
    await chat.reload();
    await chat.shows(["user: one", "assistant: Re one 2/2"]);
    await chat.clickIn(message(2), "Previous");
    await chat.shows(["user: one", "assistant: Re one 1/2", "user: two", "assistant: Re two 1/2"]);
    await chat.clickIn(message(4), "Reload");
    await chat.shows(["user: one", "assistant: Re one 1/2", "user: two", "assistant: Re two 3/3"]);
    expect(await chat.parents()).toEqual(["", "1", "1", "", "1"]);
    expect(chat.received).toEqual(["one", "one|Re one|two", "one|Re one|two", "one", "one|Re one|two"]);
    expect(chat.problems).toEqual([]);
  });

  test("a reload in mid-run shows the history, and continues live", async () => {
    const chat = await open();
    await chat.say("one");
    await chat.shows(["user: one", "assistant: Re one"]);
    await chat.say("slow");
    await chat.shows(["user: one", "assistant: Re one", "user: slow", "assistant: Re sl"], "running");
    await chat.reload();
    await chat.shows(["user: one", "assistant: Re one", "user: slow", "assistant: Re sl"], "running");
    chat.release();
    await chat.shows(["user: one", "assistant: Re one", "user: slow", "assistant: Re slow"]);
    await chat.say("three");
    await chat.shows(["user: one", "assistant: Re one", "user: slow", "assistant: Re slow", "user: three", "assistant: Re three"]);
    await chat.reload();
    await chat.shows(["user: one", "assistant: Re one", "user: slow", "assistant: Re slow", "user: three", "assistant: Re three"]);
    expect(chat.received).toEqual(["one", "one|Re one|slow", "one|Re one|slow|Re slow|three"]);
    expect(await chat.parents()).toEqual(["", "1", "2"]);
    expect(chat.problems).toEqual([]);
  });

  test("a reload while an answer is generated once more keeps the earlier answer", async () => {
    const chat = await open();
    await chat.say("slow");
    await chat.shows(["user: slow", "assistant: Re sl"], "running");
    chat.release();
    await chat.shows(["user: slow", "assistant: Re slow"]);
    await chat.clickIn(message(2), "Reload");
    await chat.shows(["user: slow", "assistant: Re sl 2/2"], "running");
    await chat.reload();
    await chat.shows(["user: slow 2/2", "assistant: Re sl"], "running");
    chat.release();
    await chat.shows(["user: slow 2/2", "assistant: Re slow"]);
    await chat.clickIn(message(2), "Reload");
    await chat.shows(["user: slow 2/2", "assistant: Re sl 2/2"], "running");
    chat.release();
    await chat.shows(["user: slow 2/2", "assistant: Re slow 2/2"]);
    await chat.say("next");
    await chat.shows(["user: slow 2/2", "assistant: Re slow 2/2", "user: next", "assistant: Re next"]);
    await chat.reload();
    await chat.shows(["user: slow", "assistant: Re slow 3/3", "user: next", "assistant: Re next"]);
    expect(await chat.parents()).toEqual(["", "", "", "3"]);
    expect(chat.received).toEqual(["slow", "slow", "slow", "slow|Re slow|next"]);
    expect(chat.problems).toEqual([]);
  });

  test("the stop button stops the run, and the conversation continues from there", async () => {
    const chat = await open();
    const stopped = ["user: slow", "assistant: Re sl cancelled"];
    await chat.say("slow");
    await chat.shows(["user: slow", "assistant: Re sl"], "running");
    await chat.click("Stop");
    await chat.shows(stopped);
    await expect.poll(async () => (await chat.runs()).map(({ status }) => status), { timeout: 30_000 }).toEqual(["cancelled"]);
    await chat.shows(stopped);
    await chat.reload();
    await chat.shows(stopped);
    await chat.say("next");
    await chat.shows([...stopped, "user: next", "assistant: Re next"]);
    expect(await chat.parents()).toEqual(["", "1"]);
    expect(chat.received).toEqual(["slow", "slow|Re sl|next"]);
    expect(chat.problems).toEqual([]);
  });

  test("the stop button also stops a run that began before a reload", async () => {
    const chat = await open();
    await chat.say("slow");
    await chat.shows(["user: slow", "assistant: Re sl"], "running");
    await chat.reload();
    await chat.shows(["user: slow", "assistant: Re sl"], "running");
    await chat.click("Stop");
    await chat.shows(["user: slow", "assistant: Re sl cancelled"]);
    await expect.poll(async () => (await chat.runs()).map(({ status }) => status), { timeout: 30_000 }).toEqual(["cancelled"]);
    await chat.shows(["user: slow", "assistant: Re sl cancelled"]);
    expect(chat.problems).toEqual([]);
  });

  test("an answer with a tool call is one message, and its branches are at its question", async () => {
    const chat = await open();
    await chat.say("tools");
    const answer = "assistant: [look {\"at\":1} = \"seen\"]Then";
    await chat.shows(["user: tools", answer], "running");
    await chat.reload();
    await chat.shows(["user: tools", answer], "running");
    chat.release();
    const shown = ["user: tools", `${answer} slow text`];
    await chat.shows(shown);
    await chat.say("next");
    await chat.shows([...shown, "user: next", "assistant: Re next"]);
    await chat.reload();
    await chat.shows([...shown, "user: next", "assistant: Re next"]);
    await chat.say("last");
    await chat.shows([...shown, "user: next", "assistant: Re next", "user: last", "assistant: Re last"]);
    expect(chat.received).toEqual(["tools", "tools|call look|seen|Then slow text|next", "tools|call look|seen|Then slow text|next|Re next|last"]);
    await chat.clickIn(message(2), "Reload");
    await chat.shows(["user: tools", `${answer} 2/2`], "running");
    chat.release();
    await chat.shows(["user: tools", `${answer} slow text 2/2`]);
    await chat.reload();
    await chat.shows(["user: tools", `${answer} slow text 2/2`]);
    await chat.say("again");
    await chat.shows(["user: tools", `${answer} slow text 2/2`, "user: again", "assistant: Re again"]);
    await chat.clickIn(message(2), "Previous");
    await chat.shows(["user: tools", `${answer} slow text 1/2`, "user: next", "assistant: Re next", "user: last", "assistant: Re last"]);
    expect(chat.received.slice(3)).toEqual(["tools", "tools|call look|seen|Then slow text|again"]);
    expect(await chat.parents()).toEqual(["", "1", "2", "", "4"]);
    expect(chat.problems).toEqual([]);
  });

  /** Opens a page on a server with a database of its own. */
  async function open(): Promise<Chat> {
    const databaseURL = await database();
    const script = new Script();
    const agent = await serveAgent((call) => script.answer(call));
    const server = await serve(databaseURL, { assistant: agent }, ["--origins", pages.url]);
    const page = await browser.newPage();
    onTestFinished(() => page.close());
    await page.goto(`${pages.url}/?server=${encodeURIComponent(server.url)}`);
    return new Chat(page, script, server.url, databaseURL);
  }
});

/** A scripted agent. It answers with the last text of the user. Slow answers wait in the middle. */
class Script {
  /** The texts that the agent has received, of each run. */
  readonly received: string[] = [];
  release: () => void = () => {};

  async answer({ input, send, gone }: Call): Promise<void> {
    const { threadId, runId, messages } = input;
    const texts = messages.map((message) => message.content || `call ${(message as { toolCalls?: { function: { name: string } }[] }).toolCalls?.[0]?.function.name}`);
    this.received.push(texts.join("|"));
    const text = String(messages.findLast(({ role }) => role === "user")?.content);
    const isFirst = messages.at(-1)?.role === "user";
    send({ type: "RUN_STARTED", threadId, runId });
    send({ type: "STATE_SNAPSHOT", snapshot: { text } });
    const say = async (messageId: string, deltas: string[], waits: boolean) => {
      send({ type: "TEXT_MESSAGE_START", messageId, role: "assistant" });
      for (const [index, delta] of deltas.entries()) {
        send({ type: "TEXT_MESSAGE_CONTENT", messageId, delta });
        if (waits && index === 0) {
          await Promise.race([new Promise<void>((resolve) => (this.release = resolve)), gone]);
        }
      }
      send({ type: "TEXT_MESSAGE_END", messageId });
    };
    if (text === "tools" && isFirst) {
      const toolCallId = `c-${runId}`;
      send({ type: "TOOL_CALL_START", toolCallId, toolCallName: "look" });
      send({ type: "TOOL_CALL_ARGS", toolCallId, delta: "{\"at\":1}" });
      send({ type: "TOOL_CALL_END", toolCallId });
      send({ type: "TOOL_CALL_RESULT", messageId: `t-${runId}`, toolCallId, content: "seen", role: "tool" });
      await say(`a-${runId}`, ["Then", " slow text"], true);
    } else {
      await say(`a-${runId}`, [`Re ${text.slice(0, 2)}`, text.slice(2)], text === "slow");
    }
    send({ type: "RUN_FINISHED", threadId, runId });
  }
}

const message = (number: number): string => `.message:nth-of-type(${number})`;

/** The page as its user sees it, and what the server has. */
class Chat {
  readonly page: Page;
  readonly threads: Threads;
  readonly received: string[];
  readonly #script: Script;
  readonly #databaseURL: string;
  readonly #problems: string[] = [];

  constructor(page: Page, script: Script, url: string, databaseURL: string) {
    this.page = page;
    this.#script = script;
    this.received = script.received;
    this.threads = new Threads({ url });
    this.#databaseURL = databaseURL;
    page.on("pageerror", (error) => this.#problems.push(String(error)));
    page.on("console", (line) => line.type() === "error" && this.#problems.push(line.text()));
  }

  /** Waits until the page shows exactly these messages, with the branches where there are several, and how they ended early. */
  async shows(messages: string[], state = "idle"): Promise<void> {
    await this.#see(messages.join("\n"), state, () =>
      [...document.querySelectorAll(".message")]
        .map((item) => [
          `${item.getAttribute("data-role")}:`, ...[".content", ".branch"].map((part) => item.querySelector(part)?.textContent), item.getAttribute("data-end"),
        ].filter(Boolean).join(" "))
        .join("\n"));
  }

  /** Waits until a list has exactly these titles. */
  async lists(list: "threads" | "archive", titles: string[]): Promise<void> {
    const page = this.page;
    await expect.poll(() => page.$$eval(`#${list} .title`, (items) => items.map((item) => item.textContent)), { timeout: 30_000 }).toEqual(titles);
  }

  async #see(wanted: string, state: string, read: () => string): Promise<void> {
    await expect.poll(() => this.page.evaluate(read), { timeout: 30_000 }).toBe(wanted);
    await expect.poll(() => this.page.$eval("#state", (item) => item.textContent), { timeout: 30_000 }).toBe(state);
  }

  async say(text: string): Promise<void> {
    await this.page.type("[aria-label=Message]", text);
    await this.click("Send");
  }

  async edit(number: number, text: string): Promise<void> {
    await this.clickIn(message(number), "Edit");
    await this.page.locator("[aria-label='Edited message']").fill(text);
    await this.click("Save");
  }

  async click(label: string): Promise<void> {
    await this.page.locator(`[aria-label="${label}"]:enabled`).click();
  }

  async clickTitle(title: string): Promise<void> {
    await this.page.locator(`.title ::-p-text(${title})`).click();
  }

  async clickIn(selector: string, label: string): Promise<void> {
    await this.page.locator(`${selector} [aria-label="${label}"]:enabled`).click();
  }

  async reload(): Promise<void> {
    await this.page.reload();
  }

  release(): void {
    this.#script.release();
  }

  /** The errors of the page and of its console. */
  get problems(): readonly string[] {
    return this.#problems;
  }

  /** Runs a statement, and returns the first value. */
  async run(statement: string): Promise<string> {
    const client = new Client(this.#databaseURL);
    await client.connect();
    try {
      return String(Object.values((await client.query(statement)).rows[0])[0]);
    } finally {
      await client.end();
    }
  }

  async runs() {
    const { threads } = await this.threads.list();
    return this.threads.runs(threads[0]!.threadId);
  }

  /** The numbers of the runs' parents. */
  async parents(): Promise<string[]> {
    const runs = await this.runs();
    return runs.map(({ parentRunId }) => String(runs.find(({ runId }) => runId === parentRunId)?.number ?? ""));
  }

  /** The parent of each run, both by the text that they answer. */
  async tree(): Promise<Record<string, string>> {
    const runs = await this.runs();
    const texts = new Map(runs.map(({ runId }, index) => [runId, this.received[index]!.split("|").at(-1)!]));
    return Object.fromEntries(runs.map(({ runId, parentRunId }) => [texts.get(runId)!, texts.get(parentRunId ?? "") ?? ""]));
  }
}

interface Pages {
  url: string;
  close(): void;
}

/** Serves the page, built with a version of the AG-UI client, and of React for development or for production. */
async function servePages(client: string, mode: string): Promise<Pages> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL("assistant-ui/app.tsx", import.meta.url))],
    bundle: true,
    format: "esm",
    jsx: "automatic",
    write: false,
    alias: { "@ag-ui/client": client },
    define: { "process.env.NODE_ENV": JSON.stringify(mode), "process.env": "{}" },
    logLevel: "error",
    plugins: [{
      name: "address",
      setup: (build) => build.onLoad({ filter: /chat-runtime\.tsx$/ }, ({ path }) => ({
        contents: readFileSync(path, "utf8").replace("\"http://localhost:8080\"", "new URLSearchParams(location.search).get(\"server\")"),
        loader: "tsx",
      })),
    }],
  });
  const script = Buffer.from(outputFiles[0]!.contents);
  const server = createServer((request, response) => {
    if (request.url === "/app.js") {
      response.writeHead(200, { "Content-Type": "text/javascript" }).end(script);
    } else {
      response.writeHead(200, { "Content-Type": "text/html" }).end("<!doctype html><link rel=icon href=data:,><div id=root></div><script type=module src=/app.js></script>");
    }
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
