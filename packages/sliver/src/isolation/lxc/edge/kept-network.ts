import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { writeAtomic } from "../../edge/atomic.ts";
import { MachineError } from "../../errors.ts";

/**
 * Keeps in the machine's folder the first two numbers of slivers' addresses, for as long as there are slivers: those that were
 * made have them inside, and would be looked for in vain at others. Throws MachineError.
 */
export async function keepNetwork(folder: string, network: string, slivers: number): Promise<void> {
  const kept = await keptNetwork(folder);
  if (kept === network) return;
  if (kept !== undefined && slivers > 0)
    throw new MachineError(
      `isolation.network is ${network}, and the existing slivers (${slivers}) have addresses of ${kept}: ` +
        `write ${kept} again; it can change once they have ended (sliverd --dismantle ends all of them)`,
    );
  await writeAtomic(fileIn(folder), `${network}\n`);
}

/** What is kept there: for who ends the slivers that have it, whatever is configured by now. */
export async function keptNetwork(folder: string): Promise<string | undefined> {
  const text = await readFile(fileIn(folder), "utf8").catch(() => "");
  return text.trim() || undefined;
}

function fileIn(folder: string): string {
  return join(folder, "network");
}
