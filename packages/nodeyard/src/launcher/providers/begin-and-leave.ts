import type { Driver } from "@nodeyard/driver";
import { closeQuietly, type Registration, settledWithin } from "../../coordination/index.ts";
import type { Context, OpenProvider } from "../context.ts";
import { METASTATIC } from "../metastatic/index.ts";
import { ForeignWatch } from "./foreign.ts";
import { InventoryKeeper } from "./inventory.ts";
import { LeakSweep } from "./leaks.ts";
import { unregisterPools } from "./register-pools.ts";
import type { Served } from "./served.ts";

/** How long the work under way with a provider that was replaced or removed may go on, milliseconds. */
export const RETIRE_MS = 3_600_000;

/** What goes on with a provider from the moment that its pools are registered. */
export function begin(
  context: Context,
  served: Served,
  open: OpenProvider,
  onForeign: (why: Error) => void,
): void {
  if (isExclusive(open.driver)) served.foreign = new ForeignWatch(context, open.config.name, onForeign);
  if (open.driver.capabilities.inventory) {
    served.inventory = new InventoryKeeper(context, open);
    served.inventory.start();
  }
  served.leaks = new LeakSweep(context, open);
  served.leaks.start();
  open.slots?.serve();
}

/** Whether launchers of one kind alone may serve a provider of this driver: its nodes are slots of what exists. */
export function isExclusive({ name, capabilities }: Pick<Driver, "name" | "capabilities">): boolean {
  return capabilities.inventory || name === METASTATIC;
}

/** Takes its pools out of the registry, and closes it when the work under way has ended, or after `graceMs` under it. */
export async function leave(
  context: Pick<Context, "clock" | "log" | "counters">,
  registration: Registration,
  served: Served,
  open: OpenProvider | undefined,
  graceMs: number,
): Promise<void> {
  served.foreign?.close();
  await unregisterPools(registration, served);
  await served.inventory?.close();
  await open?.slots?.retire();
  if (open === undefined) return;
  const close = () => closeQuietly(context, served.config.name, open.provider);
  if (open.work.size === 0 || graceMs === 0) return close();
  void settledWithin(context.clock, graceMs, Promise.allSettled(open.work)).then(close);
}
