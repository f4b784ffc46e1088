import type { ChildProcess } from "node:child_process";
import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const running = new Set<ChildProcess>();
const folders = new Set<string>();

process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A new folder that is removed with this process, if not before. */
export async function temporaryFolder(prefix: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), prefix));
  folders.add(folder);
  return folder;
}

export async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  folders.delete(folder);
}

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
