import { readFile } from "node:fs/promises";
import { writeAtomic } from "../../edge/atomic.ts";
import { MachineError } from "../../errors.ts";

/**
 * Keeps in `file` the first two numbers of slivers' addresses, for as long as there are slivers: those that were made
 * have them inside, and would be looked for in vain at others. Throws MachineError.
 */
export async function keepNetwork(file: string, network: string, slivers: number): Promise<void> {
  const kept = (await readFile(file, "utf8").catch(() => "")).trim();
  if (kept === network) return;
  if (kept !== "" && slivers > 0)
    throw new MachineError(
      `isolation.network is ${network}, and the slivers that are here (${slivers}) have addresses of ${kept}: ` +
        `write ${kept} again; it may be another once they have ended (sliverd --dismantle ends all of them)`,
    );
  await writeAtomic(file, `${network}\n`);
}
