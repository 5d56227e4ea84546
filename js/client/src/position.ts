// The position of a client in a thread, which survives reloads of a page.

/** Where a client is in a thread. */
export interface Position {
  threadId: string;
  /** The run that it follows, or followed last. */
  runId?: string | undefined;
  /** The id of the last frame that it received of that run. */
  lastEventId?: string | undefined;
}

/** Where positions are kept. `sessionStorage` and `localStorage` are such storages. */
export type PositionStorage = Pick<Storage, "getItem" | "setItem">;

/** Keeps one position under a key. If the storage refuses it, because it is full or forbidden, a reload loses it. */
export class Positions {
  readonly #storage: PositionStorage | undefined;
  readonly #key: string;

  constructor(storage: PositionStorage | undefined, name: string) {
    this.#storage = storage ?? tabStorage();
    this.#key = `pgagui:${name}`;
  }

  read(): Position | undefined {
    try {
      const value: unknown = JSON.parse(this.#storage?.getItem(this.#key) ?? "null");
      return isPosition(value) ? value : undefined;
    } catch {
      return undefined;
    }
  }

  write(position: Position): void {
    try {
      this.#storage?.setItem(this.#key, JSON.stringify(position));
    } catch {
      // The agent has it in memory.
    }
  }
}

function isPosition(value: unknown): value is Position {
  return typeof value === "object" && value !== null && "threadId" in value && typeof value.threadId === "string";
}

/** The storage of the browser's tab. Reading the property throws where the user forbids it. */
function tabStorage(): PositionStorage | undefined {
  try {
    return globalThis.sessionStorage;
  } catch {
    return undefined;
  }
}
