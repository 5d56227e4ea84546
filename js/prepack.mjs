// Builds the package in the current folder before npm packs or publishes it: the code, and a copy of the licence.

import { spawnSync } from "node:child_process";
import { copyFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

let build;
try {
  build = fileURLToPath(import.meta.resolve("tsup/dist/cli-default.js"));
} catch {
  console.error(`${process.env.npm_package_name} cannot be built: tsup is not installed (run: npm ci --prefix js, in the checkout)`);
  process.exit(1);
}
copyFileSync(new URL("../LICENSE", import.meta.url), "LICENSE");
process.exit(spawnSync(process.execPath, [build], { stdio: "inherit" }).status ?? 1);
