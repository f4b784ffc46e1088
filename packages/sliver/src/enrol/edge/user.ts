import { readdirSync, readFileSync, statSync } from "node:fs";
import { type Clock, sleep } from "@nodeyard/runtime";
import { run } from "../../isolation/edge/run.ts";
import { EnrolError } from "../errors.ts";
import { uidOf } from "./look.ts";

/** Milliseconds that processes have to be gone after they were killed. */
const END_MS = 10_000;
const LOOK_MS = 50;

/** Ends what runs as a user, and removes it: `userdel` removes nobody who has a process. */
export async function removeUser(name: string, clock: Clock, signal: AbortSignal): Promise<void> {
  const uid = uidOf(name);
  if (uid === undefined) return;
  for (let waited = 0; ; waited += LOOK_MS) {
    const pids = processesOf(uid);
    if (pids.length === 0) break;
    if (waited > END_MS)
      throw new EnrolError(
        `process ${pids[0]} of the user ${name} does not end; end it by hand, then uninstall again`,
      );
    for (const pid of pids) kill(pid);
    await sleep(clock, LOOK_MS, signal);
  }
  await run(["userdel", name], { signal });
}

/**
 * Of a user of this machine. Whoever has the same number in a container has another root, and is somebody else, as for `userdel`.
 * Root's number is nobody's that may be ended.
 */
export function processesOf(uid: number): readonly number[] {
  if (uid === 0) return [];
  const here = statSync("/");
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const root = statSync(`/proc/${name}/root`);
        if (root.dev !== here.dev || root.ino !== here.ino) return false;
        const line = /^Uid:\s+(.+)$/m.exec(readFileSync(`/proc/${name}/status`, "utf8"))?.[1] ?? "";
        return line.split(/\s+/).includes(String(uid));
      } catch {
        // It ended meanwhile.
        return false;
      }
    })
    .map(Number);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended meanwhile.
  }
}
