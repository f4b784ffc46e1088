import type { AppliedWrite } from "@nodeyard/tree";
import { Broken } from "./broken.ts";
import type { Replay, Znode } from "./replay.ts";
import type { Rule } from "./rule.ts";

export interface Amounts {
  readonly instances: number;
  readonly cores?: number;
}

export interface Limits {
  /** By `<provider>/<pool>`. */
  readonly pools?: ReadonlyMap<string, Amounts>;
  readonly tenants?: ReadonlyMap<string, Amounts>;
  /** What a cloud allows us in all, by provider. */
  readonly providers?: ReadonlyMap<string, Amounts>;
  /** Nodes that each launcher may launch at once, by provider. */
  readonly launching?: ReadonlyMap<string, Amounts>;
}

type Kind = keyof Limits;
type Sums = Readonly<Record<Kind, ReadonlyMap<string, Required<Amounts>>>>;

/** What the records use, for each kind of limit. An idle node keeps the name of its last tenant, but does not count for it. */
export function takenOf(nodes: ReadonlyMap<string, Znode>): Sums {
  const sum = () => new Map<string, Required<Amounts>>();
  const [pools, tenants, providers, launching] = [sum(), sum(), sum(), sum()];
  for (const { data, damaged } of nodes.values()) {
    if (data.provider === "py") continue;
    const cores = (data.resources as { cores?: number } | null)?.cores ?? 0;
    add(pools, `${data.provider}/${data.pool}`, cores);
    add(providers, String(data.provider), cores);
    // Per launcher: launchers do not reserve concurrent launches among themselves. A node with an unreadable record does not count.
    if (damaged !== true && (data.state === "init" || (data.state === "building" && !isChecked(data))))
      add(launching, `${data.provider} ${data.launcher}`, cores);
    const given = (data.allocated_to ?? null) !== null;
    if (given && typeof data.tenant_name === "string") add(tenants, data.tenant_name, cores);
  }
  return { pools, tenants, providers, launching };
}

/** It was given back, and is not being launched. */
function isChecked({ driver_data: own }: Znode["data"]): boolean {
  const { nodeyard } = (own ?? {}) as {
    readonly nodeyard?: { readonly reuse?: { readonly checking?: true } };
  };
  return nodeyard?.reuse?.checking === true;
}

/** Rule 3: what the records use never exceeds a limit of their pool, provider or tenant, nor the number of concurrent launches. */
export class LimitsHold implements Rule {
  readonly #limits: Limits;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  onWrite(write: AppliedWrite, { nodes }: Replay): void {
    const changes = write.ops.some(
      ({ op, path }) => op !== "check" && op !== "delete" && path.startsWith("/nodepool/nodes/"),
    );
    if (!changes) return;
    const taken = takenOf(nodes);
    for (const [name, used] of taken.launching) {
      const most = this.#limits.launching?.get(name.split(" ")[0]!)?.instances ?? Number.POSITIVE_INFINITY;
      if (used.instances > most)
        throw new Broken("limits are never exceeded", write, `launching ${name}: ${JSON.stringify(used)}`);
    }
    for (const kind of ["pools", "tenants", "providers"] as const)
      for (const [name, { instances, cores = Number.POSITIVE_INFINITY }] of this.#limits[kind] ?? []) {
        const used = taken[kind].get(name);
        if (used !== undefined && (used.instances > instances || used.cores > cores))
          throw new Broken("limits are never exceeded", write, `${kind} ${name}: ${JSON.stringify(used)}`);
      }
  }
}

function add(sums: Map<string, Required<Amounts>>, key: string, cores: number): void {
  const sum = sums.get(key) ?? { instances: 0, cores: 0 };
  sums.set(key, { instances: sum.instances + 1, cores: sum.cores + cores });
}
