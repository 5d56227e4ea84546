import { defineConfig } from "vitest/config";

// Frameworks that report what their users do are kept from it.
process.env.COPILOTKIT_TELEMETRY_DISABLED = "true";
process.env.SCARF_ANALYTICS = "false";
process.env.DO_NOT_TRACK = "1";

export default defineConfig({
  resolve: { dedupe: ["vitest"] }, // @pgagui/testing is outside of this folder
  test: {
    include: ["test/**/*.test.ts"],
    globals: true, // LangGraph's kit needs them
    globalSetup: "../testing/src/setup.ts",
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
