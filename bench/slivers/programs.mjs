// Loaded into `sliverd` by the benchmark (`--import`): one line for each program that it starts and each fsync, when it has ended, with
// both times of the monotonic clock, which all processes share. Plain JavaScript, so that a preload needs no options.
import childProcess from "node:child_process";
import { appendFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";

const file = process.env.NODEYARD_BENCH_PROGRAMS;
const now = () => Number(process.hrtime.bigint()) / 1e6;
const note = (what, begin) => appendFileSync(file, `${JSON.stringify({ what, begin, end: now() })}\n`);

const { spawn } = childProcess;
childProcess.spawn = (...args) => {
  const begin = now();
  const child = spawn(...args);
  if (child.send === undefined) {
    child.once("exit", () => note([args[0], ...args[1]].join(" "), begin));
    return child;
  }
  // The process that starts programs for it.
  const { send } = child;
  child.send = (message, ...rest) => {
    const begin = now();
    const listen = (answer) => {
      if (answer.id !== message.id || !("end" in answer)) return;
      child.off("message", listen);
      note(message.argv.join(" "), begin);
    };
    if ("argv" in message) child.on("message", listen);
    return send.call(child, message, ...rest);
  };
  return child;
};
syncBuiltinESMExports();

const some = await open(import.meta.filename);
const { prototype } = some.constructor;
await some.close();
const { sync } = prototype;
prototype.sync = async function () {
  const begin = now();
  await sync.call(this);
  note("fsync", begin);
};
