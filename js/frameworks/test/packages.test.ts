// What users install: each package is packed, and its tarball is installed by npm outside of this tree, with its peers at the
// oldest and at the newest version that is tested. make packages checks what is in the tarballs.

import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, test } from "vitest";

const execute = promisify(execFile);
const root = fileURLToPath(new URL("../../..", import.meta.url));
const { dependencies: installed, overrides } = JSON.parse(readFileSync(join(root, "js/frameworks/package.json"), "utf8")) as {
  dependencies: Record<string, string>;
  overrides: Record<string, string>; // where the frameworks name versions that no registry may have
};
const names = ["client", "copilotkit-runner", "tanstack-ai", "langgraph-checkpoint"];

interface Manifest {
  name: string;
  exports: Record<string, unknown>;
  peerDependencies?: Record<string, string>;
}

async function run(program: string, args: string[], cwd: string): Promise<string> {
  const ended = execute(program, args, { cwd, maxBuffer: 1 << 26 });
  return (await ended.catch((error) => {
    throw new Error(`${error.message}\n${error.stdout}\n${error.stderr}`);
  })).stdout;
}

/** Packs a package, which `npm run pack` has built, into a folder, which the caller removes. */
async function pack(name: string): Promise<{ folder: string; tarball: string; manifest: Manifest }> {
  const folder = mkdtempSync(join(tmpdir(), "pgagui-package-"));
  const output = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], join(root, "js", name));
  const tarball = join(folder, JSON.parse(output.slice(output.indexOf("["))) [0].filename);
  await run("tar", ["xzf", tarball], folder);
  return { folder, tarball, manifest: JSON.parse(readFileSync(join(folder, "package/package.json"), "utf8")) };
}

/** The specifier of an entry: "." of @pgagui/client is "@pgagui/client". */
const specifiers = ({ name, exports }: Manifest) =>
  Object.keys(exports).filter((entry) => !entry.endsWith(".json")).map((entry) => name + entry.slice(1));

const oldest = (range: string) => /\d+\.\d+\.\d+/.exec(range)![0];

/** Both versions of the peers of a package, or the newest alone if no more than patches are between them. */
function ages(name: string): ("oldest" | "newest")[] {
  const { peerDependencies = {} } = JSON.parse(readFileSync(join(root, "js", name, "package.json"), "utf8")) as Manifest;
  const minor = (version: string) => version.split(".", 2).join(".");
  const differs = Object.entries(peerDependencies).some(([peer, range]) => minor(oldest(range)) !== minor(installed[peer]!));
  return differs ? ["oldest", "newest"] : ["newest"];
}

describe.each(names)("@pgagui/%s", (name) => {
  let packed: Awaited<ReturnType<typeof pack>>;
  beforeAll(async () => {
    packed = await pack(name);
    return () => rmSync(packed.folder, { recursive: true });
  }, 600_000);

  test.concurrent.for(ages(name))("installs with its %s peers, has types, and can be imported and required", { timeout: 600_000 }, async (age, { expect, onTestFinished }) => {
    const { tarball, manifest } = packed;
    const folder = mkdtempSync(join(tmpdir(), "pgagui-install-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const peers = Object.entries(manifest.peerDependencies ?? {}).map(([peer, range]) => {
      expect(installed[peer], `${peer} is tested here`).toBeDefined();
      return `${peer}@${age === "oldest" ? oldest(range) : installed[peer]}`;
    });
    writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module", overrides }));
    await run("npm", [
      "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", tarball, ...peers,
      `typescript@${installed.typescript}`, `@types/node@${installed["@types/node"]}`,
    ], folder);
    const modules = specifiers(manifest);
    const exports = modules.map((module, i) => `export * as module${i} from "${module}";\n`).join("");
    for (const file of ["main.ts", "main.cts"]) writeFileSync(join(folder, file), exports);
    const check = await execute(process.execPath, [
      "node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--target", "es2022", "--module", "nodenext",
      "--lib", "es2023,dom,dom.iterable", "--types", "node", "--pretty", "false", "main.ts", "main.cts",
    ], { cwd: folder }).catch((error) => error);
    // Types of others may have faults of their own.
    expect((check.stdout as string).split("\n").filter((line) => /^(main\.c?ts|node_modules\/@pgagui\/)/.test(line))).toEqual([]);
    const count = `const names = process.argv.slice(1);
      Promise.all(names.map((name) => import(name))).then((imported) => {
        const modules = [...imported, ...names.map((name) => require(name))];
        console.log(Math.min(...modules.map((module) => Object.keys(module).length)));
      });`;
    expect(Number(await run(process.execPath, ["--input-type=commonjs", "--eval", count, "--", ...modules], folder))).toBeGreaterThan(0);
  });
});
