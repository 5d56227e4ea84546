// Modules that import each other in a circle work or fail by the order in which they are loaded.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const packages = fileURLToPath(new URL("../..", import.meta.url));

test("no module of a package imports itself in a circle", () => {
  const imports = new Map<string, string[]>();
  const files = readdirSync(packages).filter((name) => name !== "node_modules" && existsSync(join(packages, name, "src")))
    .flatMap((name) => readdirSync(join(packages, name, "src")).map((file) => join(name, "src", file)));
  for (const module of files) {
    const text = readFileSync(join(packages, module), "utf8");
    imports.set(module, [...text.matchAll(/\bfrom "(\.[^"]+)"/g)].map((found) => join(dirname(module), found[1]!)));
  }
  expect(imports.get("postgres/src/index.ts")).toContain("postgres/src/retry.ts");

  const circles: string[] = [];
  const done = new Set<string>();
  const visit = (module: string, path: string[]): void => {
    if (path.includes(module)) {
      circles.push([...path.slice(path.indexOf(module)), module].join(" > "));
    } else if (!done.has(module)) {
      imports.get(module)?.forEach((imported) => visit(imported, [...path, module]));
      done.add(module);
    }
  };
  [...imports.keys()].forEach((module) => visit(module, []));
  expect(circles).toEqual([]);
});
