import { fileURLToPath } from "node:url";

/** The command line, which make build builds. */
export const binary = process.env.PGAGUI_BIN ?? fileURLToPath(new URL("../../../bin/pgagui", import.meta.url));

/** The address of the PostgreSQL server for tests. */
export function serverURL(): string {
  const url = process.env.PGAGUI_TEST_DATABASE_URL;
  if (!url) {
    throw new Error("PGAGUI_TEST_DATABASE_URL is not set (run the tests with make test or make test-js, which start a server)");
  }
  return url;
}

/** The address of a database of that server. */
export function at(database: string): string {
  const url = new URL(serverURL());
  url.pathname = `/${database}`;
  return url.href;
}
