// The site is the Markdown of the repository as it is: README.md is its first page. Links to pages are checked by the build; links to
// other files lead to the repository.

import { existsSync, statSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const copies = fileURLToPath(new URL("../pages", import.meta.url)); // make site copies the pages to where their imports find node_modules
const repository = "https://github.com/pgagui/pgagui/blob/main/";

const isPage = (path) => existsSync(path) && statSync(path).isFile() && path.endsWith(".md");

/** Makes links to what is no page lead to the repository, and those to a folder lead to its README.md. */
function links(md) {
  md.core.ruler.push("links", ({ tokens, env }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      if (token.type !== "link_open") continue;
      const href = token.attrGet("href");
      if (/^(\w+:|#)/.test(href)) continue;
      const [path, hash] = href.split("#");
      let target = resolve(root, relative(copies, dirname(env.path)), decodeURI(path));
      if (existsSync(target) && statSync(target).isDirectory() && isPage(resolve(target, "README.md"))) target = resolve(target, "README.md");
      const place = relative(root, target);
      if (isPage(target)) token.attrSet("href", `/${place}${hash ? `#${hash}` : ""}`);
      else if (existsSync(target)) token.attrSet("href", repository + place);
      // what does not exist stays, and fails the build
    }
  });
}

const pages = (folder, ...names) => names.map(([text, name]) => ({ text, link: `/${folder}${name}` }));

export default defineConfig({
  title: "pgagui",
  description: "AG-UI event streams in the PostgreSQL that you already have",
  lang: "en",
  srcDir: copies,
  outDir: resolve(root, "bin/site"),
  cacheDir: resolve(root, "bin/site-cache"),
  rewrites: { "README.md": "index.md" },
  lastUpdated: false,
  markdown: { config: links },
  vite: { publicDir: false },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    socialLinks: [{ icon: "github", link: "https://github.com/pgagui/pgagui" }],
    sidebar: [
      { text: "Start", items: [{ text: "What it is", link: "/" }, { text: "Install", link: "/docs/install" },
        ...pages("docs/start/", ["Go", "go"], ["Python", "python"], ["SQL and sqlc", "sql"], ["A front end", "front-end"], ["Operators and DBAs", "operators"], ["Support", "support"])] },
      { text: "Understand", items: pages("docs/", ["Concepts", "concepts"], ["Compare", "compare"]) },
      { text: "Guides", items: [...pages("docs/guides/", ["Branching", "branching"], ["Interrupts", "interrupts"], ["Time travel", "time-travel"], ["Ask all conversations", "questions"], ["Copy what changes", "changes"], ["Search", "search"], ["Webhooks", "webhooks"],
        ["Session state", "session-state"], ["Images", "images"], ["Moving in", "moving-in"], ["A front of a cluster", "front"]), ...pages("docs/", ["Frameworks", "frameworks"], ["Tenants", "security"])] },
      { text: "Use", items: pages("docs/", ["From SQL", "sql"], ["From Go", "go"], ["From the shell", "reference/commands"], ["In a browser", "explorer"], ["The server", "server"]) },
      { text: "Operate", items: [...pages("docs/", ["Operations", "operations"], ["Settings", "settings"], ["Erase, hold, archive", "erasure"],
        ["Performance", "performance"], ["Beyond one machine", "scale"]), { text: "Recipes", link: "/deploy/README" }] },
      { text: "Reference", items: [...pages("docs/reference/", ["SQL", "sql"], ["Commands", "commands"], ["HTTP requests", "http"], ["SQLSTATEs", "errors"], ["Event types", "events"], ["Settings", "settings"], ["Metrics", "metrics"], ["Functions in a cluster", "routes"]),
        ...pages("docs/", ["HTTP", "http"], ["Errors", "errors"], ["What events mean", "reducer"], ["Words", "glossary"])] },
      { text: "Inside", items: [{ text: "Architecture", link: "/ARCHITECTURE" }, { text: "Decisions", link: "/docs/decisions" }, { text: "Contributing", link: "/CONTRIBUTING" },
        { text: "Changes", link: "/CHANGELOG" }] },
    ],
  },
});
