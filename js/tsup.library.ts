import type { Options } from "tsup";

/** How each package is built: ES modules with types, with the code that the packages share in them. */
export const library = (entry = ["src/index.ts"]): Options => ({
  entry,
  format: "esm",
  target: "es2022",
  dts: { resolve: [/^@pgagui\/postgres/] },
  clean: true,
  noExternal: [/^@pgagui\/postgres/],
});
