import { type Clock, sleep } from "@nodeyard/runtime";
import type { Op, Tree } from "./contract.ts";
import { CommitFailed, TreeError } from "./errors.ts";
import { FenceLost } from "./fence.ts";
import { isInterrupted } from "./interrupted.ts";
import type { HeldLock } from "./lock.ts";

/** How to read, change and write one kind of record. */
export interface RecordKind<R, P> {
  /** Throws for data that is no such record. */
  decode(id: string, data: Uint8Array): R;
  encode(record: R): Uint8Array;
  /** The record with `patch`; times in it are tree time, seconds. */
  change(record: R, patch: P, nowSeconds: number): R;
  /** Whether a record that another client has written still agrees with ours in the fields on which our work is based. */
  sameGround(ours: R, theirs: R): boolean;
}

/** Commits a change together with what it counts for elsewhere, as a limit; undefined: it counts for nothing, and nothing was done. */
type Counted<R> = (before: R, after: R, ops: readonly Op[]) => Promise<unknown> | undefined;

/** Most attempts of one write. More refusals mean that another client works on the record at the same time. */
const MERGE_BUDGET = 3;
/** Most reads to find out what a write with a lost reply did. */
const LOOKS = 20;

/**
 * A record whose lock we hold. Every write is one commit that checks our contender and the record's version. If the version changed under
 * our lock, another client wrote without a fence. When it changed only fields that our work does not depend on, the
 * write is repeated on top of its version; otherwise the record is given up (FenceLost). What a write with a lost reply did is found out by
 * reading, never by repeating it.
 */
export class HeldRecord<R, P> {
  readonly id: string;
  readonly path: string;
  readonly held: HeldLock;
  readonly #kind: RecordKind<R, P>;
  readonly #tree: Tree;
  readonly #clock: Clock;
  readonly #counted: Counted<R> | undefined;
  /** As it stands in the tree under `#version`, as far as this process knows. */
  #record: R;
  #version: number;

  constructor(
    tree: Tree,
    clock: Clock,
    kind: RecordKind<R, P>,
    at: {
      readonly id: string;
      readonly path: string;
      readonly held: HeldLock;
      readonly record: R;
      readonly version: number;
      /** Absent: no change counts for anything else. */
      readonly counted?: Counted<R>;
    },
  ) {
    this.#tree = tree;
    this.#clock = clock;
    this.#kind = kind;
    this.id = at.id;
    this.path = at.path;
    this.held = at.held;
    this.#record = at.record;
    this.#version = at.version;
    this.#counted = at.counted;
  }

  get record(): R {
    return this.#record;
  }

  get version(): number {
    return this.#version;
  }

  /**
   * Writes `patch`, with `around(set)` as the commit (default: check of our contender, then the set). Rejects with FenceLost when lock
   * or record are not ours any more, and with a TreeError for other refusals. Calls of one record must follow each other.
   */
  async write(patch: P, around: (set: Op) => readonly Op[] = (set) => [this.held.fence, set]): Promise<void> {
    for (let merges = 0; ; merges++) {
      const next = this.#kind.change(this.#record, patch, this.#now());
      const data = this.#kind.encode(next);
      const ops = around({ op: "set", path: this.path, data, version: this.#version });
      try {
        await (this.#counted?.(this.#record, next, ops) ?? this.#tree.commit(ops));
        this.#record = next;
        this.#version++;
        return;
      } catch (error) {
        if (!(error instanceof TreeError)) throw error;
        if (isInterrupted(error)) {
          if (await this.#happened(data, ops, error)) {
            this.#record = next;
            return;
          }
        } else if (!isMovedVersion(error) || merges >= MERGE_BUDGET) throw asFenceLost(error, this.path);
        else await this.#rebase(error);
      }
    }
  }

  /** The set of `patch`, for a commit that the write of another record begins and that gives this lock back. Nothing is sent. */
  setting(patch: P): Op {
    const data = this.#kind.encode(this.#kind.change(this.#record, patch, this.#now()));
    return { op: "set", path: this.path, data, version: this.#version };
  }

  /** Writes `patch` and gives the lock back, in one commit. */
  writeAndRelease(patch: P): Promise<void> {
    return this.write(patch, (set) => [set, { op: "delete", path: this.held.contender }]);
  }

  /**
   * Writes nothing, and rejects with FenceLost unless lock and record are as we know them: for an effect that no write of ours comes
   * before.
   */
  async confirm(): Promise<void> {
    try {
      await this.#tree.commit([this.held.fence, { op: "check", path: this.path, version: this.#version }]);
    } catch (error) {
      throw asFenceLost(error, this.path);
    }
  }

  /** Tree time, seconds. */
  #now(): number {
    return (this.#clock.now() + this.#tree.clockOffset()) / 1000;
  }

  /**
   * Decides after a lost reply whether the commit happened: it did if the record has our bytes. Another process may have written the same
   * bytes before we got the lock; a commit that deletes our contender is therefore checked by the contender, too.
   */
  async #happened(data: Uint8Array, ops: readonly Op[], lost: TreeError): Promise<boolean> {
    const { contender } = this.held;
    const unlocks = ops.some((op) => op.op === "delete" && op.path === contender);
    return this.#look(lost, async () => {
      // The connection may be to another server now, which is behind.
      await this.#tree.sync(this.path);
      const found = await this.#tree.get(this.path);
      const left = unlocks && (await this.#tree.stat(contender)) !== undefined;
      if (!left && sameBytes(found.data, data) && found.stat.version > this.#version) {
        this.#version = found.stat.version;
        return true;
      }
      if (found.stat.version !== this.#version) this.#adopt(found.data, found.stat.version);
      return false;
    });
  }

  /** Another process wrote without a fence: reads its record, from the server that refused our write, since others may be behind. */
  async #rebase(moved: TreeError): Promise<void> {
    await this.#look(moved, async (isFirst) => {
      if (!isFirst) await this.#tree.sync(this.path);
      const found = await this.#tree.get(this.path);
      this.#adopt(found.data, found.stat.version);
    });
  }

  /** Reads, and repeats the read after a broken connection as long as the session that holds the lock lives. */
  async #look<T>(cause: TreeError, read: (isFirst: boolean) => Promise<T>): Promise<T> {
    for (let look = 0; look < LOOKS; look++) {
      if (this.#tree.session().epoch !== this.held.epoch)
        throw new FenceLost(`session of ${this.held.contender}`, cause);
      try {
        return await read(look === 0);
      } catch (error) {
        if (!isInterrupted(error)) throw asFenceLost(error, this.path);
        await sleep(this.#clock, Math.min(5_000, 100 * 2 ** look));
      }
    }
    throw new FenceLost(`${this.path} could not be read`, cause);
  }

  /** Takes over what another client wrote. Throws FenceLost when that changed what our work is based on. */
  #adopt(data: Uint8Array, version: number): void {
    let theirs: R;
    try {
      theirs = this.#kind.decode(this.id, data);
    } catch (error) {
      throw new FenceLost(`${this.path} was overwritten with a record that cannot be read`, error);
    }
    if (!this.#kind.sameGround(this.#record, theirs))
      throw new FenceLost(`${this.path} was changed under our lock`);
    this.#record = theirs;
    this.#version = version;
  }
}

function isMovedVersion(error: TreeError): boolean {
  return (
    error.code === "tree.bad_version" ||
    (error instanceof CommitFailed && error.reason.code === "tree.bad_version")
  );
}

/** Maps a refused commit under a lock to FenceLost, because lock or record are gone; other errors are returned unchanged. */
function asFenceLost(error: unknown, path: string): unknown {
  if (error instanceof CommitFailed) return new FenceLost(`${path}: ${error.reason.message}`, error);
  if (error instanceof TreeError && error.code === "tree.no_node")
    return new FenceLost(`${path} is gone`, error);
  return error;
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
