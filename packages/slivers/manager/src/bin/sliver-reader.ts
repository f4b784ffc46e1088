#!/usr/bin/env -S node --disable-warning=ExperimentalWarning
import manifest from "../../package.json" with { type: "json" };
import { parseForDaemon } from "../api/edge/reader/child.ts";

/** Started only by `sliverd`: `sliver-reader SOCKET UID`, with frames on standard input and output. */
function main([path, uid]: readonly string[]): void {
  if (path === "--version") return console.log(`sliver-reader ${manifest.version}`);
  if (path === undefined || uid === undefined) throw new Error("sliver-reader is started by sliverd");
  if (process.getuid!() === 0) {
    process.setgroups!([]);
    process.setgid!(Number(uid));
    process.setuid!(Number(uid));
  }
  // The daemon has ended, so there is no work any more.
  process.stdin.once("end", () => process.exit(0));
  parseForDaemon(path, process.stdin, process.stdout);
}

main(process.argv.slice(2));
