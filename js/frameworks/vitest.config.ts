import { defineConfig } from "vitest/config";

// Frameworks that report what their users do are kept from it.
process.env.COPILOTKIT_TELEMETRY_DISABLED = "true";
process.env.SCARF_ANALYTICS = "false";
process.env.DO_NOT_TRACK = "1";

const dedupe = ["vitest"]; // @pgagui/testing is outside of this folder

export default defineConfig({
  test: {
    // The stock client of AG-UI also reads a connection that has broken, and does not handle the error.
    onUnhandledError: (error) => !(error.message === "terminated" && (error.cause as { code?: string } | undefined)?.code === "UND_ERR_SOCKET"),
    globals: true, // LangGraph's kit needs them
    globalSetup: "../testing/src/setup.ts",
    maxWorkers: 3, // tests wait more than they work
    testTimeout: 120_000,
    hookTimeout: 120_000,
    projects: [
      { extends: true, resolve: { dedupe }, test: { name: "newest", include: ["test/**/*.test.ts"] } },
      {
        extends: true,
        // Everything that imports it has to be in the hands of vitest, not of Node.
        resolve: {
          dedupe,
          alias: [
            { find: /^@langchain\/langgraph-checkpoint$/, replacement: "@langchain/langgraph-checkpoint-1.1.5" },
            { find: /^pg$/, replacement: "pg-8.12" },
          ],
        },
        test: { name: "oldest", include: ["test/langgraph.kit.test.ts"], server: { deps: { inline: [/langgraph-checkpoint/] } } },
      },
    ],
  },
});
