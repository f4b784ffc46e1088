#!/usr/bin/env -S node --disable-warning=ExperimentalWarning
import { type ChildProcess, spawn } from "node:child_process";
import { messageOf } from "@nodeyard/runtime";
import manifest from "../../package.json" with { type: "json" };
import type { FromRunner, ToRunner } from "../isolation/edge/runner.ts";

/**
 * Starts programs for `sliverd` and reports what they say and how they end. A process is started by a copy of its parent's page tables,
 * during which the parent stands still: that of `sliverd`, with hundreds of MiB, takes ten times as long as this one's. It ends with
 * `sliverd`; a program that runs then goes on alone.
 */
function main([word]: readonly string[]): void {
  if (word === "--version") return console.log(`sliver-runner ${manifest.version}`);
  if (process.send === undefined) throw new Error("sliver-runner is started by sliverd");
  const running = new Map<number, ChildProcess>();
  // When nobody hears it any more, this process ends.
  const tell = (message: FromRunner) => void process.send!(message, undefined, undefined, () => undefined);
  process.on("message", (order: ToRunner) => {
    if ("kill" in order) running.get(order.kill)?.kill("SIGKILL");
    else
      try {
        start(order, running, tell);
      } catch (error) {
        // Arguments that no program can have; other failures are events.
        tell({ id: order.id, end: { message: messageOf(error) } });
      }
  });
  process.once("disconnect", () => process.exit());
}

function start(
  { id, argv, path, input, isOpen, isQuiet }: Exclude<ToRunner, { readonly kill: number }>,
  running: Map<number, ChildProcess>,
  tell: (message: FromRunner) => void,
): void {
  const [program, ...args] = argv;
  const pipe = isQuiet ? "ignore" : "pipe";
  const child = spawn(program!, args, {
    env: { PATH: path, LC_ALL: "C" },
    stdio: [input === undefined ? "ignore" : "pipe", pipe, "pipe"],
  });
  running.set(id, child);
  child.stdout?.setEncoding("utf8").on("data", (out: string) => tell({ id, out, pid: child.pid! }));
  child.stderr!.setEncoding("utf8").on("data", (err: string) => tell({ id, err }));
  // A program that ends before it has read everything is judged by its exit code, so EPIPE is ignored.
  child.stdin?.on("error", () => undefined).write(input!);
  if (!isOpen) child.stdin?.end();
  const end = (how: Pick<Extract<FromRunner, { readonly end: unknown }>, "end">) => {
    running.delete(id);
    tell({ id, ...how });
  };
  child.once("error", ({ code, message }: NodeJS.ErrnoException) => end({ end: { code, message } }));
  child.once(isQuiet ? "exit" : "close", (code, signal) => end({ end: code ?? signal }));
}

main(process.argv.slice(2));
