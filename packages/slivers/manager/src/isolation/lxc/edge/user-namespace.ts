import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { CommandError } from "../../../errors.ts";
import { howToInstall, PATH } from "../../edge/run.ts";
import { IDS, type Names } from "../names.ts";

/** A user namespace and the process that holds it until another one is in it. */
export interface HeldNamespace {
  readonly pid: number;
  release(): void;
}

/**
 * Makes the user namespace of a sliver, owned by the first of its own ids. The kernel counts inotify instances, pending signals, locked
 * memory, message queues and namespaces of all that is in a user namespace for its owner, too. LXC would make it as root, so that every sliver
 * took from one count, which is also the machine's. Throws CommandError, or the signal's reason.
 */
export async function holdNamespace({ idBase }: Names, signal: AbortSignal): Promise<HeldNamespace> {
  const owner = [`--reuid=${idBase}`, `--regid=${idBase}`, "--clear-groups"];
  const child = spawn("setpriv", [...owner, "unshare", "--user", "cat"], {
    env: { PATH },
    stdio: ["pipe", "pipe", "ignore"],
    signal,
    killSignal: "SIGKILL",
  });
  const release = () => void child.kill("SIGKILL");
  try {
    // Its answer says that it is in the new namespace.
    child.stdin.on("error", () => undefined).write("in\n");
    const ended = once(child, "exit", { signal }).then(() => {
      throw new CommandError("setpriv and unshare of util-linux made no user namespace");
    });
    await Promise.race([once(child.stdout, "data", { signal }), ended]);
    for (const map of ["uid_map", "gid_map"])
      await writeFile(`/proc/${child.pid}/${map}`, `0 ${idBase} ${IDS}`);
    ended.catch(() => undefined);
    return { pid: child.pid!, release };
  } catch (error) {
    release();
    signal.throwIfAborted();
    if ((error as NodeJS.ErrnoException).code === "ENOENT")
      throw new CommandError(howToInstall("setpriv"), { cause: error });
    throw error;
  }
}
