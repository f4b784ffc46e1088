import { computeLimits, POLICIES } from "../../core/index.ts";
import { configOf, type SliverConfig } from "../../core/reconcile/config.ts";

/** A configuration of a small sliver. */
export function sampleConfig(
  index: number,
  incarnation: number,
  { image, key }: { readonly image?: string; readonly key?: string },
): SliverConfig {
  const name = ["zero", "one", "two", "three"][index] ?? `sliver${index}`;
  const rspec = { ...POLICIES.v2.defaults, memoryCap: 65_536, pids: 64, disk: 65_536 };
  const record = {
    name,
    stamp: { epoch: 1, number: 1 },
    generation: 7,
    kind: "sliver" as const,
    instantiation: "plc-instantiated" as const,
    keys: key === undefined ? [] : [key],
    ...(image === undefined ? {} : { image }),
    initscript: "",
    delegations: [],
    rspec,
    local: { incarnation, index, loans: [] },
  };
  const limits = computeLimits(new Map([[name, rspec]]), { cpu: 1000, link: 1_000_000_000 }).get(name)!;
  return configOf(record, index, rspec, limits, undefined);
}
