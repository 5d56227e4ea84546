import { defineConfig } from "vitest/config";

// Frameworks that report what their users do are kept from it.
process.env.COPILOTKIT_TELEMETRY_DISABLED = "true";
process.env.SCARF_ANALYTICS = "false";
process.env.DO_NOT_TRACK = "1";

export default defineConfig({
  resolve: { dedupe: ["vitest"] }, // @pgagui/testing is outside of this folder
  test: {
    // The stock client of AG-UI reads a connection that broke once more, and leaves the error to nobody.
    onUnhandledError: (error) => !(error.message === "terminated" && (error.cause as { code?: string } | undefined)?.code === "UND_ERR_SOCKET"),
    include: ["test/**/*.test.ts"],
    globals: true, // LangGraph's kit needs them
    globalSetup: "../testing/src/setup.ts",
    maxWorkers: 3, // tests wait more than they work
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
