// Packs packages and unpacks them into node_modules, as users install them: all into that of this
// folder, or PACKAGE… into that of FOLDER with "node pack.mjs FOLDER PACKAGE…".

import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const execute = promisify(execFile);
const here = fileURLToPath(new URL(".", import.meta.url));
const [into = here, ...names] = process.argv.slice(2);
const packages = names.length > 0 ? names : ["client", "copilotkit-runner", "tanstack-ai", "langgraph-checkpoint"];
const folder = mkdtempSync(join(tmpdir(), "pgagui-pack-"));
try {
  await Promise.all(packages.map(async (name) => {
    // The script that runs this passes on that this folder ignores scripts; prepack builds the package.
    const { stdout: output } = await execute("npm", ["pack", "--json", "--ignore-scripts=false", "--foreground-scripts=false", "--pack-destination", folder], {
      cwd: join(here, "..", name),
    });
    const { filename } = JSON.parse(output.slice(output.indexOf("[")))[0];
    const target = join(into, "node_modules", "@pgagui", name);
    rmSync(target, { recursive: true, force: true });
    mkdirSync(target, { recursive: true });
    await execute("tar", ["xzf", join(folder, filename), "--strip-components=1", "-C", target]);
  }));
} finally {
  rmSync(folder, { recursive: true });
}
