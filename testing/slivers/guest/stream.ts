import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** Runs a program and passes each line of its output on, of stdout and stderr. Rejects with its last lines when it fails. */
export async function stream(
  program: string,
  words: readonly string[],
  onLine: (line: string) => void,
  signal?: AbortSignal,
): Promise<void> {
  const child = spawn(program, words, {
    stdio: ["ignore", "pipe", "pipe"],
    killSignal: "SIGKILL",
    ...(signal && { signal }),
  });
  const last: string[] = [];
  for (const input of [child.stdout, child.stderr])
    createInterface({ input }).on("line", (line) => {
      last.push(line);
      if (last.length > 5) last.shift();
      onLine(line);
    });
  const code = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, name) => resolve(code ?? name));
  });
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${last.join("; ")}`);
}
