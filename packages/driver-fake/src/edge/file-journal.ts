import { closeSync, fstatSync, openSync, readSync, writeSync } from "node:fs";
import type { Journal } from "../cloud/journal.ts";

/**
 * A journal in a file that several processes append to at once. Each line is one write at the end of the file, which the kernel
 * does not interleave; nothing is synced, for it must survive a killed process, not a power cut.
 */
export class FileJournal implements Journal {
  readonly #file: number;
  #offset = 0;

  /** Throws what `open` throws when the file cannot be written. */
  constructor(path: string) {
    this.#file = openSync(path, "a+", 0o600);
  }

  append(line: string): void {
    // The newline in front ends the line that a killed process may have left open.
    writeSync(this.#file, `\n${line}\n`);
  }

  unread(): readonly string[] {
    const size = fstatSync(this.#file).size;
    if (size <= this.#offset) return [];
    const bytes = Buffer.alloc(size - this.#offset);
    let read = 0;
    while (read < bytes.length) {
      const count = readSync(this.#file, bytes, read, bytes.length - read, this.#offset + read);
      if (count === 0) break;
      read += count;
    }
    // Only whole lines are taken over, so that no character is cut in two.
    const end = bytes.lastIndexOf(0x0a, read - 1) + 1;
    this.#offset += end;
    const lines = bytes.toString("utf8", 0, end).split("\n");
    return lines.filter((line) => line !== "");
  }

  close(): void {
    closeSync(this.#file);
  }
}
