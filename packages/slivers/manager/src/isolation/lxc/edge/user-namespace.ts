import { writeFile } from "node:fs/promises";
import { CommandError } from "../../../errors.ts";
import { run } from "../../edge/run.ts";
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
  const held = new AbortController();
  const until = AbortSignal.any([signal, held.signal]);
  const release = () => held.abort();
  try {
    // Its answer says that it is in the new namespace.
    const pid = await new Promise<number>((resolve, reject) => {
      run(["setpriv", ...owner, "unshare", "--user", "cat"], {
        signal: until,
        input: "in\n",
        onStart: resolve,
      }).then(
        () => reject(new CommandError("setpriv and unshare of util-linux made no user namespace")),
        reject,
      );
    });
    for (const map of ["uid_map", "gid_map"]) await writeFile(`/proc/${pid}/${map}`, `0 ${idBase} ${IDS}`);
    return { pid, release };
  } catch (error) {
    release();
    throw error;
  }
}
