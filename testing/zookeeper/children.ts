import type { ChildProcess } from "node:child_process";

const running = new Set<ChildProcess>();

process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Makes sure that `child` does not outlive this process; the promise resolves when it has ended. */
export function adopt(child: ChildProcess): Promise<void> {
  running.add(child);
  return new Promise((resolve) => {
    const ended = () => {
      running.delete(child);
      resolve();
    };
    child.once("exit", ended);
    child.once("error", ended);
  });
}
