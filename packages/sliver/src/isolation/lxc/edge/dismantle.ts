import { rm } from "node:fs/promises";
import { messageOf } from "@nodeyard/runtime";
import { run } from "../../edge/run.ts";
import { MachineError } from "../../errors.ts";
import { belongings } from "./belongings.ts";
import { LxcBackEnd } from "./lxc-back-end.ts";
import type { SliverMachine } from "./machine.ts";

/**
 * Ends every sliver and takes everything of slivers' from this machine. Nothing may be made meanwhile. What is in the
 * machine's folders and not ours stays. Throws MachineError that names what is left.
 */
export async function dismantle(machine: SliverMachine, signal: AbortSignal): Promise<void> {
  const { options } = machine;
  if ((await belongings(options, signal)).length === 0) return;
  await machine.prepareToEnd(signal);
  const failures: string[] = [];
  // Of either kind: what one back end made, the other one ends.
  const backEnd = new LxcBackEnd("account", machine);
  for (const ref of await backEnd.inspect(signal))
    await backEnd.destroy(ref, signal).catch((error) => {
      signal.throwIfAborted();
      failures.push(`ny-${ref.index}.${ref.incarnation}: ${messageOf(error)}`);
    });
  if (failures.length > 0)
    throw new MachineError(`these slivers did not end, so nothing else was removed: ${failures.join("; ")}`);
  await machine.dismantle(signal);
  for (const { kind, name } of await belongings(options, signal)) {
    if (kind === "interface") await run(["ip", "link", "del", name], { signal });
    if (kind === "file") await rm(name, { recursive: true, force: true });
  }
  const left = await belongings(options, signal);
  if (left.length > 0)
    throw new MachineError(`still there: ${left.map(({ kind, name }) => `${kind} ${name}`).join(", ")}`);
}
