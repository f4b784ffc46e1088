import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { patient } from "../patience.ts";

/** The output of a program; rejects when the program fails. */
export async function output(
  program: string,
  words: readonly string[],
  options: { readonly cwd?: string; readonly timeout?: number } = {},
): Promise<string> {
  const { stdout } = await promisify(execFile)(program, words, { timeout: patient(120_000), ...options });
  return stdout;
}

/** Writes the output of a program to a file. */
export async function pipe(
  program: string,
  words: readonly string[],
  input: string,
  file: string,
  cwd: string,
): Promise<void> {
  const child = spawn(program, words, { cwd, stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "exit");
  child.stdin.end(input);
  await pipeline(child.stdout, createWriteStream(file));
  const [code] = await ended;
  if (code !== 0) throw new Error(`${program} ended with ${code}`);
}
