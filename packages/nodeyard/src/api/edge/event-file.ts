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
 * Lines in a file that is only added to, and in the one before it: a segment that is full is kept until the next one is full. What was
 * flushed outlives the process, but not a loss of power.
 */
export class EventFile {
  readonly #path: string;
  #descriptor: number | undefined;
  #waiting = "";

  constructor(path: string) {
    this.#path = path;
  }

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
    if (existsSync(this.#path)) renameSync(this.#path, this.#former);
    renameSync(fresh, this.#path);
    this.#descriptor = openSync(this.#path, "a", 0o600);
  }

  append(line: string): void {
    this.#waiting += `${line}\n`;
  }

  flush(): void {
    if (this.#waiting === "" || this.#descriptor === undefined) return;
    let bytes = Buffer.from(this.#waiting);
    this.#waiting = "";
    while (bytes.length > 0) bytes = bytes.subarray(writeSync(this.#descriptor, bytes));
  }

  close(): void {
    this.flush();
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  remove(): void {
    this.#waiting = "";
    this.close();
    for (const path of [this.#path, this.#former, `${this.#path}.new`]) rmSync(path, { force: true });
  }
}
