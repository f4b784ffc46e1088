import type { ProviderUse } from "@nodeyard/asking";
import type { Resources } from "@nodeyard/driver";
import { poolKey } from "@nodeyard/view";
import type { LastErrors } from "../last-errors.ts";
import type { Loop } from "../loop.ts";
import type { LauncherConfig } from "../options.ts";
import type { Serving } from "./serving.ts";

/**
 * Every configured provider as this launcher has it: with the sums and facts by which the scheduler decides. Read by the API, the
 * metrics and the questions of other processes. Never waits: the facts are those that were read last.
 */
export function providerUses(
  { providers }: Pick<LauncherConfig, "providers">,
  serving: Pick<Serving, "providers" | "locals">,
  loop: Pick<Loop, "providerUse" | "poolUse">,
  errors: Pick<LastErrors, "of">,
): readonly ProviderUse[] {
  const { providers: locals } = serving.locals();
  return providers.map(({ name, driver, maxConcurrency, pools }) => {
    const [open, local] = [serving.providers.get(name), locals.get(name)];
    const pace = open?.provider.offers?.pace?.now();
    return {
      name,
      driver,
      limits: finite(local?.limits ?? local?.quota),
      quota: finite(local?.quota),
      readAt: local?.readAt ?? null,
      maxConcurrency: Number.isFinite(maxConcurrency) ? maxConcurrency : null,
      ...loop.providerUse(name),
      pace: pace && { waiting: pace.waiting, free: pace.free, intervalMs: pace.intervalMs },
      pools: pools.map((pool) => ({
        name: pool.name,
        limits: finite(pool.limits),
        ...loop.poolUse(poolKey(name, pool.name)),
      })),
      errors: [...errors.of(name)],
    };
  });
}

/** A limit that is infinite is none, and has no form in JSON. */
function finite(amounts: Resources = {}): Record<string, number> {
  return Object.fromEntries(Object.entries(amounts).filter(([, amount]) => Number.isFinite(amount)));
}
