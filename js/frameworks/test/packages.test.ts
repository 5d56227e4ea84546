import { expect, test } from "vitest";
import { database } from "@pgagui/testing";

test("a database has the schema", async () => {
  expect(await database()).toContain("pgagui_js_");
});
