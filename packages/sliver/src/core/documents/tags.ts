import { MAX_AMOUNT, type Resource, type Rspec } from "@nodeyard/sliver-protocol";

/** Which tags are amounts of what. It is a wire profile's, which the core does not know. */
export interface TagTable {
  readonly defaults: Rspec;
  readonly resources: readonly {
    readonly wire: string;
    readonly resource: Resource;
    readonly scale: number;
  }[];
}

/** The tag where it is a number, else the default; what is no number or null is as if it were missing. */
export function rspecOf(tags: ReadonlyMap<string, unknown>, { defaults, resources }: TagTable): Rspec {
  const rspec: { -readonly [name in Resource]: number } = { ...defaults };
  for (const { wire, resource, scale } of resources) {
    const amount = tagAmount(tags.get(wire), scale);
    if (amount !== undefined) rspec[resource] = amount;
  }
  const cores = /^(\d{1,4})(b?)$/.exec(String(tags.get("cpu_cores") ?? ""));
  if (cores === null) return rspec;
  return { ...rspec, cpuCores: Number(cores[1]), cpuCoresBestEffort: cores[2] === "b" ? 1 : 0 };
}

export function textTag(tags: ReadonlyMap<string, unknown>, name: string): string | undefined {
  const value = tags.get(name);
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Negative amounts had no meaning of their own and count as 0. */
function tagAmount(value: unknown, scale: number): number | undefined {
  if (typeof value !== "string" && typeof value !== "number") return undefined;
  const digits = /^\s*([+-]?\d{1,15})\s*$/.exec(String(value))?.[1];
  return digits === undefined ? undefined : Math.min(MAX_AMOUNT, Math.max(0, Number(digits)) * scale);
}
