// Which node of a cluster has which thread, as far as a process knows. A node that refuses a thread says who has it, so nothing
// here need be up to date.

import { createHash } from "node:crypto";
import type pg from "pg";
import { codeOf } from "./errors.ts";
import { moved } from "./states.ts";
import { pause } from "./retry.ts";

/** A database of a cluster. */
export interface ClusterNode {
  /** The name that the database has in the cluster. */
  name: string;
  /** A pool of the caller, who also ends it. Without one, `connectionString` is needed. */
  pool?: pg.Pool | undefined;
  /** The address of the database, for a pool that `close` ends. */
  connectionString?: string | undefined;
}

export interface Thread {
  readonly scope: string;
  readonly threadId: string;
}

/** The answer of agui.cluster_map. */
export interface ClusterMap {
  node: string | null;
  buckets: { first: number; last: number; node: string; epoch: number }[];
}

/** Reads the map of the database of a pool. */
type ReadMap = (pool: pg.Pool) => Promise<ClusterMap>;

interface Member {
  readonly pool: pg.Pool;
  /** Fulfilled when the database was seen to be this node: another one might take threads, and no client would find them again. */
  isIntroduced?: Promise<void> | undefined;
}

/** The threads, and the scopes, that a process remembers beside their buckets. */
const maxThreads = 10_000;
const maxScopes = 10_000;
/** Pauses between the attempts of a call for a thread that is being moved, and how long it is repeated, in milliseconds. */
const shortestPause = 5;
const longestPause = 250;
export const movePatience = 10_000;

/** The bucket of a thread, as agui.bucket computes it. A node says if the scope is pinned to another one. */
export function bucketOf({ scope, threadId }: Thread): number {
  return createHash("sha256").update(scope).update("\0").update(threadId).digest().readUInt16BE() >> 6;
}

export class Cluster {
  readonly #members: Map<string, Member>;
  readonly #places: { node: string; epoch: number }[] = []; // by bucket
  readonly #threads = new Map<string, string>(); // the nodes of threads that are elsewhere than their bucket, least recently used first
  readonly #pinned = new Map<string, number>(); // the buckets of scopes whose threads are all in one
  readonly #buckets = new WeakMap<Thread, number>(); // of followers and runs, which are looked up often

  constructor(nodes: { name: string; pool: pg.Pool }[]) {
    this.#members = new Map(nodes.map(({ name, pool }) => [name, { pool }]));
    if (nodes.length === 0 || this.#members.size < nodes.length) {
      throw new TypeError("pgagui: nodes is empty or has a name twice (expected one item for each database of the cluster)");
    }
  }

  get names(): string[] {
    return [...this.#members.keys()];
  }

  /** Makes sure that there is a map: that of the first node that answers. */
  async ready(read: ReadMap): Promise<void> {
    if (this.#places.length > 0) {
      return;
    }
    const introductions = [...this.#members].map(([name, member]) => this.#introduce(name, member, read));
    await Promise.any(introductions).catch(({ errors }: AggregateError) => {
      throw errors[0];
    });
  }

  /** The node that has a thread; undefined before `ready`. */
  nodeOf(thread: Thread): string | undefined {
    const key = keyOf(thread);
    const node = this.#threads.get(key);
    if (node !== undefined) {
      this.#remember(key, node);
      return node;
    }
    return this.#places[this.#pinned.get(thread.scope) ?? this.#hashOf(thread)]?.node;
  }

  #hashOf(thread: Thread): number {
    const bucket = this.#buckets.get(thread) ?? bucketOf(thread);
    this.#buckets.set(thread, bucket);
    return bucket;
  }

  /** The pool of a node. Fails if the caller gave none, or that of another database. */
  async poolOf(name: string, read: ReadMap): Promise<pg.Pool> {
    const member = this.#members.get(name);
    if (!member) {
      throw new Error(`pgagui: the cluster has a node ${JSON.stringify(name)}, which nodes does not have (add its name with its pool or connectionString)`);
    }
    await this.#introduce(name, member, read);
    return member.pool;
  }

  #introduce(name: string, member: Member, read: ReadMap): Promise<void> {
    member.isIntroduced ??= read(member.pool).then((map) => {
      if (map.node !== name) {
        const actual = map.node === null ? "is no node of a cluster" : `is the node ${JSON.stringify(map.node)}`;
        throw new Error(`pgagui: the database that nodes has for ${JSON.stringify(name)} ${actual} (correct nodes, or see "pgagui cluster status")`);
      }
      for (const { first, last, node, epoch } of map.buckets) {
        for (let bucket = first; bucket <= last; bucket++) {
          this.#place(bucket, node, epoch);
        }
      }
    }).catch((error: unknown) => {
      member.isIntroduced = undefined;
      throw error;
    });
    return member.isIntroduced;
  }

  /** Learns from an error where threads are. Returns whether it says so. */
  learn(error: unknown): boolean {
    const { detail } = (error ?? {}) as { detail?: unknown };
    if (codeOf(error) !== moved || typeof detail !== "string") {
      return false;
    }
    for (const place of JSON.parse(detail) as (Thread & { node: string; bucket: number; epoch: number; ofThread: boolean })[]) {
      if (place.ofThread) {
        this.#remember(keyOf(place), place.node);
      } else {
        this.#threads.delete(keyOf(place));
        this.#pin(place);
        this.#place(place.bucket, place.node, place.epoch);
      }
    }
    return true;
  }

  /** Makes a call, and repeats it while it says that threads are elsewhere. For the time of a move two nodes name each other. */
  async settle<Result>(call: () => Promise<Result>, patience = movePatience): Promise<Result> {
    const begin = Date.now();
    for (let rest = 0; ; rest = Math.min(longestPause, Math.max(shortestPause, 2 * rest))) {
      try {
        return await call();
      } catch (error) {
        if (!this.learn(error) || Date.now() - begin > patience) {
          throw error;
        }
      }
      if (rest > 0) {
        await pause(rest);
      }
    }
  }

  /** Notes the bucket of the threads of a scope, as a node says it of one. */
  #pin({ scope, threadId, bucket }: Thread & { bucket: number }): void {
    this.#pinned.delete(scope);
    if (bucket !== bucketOf({ scope, threadId })) {
      this.#pinned.set(scope, bucket);
      if (this.#pinned.size > maxScopes) {
        this.#pinned.delete(this.#pinned.keys().next().value!);
      }
    }
  }

  #place(bucket: number, node: string, epoch: number): void {
    if (epoch > (this.#places[bucket]?.epoch ?? -1)) {
      this.#places[bucket] = { node, epoch };
    }
  }

  #remember(key: string, node: string): void {
    this.#threads.delete(key);
    this.#threads.set(key, node);
    if (this.#threads.size > maxThreads) {
      this.#threads.delete(this.#threads.keys().next().value!);
    }
  }
}

const keyOf = ({ scope, threadId }: Thread) => `${scope}\0${threadId}`;

/** A page of a list, from its greatest item down. Each item has a cursor, from which the list goes on behind it. */
export interface Page<Item> {
  items: Item[];
  /** From where the list goes on; null: there is no more. */
  next: string | null;
}

/**
 * The page of a list over all nodes, from the page of each. Drops doubles, as a thread that was moved is on two nodes for some
 * seconds. `placeOf` returns from a cursor what orders the list.
 */
export function mergePages<Item extends { cursor: string }>(
  pages: Page<Item>[], limit: number, { placeOf, idOf }: { placeOf: (cursor: string) => string; idOf: (item: Item) => string },
): Page<Item> {
  if (pages.length === 1) {
    return pages[0]!;
  }
  const byPlace = (a: string, b: string) => Buffer.compare(Buffer.from(placeOf(b)), Buffer.from(placeOf(a)));
  const all = pages.flatMap(({ items }) => items).sort((a, b) => byPlace(a.cursor, b.cursor));
  const unique = [...new Map(all.toReversed().map((item) => [idOf(item), item])).values()].toReversed();
  // Below this place, a node has items that are not here.
  const [horizon = null] = pages.flatMap(({ next }) => next ?? []).sort(byPlace);
  const known = horizon === null ? unique : unique.filter(({ cursor }) => byPlace(cursor, horizon) <= 0);
  const items = known.slice(0, limit);
  return { items, next: items.length < known.length ? items.at(-1)!.cursor : horizon };
}
