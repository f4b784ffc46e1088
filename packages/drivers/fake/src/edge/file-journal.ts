import { closeSync, fstatSync, openSync, readSync, writeSync } from "node:fs";
import type { Journal } from "../cloud/journal.ts";

/**
 * A journal in a file to which several processes append. Each line is one write at the end of the file, and the kernel does not interleave
 * such writes. Nothing is synced: the journal must survive a killed process, but no power loss.
 */
export class FileJournal implements Journal {
  readonly #file: number;
  /** End of the last complete line that was read. */
  #offset = 0;

  /** Throws the error of `open` when the file cannot be written. */
  constructor(path: string) {
    this.#file = openSync(path, "a+", 0o600);
  }

  append(line: string): void {
    // The leading newline ends an incomplete line that a killed process may have left.
    writeSync(this.#file, `\n${line}\n`);
  }

  unread(): readonly string[] {
    const size = fstatSync(this.#file).size;
    // One call of the kernel when nothing changed, as this runs before each request.
    if (size <= this.#offset) return [];
    const bytes = Buffer.alloc(size - this.#offset);
    let read = 0;
    while (read < bytes.length) {
      const count = readSync(this.#file, bytes, read, bytes.length - read, this.#offset + read);
      if (count === 0) break;
      read += count;
    }
    // Only complete lines, so that no multi-byte character is split.
    const end = bytes.lastIndexOf(0x0a, read - 1) + 1;
    this.#offset += end;
    const lines = bytes.toString("utf8", 0, end).split("\n");
    return lines.filter((line) => line !== "");
  }

  close(): void {
    closeSync(this.#file);
  }
}
