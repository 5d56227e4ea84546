import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["*/test/**/*.test.ts"],
    exclude: ["**/node_modules/**", "frameworks/**"],
    globalSetup: "testing/src/setup.ts",
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
