// Packs the packages and unpacks them into node_modules, so that the tests here use what users install.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "pgagui-pack-"));
try {
  for (const name of ["client", "copilotkit-runner", "tanstack-ai", "langgraph-checkpoint"]) {
    const output = execFileSync("npm", ["pack", "--json", "--ignore-scripts=false", "--foreground-scripts=false", "--pack-destination", folder], {
      cwd: join(here, "..", name), encoding: "utf8", stdio: ["ignore", "pipe", "inherit"],
    });
    const { filename } = JSON.parse(output.slice(output.indexOf("[")))[0];
    const target = join(here, "node_modules", "@pgagui", name);
    rmSync(target, { recursive: true, force: true });
    mkdirSync(target, { recursive: true });
    execFileSync("tar", ["xzf", join(folder, filename), "--strip-components=1", "-C", target]);
  }
} finally {
  rmSync(folder, { recursive: true });
}
