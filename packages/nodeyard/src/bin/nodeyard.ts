#!/usr/bin/env -S node --disable-warning=ExperimentalWarning
import { writeSync } from "node:fs";
import { type Io, main } from "../cli/index.ts";
import { systemMachine } from "../process/index.ts";

const io: Io = {
  out: (text) => write(1, text),
  err: (text) => write(2, text),
  isTerminal: process.stderr.isTTY,
  columns: process.stdout.columns ?? 100,
};

/** At once and whole, also into a pipe: the process may end right after. A reader that has gone is no error. */
function write(descriptor: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(descriptor, bytes, at);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EPIPE") return;
      if (code !== "EAGAIN") throw error;
    }
  }
}

// Everything is written and closed by now; nothing that was forgotten may keep the process.
process.exit(await main(process.argv.slice(2), io, systemMachine()));
