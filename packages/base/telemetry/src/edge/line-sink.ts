import { close, fstatSync, open, openSync, stat, write, writeSync } from "node:fs";
import { promisify } from "node:util";

/** Bytes of lines that wait for the disk or for the reader of a pipe, at most; later lines are dropped and counted. */
const MAX_WAITING = 4 << 20;
/** For how long lines are gathered, milliseconds: shorter than a person notices, and much longer than a turn of the event loop. */
const GATHER_MS = 50;
/** Before a pipe that takes no more is tried again, milliseconds. */
const AGAIN_MS = 100;
/** How often at the end of the process, at most. */
const LAST_TRIES = 20;
/** A process that ends waits this long for a disk that is slow, milliseconds. */
const FLUSH_MS = 2_000;
/** Of a file that is made: the group may read it. */
const MODE = 0o640;

const calls = { open: promisify(open), stat: promisify(stat), write: promisify(write) };
const nap = new Int32Array(new SharedArrayBuffer(4));
const NOTHING = Buffer.alloc(0);
/** Room for lines at the start, bytes; it grows with them. */
const ROOM = 64 << 10;
/** Bytes of UTF-8 that one unit of a string becomes, at most. */
const UNIT_BYTES = 3;

/**
 * Appends lines to a descriptor or file without making the caller wait for the disk. A file that was moved away, as logrotate does, is
 * created again before the next line. Lines that could not be written are kept and tried again with the next one. `flush` writes all of
 * them at an orderly end. At any other exit they are written synchronously, and a batch that was being written may appear twice.
 * `kill -9` loses the lines of the last moment.
 */
export class LineSink {
  /** Called for each line that is dropped, at once: who looks at a figure need not wait until there is room. */
  onDropped: () => void = () => {};
  /** Undefined for a descriptor, which is never followed. */
  readonly #file: string | undefined;
  readonly #onRoom: (dropped: number) => void;
  #descriptor: number;
  /** Lines as bytes: as strings they would outlive several collections of the heap, at a cost for each. */
  #waiting = Buffer.allocUnsafeSlow(ROOM);
  /** Bytes of lines in `#waiting`. */
  #size = 0;
  /** Takes the place of `#waiting` while that is written. */
  #spare = Buffer.allocUnsafeSlow(ROOM);
  /** The batch that is being written, or was written in part. */
  #batch: Uint8Array = NOTHING;
  /** Whether `#writeAll` runs: one write at a time keeps the lines in order. */
  #busy = false;
  /** Ends the gathering of lines; absent: none is under way. */
  #gathered: (() => void) | undefined;
  /** Resolves when that has nothing left, or failed. */
  #writing: Promise<void> = Promise.resolve();
  /** Lines dropped since the last report of `onRoom`. */
  #dropped = 0;

  /** `onRoom` is called with the number of lines that were dropped, when there is room again. Throws what opening the file throws. */
  constructor(
    to: { readonly file: string } | { readonly descriptor: number },
    onRoom: (dropped: number) => void,
  ) {
    this.#file = "file" in to ? to.file : undefined;
    this.#descriptor = "file" in to ? openSync(to.file, "a", MODE) : to.descriptor;
    this.#onRoom = onRoom;
    process.on("exit", () => this.#writeLast());
  }

  /** Takes a line, which ends with a newline. Never throws; the line is copied before it returns. */
  write(line: string): void {
    if (this.#size + this.#batch.length + line.length > MAX_WAITING) {
      this.#dropped++;
      this.onDropped();
    } else {
      if (this.#size + UNIT_BYTES * line.length > this.#waiting.length)
        this.#makeRoom(Buffer.byteLength(line));
      this.#size += this.#waiting.write(line, this.#size);
    }
    if (!this.#busy) this.#writing = this.#writeAll();
  }

  /** Resolves when nothing waits any more, or waits for a disk or reader that is too slow for the end of a process. */
  async flush(): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const limit = setTimeout(resolve, FLUSH_MS);
    this.#gathered?.();
    await Promise.race([this.#writing, late]);
    clearTimeout(limit);
  }

  /** Writes batch after batch until a gathering brings no line. Never rejects. */
  async #writeAll(): Promise<void> {
    this.#busy = true;
    try {
      while (true) {
        // Lines are gathered for one write: a launcher writes several thousand a second, and each write wakes another thread.
        await this.#gather();
        if (!this.#hasBatch()) break;
        await this.#follow();
        while (this.#batch.length > 0) await this.#writeSome();
        const dropped = this.#dropped;
        this.#dropped = 0;
        if (dropped > 0) this.#onRoom(dropped);
      }
    } catch {
      // A full disk, or a terminal that was closed. The next line tries again.
    }
    this.#busy = false;
  }

  /** The buffer doubles, so that the copies of a growing backlog cost little altogether; it is never made smaller. */
  #makeRoom(bytes: number): void {
    const needed = this.#size + bytes;
    if (needed <= this.#waiting.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(2 * needed, MAX_WAITING)));
    this.#waiting.copy(larger, 0, 0, this.#size);
    this.#waiting = larger;
  }

  async #gather(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, GATHER_MS);
    this.#gathered = resolve;
    await promise;
    clearTimeout(timer);
    this.#gathered = undefined;
  }

  /** Makes a batch of what waits, unless one is left from before. False: there is nothing to write. */
  #hasBatch(): boolean {
    if (this.#batch.length === 0) {
      this.#batch = this.#waiting.subarray(0, this.#size);
      [this.#waiting, this.#spare, this.#size] = [this.#spare, this.#waiting, 0];
    }
    return this.#batch.length > 0;
  }

  /** Writes a part of the batch. A pipe whose reader is slow answers EAGAIN, and is tried again. */
  async #writeSome(): Promise<void> {
    try {
      const { bytesWritten } = await calls.write(this.#descriptor, this.#batch);
      this.#batch = this.#batch.subarray(bytesWritten);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }

  /** By name, as Nodepool's own handler does: logrotate needs neither a signal nor copytruncate. */
  async #follow(): Promise<void> {
    if (this.#file === undefined) return;
    const { dev, ino } = fstatSync(this.#descriptor);
    const there = await calls.stat(this.#file).catch(() => undefined);
    if (there?.dev === dev && there.ino === ino) return;
    // If the file cannot be created, lines still go to the moved one.
    const opened = await calls.open(this.#file, "a", MODE).catch(() => undefined);
    if (opened === undefined) return;
    close(this.#descriptor, () => {});
    this.#descriptor = opened;
  }

  /** At the exit of the process, when no promise settles any more. */
  #writeLast(): void {
    for (let tries = 0; this.#hasBatch() && tries < LAST_TRIES; ) {
      try {
        this.#batch = this.#batch.subarray(writeSync(this.#descriptor, this.#batch));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EAGAIN") return;
        tries++;
        // The only way to wait without the event loop.
        Atomics.wait(nap, 0, 0, AGAIN_MS);
      }
    }
  }
}

/** Whether a descriptor leads to the journal of systemd, as it tells in JOURNAL_STREAM (systemd.exec(5)): children may inherit the variable alone. */
export function isJournald(descriptor: number, named: string | undefined): boolean {
  if (named === undefined) return false;
  try {
    const { dev, ino } = fstatSync(descriptor, { bigint: true });
    return named === `${dev}:${ino}`;
  } catch {
    return false;
  }
}
