import { execFile } from "node:child_process";

const MAX_OUTPUT = 64 * 1024;

/** Runs a program without a shell; one that cannot be run has exit code 127. */
export function runHook(
  path: string,
  args: readonly string[],
  signal: AbortSignal,
): Promise<{ readonly code: number; readonly output: string }> {
  return new Promise((resolve) => {
    execFile(
      path,
      [...args],
      { signal, killSignal: "SIGKILL", maxBuffer: MAX_OUTPUT },
      (error, stdout, stderr) => {
        const output = `${stdout}${stderr}`.trim();
        if (error === null) return resolve({ code: 0, output });
        const code = typeof error.code === "number" ? error.code : 127;
        resolve({ code, output: output === "" ? error.message : output });
      },
    );
  });
}
