import { writeSync } from "node:fs";

/** `NODEYARD_ZUUL_KILL=<number>:<before|after>`: the process ends there. */
const [number, moment] = (process.env.NODEYARD_ZUUL_KILL ?? "").split(":");
let written = 0;

/** Carries one write out, unless the process ends before or after it. */
export async function write<T>(what: string, act: () => Promise<T>): Promise<T> {
  const isLast = ++written === Number(number);
  if (isLast && moment === "before") die(what);
  const result = await act();
  if (isLast) die(what);
  return result;
}

function die(what: string): void {
  writeSync(2, `ZUUL: killed ${moment} write ${number}, ${what}\n`);
  process.kill(process.pid, "SIGKILL");
}
