import { call, list } from "../data/api.ts";
import type { Provider } from "../data/rows.ts";
import { versions } from "../data/state.ts";
import { type Loaded, useChange, useLoad } from "./use.ts";

/** Milliseconds after which quotas and breakers are read again when some nodes have changed. They cause no events of their own. */
const SETTLED_MS = 3_000;
const SOME_CHANGES = 20;

/** One provider, as all its launchers know it, or all of them, as this process does. */
export function useProviders(id?: string): Loaded<readonly Provider[]> {
  const loaded = useLoad(`providers ${id}`, async () =>
    id === undefined
      ? list<Provider>("/v1/providers")
      : [await call<Provider>("GET", `/v1/providers/${encodeURIComponent(id)}`)],
  );
  useChange(versions.pool.value, 300, loaded.reload);
  useChange(Math.floor(versions.node.value / SOME_CHANGES), SETTLED_MS, loaded.reload);
  return loaded;
}

/** How many nodes the provider may have: what its pools may together, or what the cloud allows. Undefined: no limit is known. */
export function limitOf({ standings, unknown }: Provider): number | undefined {
  const limits = standings.map(({ quota, pools }) => {
    const most = pools.map(({ limits: of }) => of.instances?.limit ?? Number.POSITIVE_INFINITY);
    return Math.min(
      quota.instances?.limit ?? Number.POSITIVE_INFINITY,
      most.reduce((sum, one) => sum + one, 0),
    );
  });
  const sum = limits.reduce((all, one) => all + one, 0);
  return unknown.length === 0 && sum > 0 && Number.isFinite(sum) ? sum : undefined;
}
