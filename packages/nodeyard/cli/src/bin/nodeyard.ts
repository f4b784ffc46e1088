import { writeSync } from "node:fs";
import { basename } from "node:path";
import { createInterface } from "node:readline/promises";
import { isatty } from "node:tty";
import { systemMachine } from "@nodeyard/telemetry/machine";
import { type Io, main } from "../index.ts";

/** To wait without the event loop, in `write`. */
const nap = new Int32Array(new SharedArrayBuffer(4));

const io: Io = {
  out: (text) => write(1, text),
  err: (text) => write(2, text),
  isTerminal: isatty(2),
  async ask(question) {
    write(2, question);
    const lines = createInterface({ input: process.stdin });
    for await (const line of lines) return line;
    return undefined;
  },
  // `process.stdout` is not touched when it is a pipe: Node would make the pipe non-blocking.
  columns: isatty(1) ? process.stdout.columns : 100,
};

/** At once and whole, also into a pipe: the process may end right after. A reader that has gone, or a terminal that was closed, is no error. */
function write(descriptor: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(descriptor, bytes, at);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EPIPE" || code === "EIO") return;
      if (code !== "EAGAIN") throw error;
      // The parent process made the pipe non-blocking.
      Atomics.wait(nap, 0, 0, 5);
    }
  }
}

/**
 * Nodepool's daemons, by the name of a link to this program, so that units and scripts that start them work on; `nodepool` takes
 * the same words as `nodeyard`.
 */
const OLD_NAMES: Readonly<Record<string, readonly string[]>> = {
  "nodepool-launcher": ["launcher"],
  "nodepool-builder": ["builder"],
};
const isVersion = process.argv[2] === "--version";
const command = (!isVersion && OLD_NAMES[basename(process.argv[1] ?? "")]) || [];

// Everything is written and closed by now; nothing that was forgotten may keep the process. No await here: nodeyard.cjs requires this file.
void main([...command, ...process.argv.slice(2)], io, systemMachine()).then((code) => process.exit(code));
