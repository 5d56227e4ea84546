import type { Options } from "tsup";

/** How each package is built: ES modules and CommonJS, with types, and with the code that the packages share in them. */
export const library = (entry = ["src/index.ts"]): Options => ({
  entry,
  format: ["esm", "cjs"],
  target: "es2022",
  dts: {
    resolve: [/^@pgagui\/postgres/],
    // The types of that package are bundled from its sources, all of them.
    compilerOptions: { baseUrl: ".", paths: { "@pgagui/postgres": ["../postgres/src/index.ts"] } },
  },
  clean: true,
  noExternal: [/^@pgagui\/postgres/],
});
