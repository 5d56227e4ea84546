// The packed client with the oldest and the newest @ag-ui/client and rxjs that its peers allow.

import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { describe, expect, test } from "vitest";
import { testClient, type Modules } from "../../client/test/suite.ts";

const modules = fileURLToPath(new URL("../node_modules", import.meta.url));
const versions = {
  "0.0.59": { "@ag-ui/client": "@ag-ui/client-0", rxjs: "@ag-ui/client-0/node_modules/rxjs" },
  "1.0.0": { "@ag-ui/client": "@ag-ui/client", rxjs: "rxjs" },
};

/** Makes a project that has the client with these peers, and returns its node_modules. */
function install(version: string, peers: Record<string, string>): string {
  const folder = join(modules, `.pgagui-client-${version}`, "node_modules");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, "@ag-ui"), { recursive: true });
  cpSync(join(modules, "@pgagui/client"), join(folder, "@pgagui/client"), { recursive: true });
  for (const [name, target] of Object.entries(peers)) symlinkSync(join(modules, target), join(folder, name));
  return folder;
}

for (const [version, peers] of Object.entries(versions)) {
  describe(`with @ag-ui/client ${version}`, async () => {
    const folder = install(version, peers);
    const load = (name: string) => import(pathToFileURL(createRequire(join(folder, "index.js")).resolve(name)).href);
    const client = await import(pathToFileURL(join(folder, "@pgagui/client/dist/index.js")).href);
    const agui = await load("@ag-ui/client");

    test("is that version", () => {
      const manifest = JSON.parse(readFileSync(join(folder, "@ag-ui/client/package.json"), "utf8"));
      expect(manifest.version).toBe(version);
    });
    testClient({ agui, client } as Modules, version === "1.0.0" ? 80 : 40);
  });
}

test("the main entry has less than 10 KB", async () => {
  const { outputFiles } = await build({
    entryPoints: [join(modules, "@pgagui/client/dist/index.js")], bundle: true, minify: true, format: "esm", target: "es2022",
    platform: "browser", external: ["@ag-ui/client", "rxjs"], write: false,
  });
  const size = gzipSync(outputFiles[0]!.contents).length;
  console.log(`@pgagui/client: ${size} bytes`);
  expect(size).toBeLessThan(10_000);
});
