import { codeOf, Database } from "@pgagui/postgres";
import type { DatabaseOptions } from "./runner.ts";

export function threadHooks(options: DatabaseOptions) { void codeOf; void Database; void options; return {}; }
