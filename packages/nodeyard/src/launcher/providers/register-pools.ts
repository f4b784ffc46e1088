import { launcherPoolId } from "@nodeyard/model";
import { hexId } from "@nodeyard/runtime";
import { poolComponent, type Registration } from "../../coordination/index.ts";
import type { Context, OpenProvider, ServingPool } from "../context.ts";
import type { ProviderFacts } from "./providers.ts";
import type { Served } from "./served.ts";

/** Who this process is, for the records it writes. */
export interface Identity {
  readonly hostname: string;
  readonly fqdn: string;
  readonly version: string;
}

/** Makes the components by which others know the pools of a provider. What stands is noted first, so that it can be taken away. */
export async function registerPools(
  registration: Registration,
  identity: Identity,
  context: Pick<Context, "random">,
  { config, registered, stop }: Served,
  open: OpenProvider,
  learnt: ProviderFacts,
): Promise<readonly ServingPool[]> {
  const pools: ServingPool[] = [];
  for (const pool of learnt.pools) {
    const id = launcherPoolId({
      fqdn: identity.fqdn,
      provider: config.name,
      pool: pool.name,
      hex: hexId(context.random),
    });
    const facts = {
      ...identity,
      id,
      name: pool.name,
      provider: config.name,
      labels: [...pool.labels].sort(),
      priority: pool.priority,
    };
    registered.push(id);
    await registration.register(id, poolComponent(facts));
    stop.signal.throwIfAborted();
    pools.push({ key: pool.key, id, name: pool.name, open });
  }
  return pools;
}

/** Takes away all of it that stands in the registry or may. */
export async function unregisterPools(registration: Registration, { registered }: Served): Promise<void> {
  await Promise.all(registered.splice(0).map((id) => registration.unregister(id)));
}
