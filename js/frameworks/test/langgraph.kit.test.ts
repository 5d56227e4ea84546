import { randomUUID } from "node:crypto";
import { deltaChannelHistoryTests, specTest } from "@langchain/langgraph-checkpoint-validation";
import { PgaguiSaver } from "@pgagui/langgraph-checkpoint";
import { createDatabase } from "@pgagui/testing";

// The tests that LangGraph has for checkpointers of others. They are written for a runner with globals.
const database = await createDatabase();
afterAll(() => database.drop());

// A scope for each saver, because lists without a thread show all threads.
const initializer = {
  checkpointerName: "@pgagui/langgraph-checkpoint",
  createCheckpointer: () => new PgaguiSaver({ connectionString: database.url, scope: randomUUID() }),
  destroyCheckpointer: (saver: PgaguiSaver) => saver.end(),
};

specTest(initializer);
deltaChannelHistoryTests(initializer);

test("the versions are those of the project", async ({ task }) => {
  const isNewest = task.file.projectName === "newest";
  const { WRITES_IDX_MAP, ...exported } = await import("@langchain/langgraph-checkpoint");
  expect(WRITES_IDX_MAP).toBeDefined();
  expect("writesSortKey" in exported).toBe(isNewest); // since 1.2
});
