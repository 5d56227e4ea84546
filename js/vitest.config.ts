import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["*/test/**/*.test.ts"],
    exclude: ["**/node_modules/**", "frameworks/**"],
    globalSetup: "testing/src/setup.ts",
    maxWorkers: 4, // tests wait more than they work
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
