import {
  closeSync,
  existsSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";

/** The file of events in a state folder. */
export const EVENTS = "events.ndjson";

/**
 * Lines in a file that is only added to, and in the one before it: a segment that is full is kept until the next one is full.
 * Flushed lines outlive the process, but not a loss of power, since nothing is synced to the disk: that would cost more than
 * the events are worth (docs/design/rest.md, "Decision"). All methods are synchronous and throw what the file system throws; the
 * caller then does without.
 */
export class EventFile {
  /** The current segment; the one before has `.1` at its end, one that is being begun `.new`. */
  readonly #path: string;
  /** Undefined before `open` or `begin`, and after `close`: then nothing is written. */
  #descriptor: number | undefined;
  /** Whole lines that were appended since the last flush. */
  #waiting = "";

  constructor(path: string) {
    this.#path = path;
  }

  /** Whether an earlier process left something. Known without reading it. */
  get exists(): boolean {
    return existsSync(this.#path) || existsSync(this.#former);
  }

  get #former(): string {
    return `${this.#path}.1`;
  }

  /** The lines of both segments, the older first. A line that was not written to its end is cut off. */
  open(): readonly (readonly string[])[] {
    // The process was killed while it began a segment.
    if (!existsSync(this.#path) && existsSync(this.#former)) renameSync(this.#former, this.#path);
    const segments = [this.#former, this.#path].filter((path) => existsSync(path));
    return segments.map((path) => {
      const text = readFileSync(path, "utf8");
      const whole = text.slice(0, text.lastIndexOf("\n") + 1);
      if (path === this.#path) {
        this.#descriptor = openSync(path, "a", 0o600);
        // Else the next line would be added to half a line, and neither could be read.
        ftruncateSync(this.#descriptor, Buffer.byteLength(whole));
      }
      return whole.split("\n").slice(0, -1);
    });
  }

  /** Begins a segment with these lines. Until it is whole, the former ones stay as they are. */
  begin(lines: Iterable<string>): void {
    this.flush();
    const fresh = `${this.#path}.new`;
    writeFileSync(fresh, `${[...lines].join("\n")}\n`, { mode: 0o600 });
    this.close();
    // A process that is killed between the two renames leaves only the former segment; `open` makes it the current one again.
    if (existsSync(this.#path)) renameSync(this.#path, this.#former);
    renameSync(fresh, this.#path);
    this.#descriptor = openSync(this.#path, "a", 0o600);
  }

  /** In memory only, until `flush`. */
  append(line: string): void {
    this.#waiting += `${line}\n`;
  }

  /** Writes what waits. Lines are dropped where no file is open. */
  flush(): void {
    if (this.#waiting === "" || this.#descriptor === undefined) return;
    let bytes = Buffer.from(this.#waiting);
    this.#waiting = "";
    // A write may be partial.
    while (bytes.length > 0) bytes = bytes.subarray(writeSync(this.#descriptor, bytes));
  }

  /** Writes what waits. Twice is safe. */
  close(): void {
    this.flush();
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  /** Removes all segments; what waits is dropped. */
  remove(): void {
    this.#waiting = "";
    this.close();
    for (const path of [this.#path, this.#former, `${this.#path}.new`]) rmSync(path, { force: true });
  }
}
