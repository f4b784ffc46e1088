import childProcess from "node:child_process";
import { writeFileSync } from "node:fs";
import files from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import type { ToRunner } from "../../../src/isolation/edge/runner.ts";

/*
 * Loaded before a program (`node --import`): it dies as by `kill -9` at the effect that NODEYARD_DIE_AT names. Effects,
 * counted from 1, are programs that it starts and changes of the file system. "12" dies before effect 12, "12+" as soon
 * as effect 12 is begun: a program that was started goes on alone.
 */
const [, number, begun] = /^(\d+)(\+?)$/.exec(process.env.NODEYARD_DIE_AT ?? "")!;
const reported = process.env.NODEYARD_DIE_TELL!;
let count = 0;
process.on("exit", () => writeFileSync(`${reported}.count`, String(count)));

type Effect = (...args: never[]) => unknown;

function killable(name: string, effect: Effect): Effect {
  return (...args) => {
    if (name === "open" && !/[wa+]/.test(String(args[1] ?? "r"))) return effect(...args);
    // Not the end of a program.
    if (name === "send" && !("argv" in args[0]!)) return effect(...args);
    count++;
    const what =
      name === "send"
        ? (args[0] as unknown as ToRunner & { argv: string[] }).argv.join(" ")
        : `${name} ${args[0]}`;
    if (count !== Number(number)) return effect(...args);
    writeFileSync(reported, what);
    const result = begun === "" ? undefined : effect(...args);
    process.kill(process.pid, "SIGKILL");
    return result;
  };
}

function patch(module: object, names: readonly string[]): void {
  const members = module as Record<string, Effect>;
  for (const name of names) members[name] = killable(name, members[name]!.bind(module) as Effect);
}

// Programs are started by another process, which is told to.
const { spawn } = childProcess;
childProcess.spawn = ((...args: Parameters<typeof spawn>) => {
  const child = spawn(...args);
  if (child.send !== undefined) patch(child, ["send"]);
  return child;
}) as typeof spawn;
patch(files, ["chmod", "chown", "lchown", "link", "mkdir", "open", "rename", "rm", "rmdir", "symlink"]);
patch(files, ["truncate", "unlink", "utimes", "writeFile"]);
syncBuiltinESMExports();
