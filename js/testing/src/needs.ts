/**
 * Whether to skip a test because something that it needs is missing on this machine. Throws if the variable
 * PGAGUI_TEST_REQUIRE lists it, as for the tests in Go (internal/testneeds).
 */
export function isMissing(need: "pgbouncer" | "chromium", isThere: boolean): boolean {
  if (!isThere && process.env.PGAGUI_TEST_REQUIRE?.split(",").includes(need)) {
    throw new Error(`PGAGUI_TEST_REQUIRE lists ${need}, which is not installed`);
  }
  return !isThere;
}
