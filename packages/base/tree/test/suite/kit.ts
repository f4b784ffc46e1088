import { type Clock, sleep } from "@nodeyard/runtime";
import { patient } from "../../../../../testing/patience.ts";
import type { Change, FeedOptions, Stat, Tree } from "../../src/contract.ts";

/** A store under test. */
export interface Target {
  readonly clock: Clock;
  /** Opens a further session with the same tree, as another process would. The suite closes it. */
  connect(): Promise<Tree>;
  /** Breaks the connection of a session and resolves when the session has noticed. It reconnects by itself. */
  disconnect?(tree: Tree): Promise<void> | void;
  /** Ends a session at the store. Absent, like `disconnect`, when the store cannot lose a session. */
  expire?(tree: Tree): Promise<void> | void;
  stop(): Promise<void>;
}

/** Arguments of every part of the suite. */
export interface Context {
  /** Defines a test with a session and an empty path of its own in the tree. */
  check(name: string, body: (place: Place) => Promise<void>): void;
  has(feature: "disconnect" | "expire"): boolean;
}

export interface Place {
  readonly target: Target;
  readonly tree: Tree;
  /** Path of an empty znode that no other test uses. */
  readonly root: string;
  /** Opens another session. */
  other(): Promise<Tree>;
  /** Waits until `holds` returns true; fails with `what` after 45 s. */
  until(what: string, holds: () => boolean | Promise<boolean>): Promise<void>;
}

const PATIENCE_MS = patient(45_000);
const LOOK_AGAIN_MS = 5;

export async function until(
  clock: Clock,
  what: string,
  holds: () => boolean | Promise<boolean>,
): Promise<void> {
  const limit = clock.monotonic() + PATIENCE_MS;
  while (!(await holds())) {
    if (clock.monotonic() > limit) throw new Error(`still not so after ${PATIENCE_MS} ms: ${what}`);
    await sleep(clock, LOOK_AGAIN_MS);
  }
}

export function bytes(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}

export function text(value: Uint8Array | undefined): string {
  return new TextDecoder().decode(value);
}

/** Records a feed: its reports, and the state of the subtree that follows from them. */
export class Follower {
  readonly changes: Change[] = [];
  /** Data by path; "" for a path whose data is not reported. */
  readonly picture = new Map<string, string>();
  readonly stats = new Map<string, Stat>();
  /** Violations of the contract: versions that went back, the removal of a path that was never reported. */
  readonly faults: string[] = [];
  /** Zxid of the last report for each path, kept when the path is removed. */
  readonly #last = new Map<string, bigint>();

  options(more: Partial<FeedOptions> = {}): FeedOptions {
    return { interest: () => "data", ...more, onChange: (change) => this.take(change) };
  }

  take(change: Change): void {
    this.changes.push(change);
    if (change.type === "put") this.#put(change);
    else if (change.type === "remove") {
      if (!this.picture.delete(change.path)) this.faults.push(`${change.path} removed twice`);
      this.stats.delete(change.path);
    }
  }

  #put({ path, data, stat }: Extract<Change, { type: "put" }>): void {
    this.picture.set(path, data === undefined ? "" : text(data));
    if (stat === undefined) return;
    const before = this.stats.get(path);
    if (before !== undefined && before.czxid === stat.czxid && stat.version <= before.version)
      this.faults.push(`${path} went from version ${before.version} to ${stat.version}`);
    if (stat.mzxid < (this.#last.get(path) ?? -1n)) this.faults.push(`${path} went back in time`);
    this.#last.set(path, stat.mzxid);
    this.stats.set(path, stat);
  }

  /** The reports since the beginning, or since `from`, as short strings. */
  said(from = 0): string[] {
    return this.changes.slice(from).map((change) => {
      if (change.type === "put") return `put ${change.path}=${text(change.data)}`;
      return change.type === "remove" ? `remove ${change.path}` : change.type;
    });
  }
}
