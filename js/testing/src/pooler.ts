import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync, chownSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";

const program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"].find((path) => existsSync(path));

/** Whether PgBouncer is installed. */
export const hasPooler = program !== undefined;

/** Starts PgBouncer in transaction mode in front of a database, for the current test, and returns the address through it. */
export async function pooler(databaseURL: string): Promise<string> {
  const url = new URL(databaseURL);
  if (!program) throw new Error("PgBouncer is not installed (package pgbouncer)");
  const folder = mkdtempSync(join(tmpdir(), "pgagui-pooler-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const port = await freePort();
  // Fewer connections than the tests have clients, so that clients take turns on them.
  writeFileSync(join(folder, "pgbouncer.ini"), `[databases]
* = host=${url.hostname} port=${url.port || 5432}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${join(folder, "users.txt")}
pool_mode = transaction
default_pool_size = 2
server_login_retry = 0.1
`);
  writeFileSync(join(folder, "users.txt"), `"${decodeURIComponent(url.username)}" "${decodeURIComponent(url.password)}"\n`);
  const account = unprivileged();
  if (account) {
    for (const path of ["", "pgbouncer.ini", "users.txt"]) chownSync(join(folder, path), account.uid, account.gid);
  }
  const child = spawn(program, [join(folder, "pgbouncer.ini")], { ...account, stdio: ["ignore", "ignore", "pipe"] });
  const ended = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stderr })) {
    lines.push(line);
    if (line.includes("process up")) {
      child.stderr.resume(); // a full pipe would stop the process
      url.host = `127.0.0.1:${port}`;
      return url.href;
    }
  }
  throw new Error(`PgBouncer ended: ${lines.join("\n")}`);
}

/** The account for programs that do not run as root, if this process does. */
function unprivileged(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string) => Number(execFileSync("id", [flag, "nobody"], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
