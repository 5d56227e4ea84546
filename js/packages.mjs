// Packs the packages as "npm pack" does in a checkout, into FOLDER, and checks the tarballs: what is in them (packages.txt),
// how they load, and what publint and arethetypeswrong find.
//
//     node packages.mjs FOLDER            prints what is wrong, and fails
//     node packages.mjs FOLDER --update   writes packages.txt

import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const [folder, option] = process.argv.slice(2);
const target = resolve(folder);
const list = join(here, "packages.txt");
const read = (path) => JSON.parse(readFileSync(path, "utf8"));
const names = read(join(here, "package.json")).workspaces.filter((name) => !read(join(here, name, "package.json")).private);

const problems = [];
const temporary = mkdtempSync(join(tmpdir(), "pgagui-packages-"));
try {
  await notBuilt();
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  const files = (await Promise.all(names.map(check))).flat();
  if (option === "--update") writeFileSync(list, files.join("\n") + "\n");
} finally {
  rmSync(temporary, { recursive: true });
}
if (problems.length > 0) {
  console.error(problems.join("\n"));
  process.exit(1);
}
console.log(`packed and checked: ${names.join(", ")}`);

/** Packs and checks a package. Returns its files, each as PACKAGE/PATH. */
async function check(name) {
  // Nothing remains of earlier builds.
  for (const built of ["dist", "LICENSE"]) rmSync(join(here, name, built), { recursive: true, force: true });
  const packed = await run("npm", ["pack", "--json", "--foreground-scripts=false", "--pack-destination", target], join(here, name));
  if (packed.code !== 0) {
    problems.push(`${name}: npm pack fails:\n${packed.output}`);
    return [];
  }
  const tarball = join(target, JSON.parse(packed.stdout.slice(packed.stdout.indexOf("[")))[0].filename);
  const installed = join(temporary, name, "node_modules/@pgagui", name);
  mkdirSync(installed, { recursive: true });
  await run("tar", ["xzf", tarball, "--strip-components=1", "-C", installed], temporary);
  const files = readdirSync(installed, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(name, (entry.parentPath ?? entry.path).slice(installed.length), entry.name))
    .sort();
  if (option !== "--update") {
    const wanted = readFileSync(list, "utf8").trim().split("\n").filter((path) => path.startsWith(`${name}/`));
    const missing = wanted.filter((path) => !files.includes(path));
    const added = files.filter((path) => !wanted.includes(path));
    problems.push(...missing.map((path) => `js/${path} is not packed`), ...added.map((path) => `js/${path} is packed, but is not in js/packages.txt`));
    if (missing.length > 0) return files;
  }

  const manifest = read(join(installed, "package.json"));
  if (manifest.license !== "Apache-2.0") problems.push(`${name}: the licence is ${manifest.license}, not Apache-2.0`);
  if (files.includes(`${name}/LICENSE`) && !readFileSync(join(installed, "LICENSE")).equals(readFileSync(join(here, "../LICENSE")))) {
    problems.push(`${name}/LICENSE differs from that of the repository`);
  }
  // The private packages are built in.
  for (const path of files.filter((path) => path.startsWith(`${name}/dist/`))) {
    const found = /(?:from |require\()["'](@pgagui\/(?:postgres|testing))/.exec(readFileSync(join(installed, "..", path), "utf8"));
    if (found) problems.push(`${path} imports ${found[1]}, which is not published`);
  }
  await Promise.all([
    load(name, manifest),
    lint(name, "publint", "publint/src/cli.js", ["run", tarball, "--strict"]),
    // Without "exports" a path below the package does not resolve: "node10" resolves the package itself alone.
    lint(name, "arethetypeswrong", "@arethetypeswrong/cli/dist/index.js", [
      tarball, "--no-definitely-typed", "--no-color", "--no-emoji", "--format", "ascii",
      ...(Object.keys(manifest.exports).length > 1 ? ["--profile", "node16"] : []),
    ]),
  ]);
  return files;
}

/** Loads each entry of a package with import and with require, beside what its manifest names and nothing else. */
async function load(name, manifest) {
  const project = join(temporary, name);
  for (const dependency of Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })) {
    const source = join(here, "node_modules", dependency);
    const link = join(project, "node_modules", dependency);
    mkdirSync(dirname(link), { recursive: true });
    if (existsSync(source)) symlinkSync(source, link);
  }
  const optional = Object.keys(manifest.peerDependenciesMeta ?? {});
  for (const entry of Object.keys(manifest.exports)) {
    const specifier = manifest.name + entry.slice(1);
    const print = "console.log(Object.keys(loaded).filter((key) => !/^(default|module.exports|__esModule)$/.test(key)).sort().join())";
    const [imported, required] = await Promise.all([
      run(process.execPath, ["--input-type=module", "--eval", `const loaded = await import("${specifier}"); ${print}`], project),
      run(process.execPath, ["--input-type=commonjs", "--eval", `const loaded = require("${specifier}"); ${print}`], project),
    ]);
    // The workspace does not install the frameworks; make test-frameworks loads these entries.
    const missing = ({ code, output }) => code !== 0 && optional.some((peer) => new RegExp(`Cannot find (module|package) '${peer}'`).test(output));
    if (missing(imported) && missing(required)) continue;
    for (const [how, { code, output }] of [["import", imported], ["require", required]]) {
      if (code !== 0) problems.push(`${how} of ${specifier} fails:\n${output}`);
      else if (output.trim() === "") problems.push(`${how} of ${specifier} has no names`);
    }
    if (imported.code === 0 && required.code === 0 && imported.output !== required.output) {
      problems.push(`${specifier}: import has the names ${imported.output.trim()}; require has ${required.output.trim()}`);
    }
  }
}

async function lint(name, tool, script, args) {
  const { code, output } = await run(process.execPath, [join(here, "node_modules", script), ...args], here);
  if (code !== 0) problems.push(`${name}: ${tool} finds:\n${output}`);
}

/** What npm packs before "npm ci" has no code: it must fail, and say why. */
async function notBuilt() {
  const checkout = join(temporary, "checkout");
  for (const path of [".npmrc", "package.json", "prepack.mjs", ...names.flatMap((name) => [`${name}/package.json`, `${name}/README.md`])]) {
    if (existsSync(join(here, path))) cpSync(join(here, path), join(checkout, path));
  }
  const { code, output } = await run("npm", ["pack", "--dry-run"], join(checkout, names[0]));
  if (code === 0) problems.push("npm pack succeeds in a checkout where nothing is built");
  else if (!/^\S+ cannot be built: tsup is not installed \(run: npm ci/m.test(output)) problems.push(`npm pack fails without saying why:\n${output}`);
}

function run(program, args, cwd) {
  return new Promise((done) => {
    execFile(program, args, { cwd, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      done({ code: error ? (error.code ?? 1) : 0, stdout, output: stdout + stderr });
    });
  });
}
