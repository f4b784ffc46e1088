import type { Rspec, SliverSpecInput } from "@nodeyard/sliver-protocol";
import type { Lending } from "./document.ts";
import { LENT, type Lent } from "./rule.ts";

/** Tag of a sliver: the names of the caps that it lends and borrows. */
const LEND = "lend";

/** The machine's names for its capacities of lent caps. It does not know the rates of its disk. */
const CAPACITY = { cpuCap: "cpu", netCap: "net" } as const;

/** Tags for slivers of a label that lends. Only caps that the label sets are included. */
export function lendTags(rspec: Readonly<Partial<Rspec>>): Readonly<Record<string, string>> {
  return { [LEND]: LENT.filter((name) => (rspec[name] ?? 0) > 0).join(" ") };
}

/** Whether the sliver's label lent when it was made. */
export function lends({ tags }: Pick<SliverSpecInput, "tags">): boolean {
  return (tags?.[LEND] ?? "") !== "";
}

/**
 * Lending on a machine with slivers of any labels. It depends only on the slivers' tags, so that all writers compute the same loans. The
 * capacity beyond the sum of all caps is free, if every sliver has a cap and no sliver is just ending.
 */
export function lendingOfPool(capacity: Readonly<Record<string, number>>): Lending {
  return {
    lent: ({ tags }) => LENT.filter((name) => (tags?.[LEND] ?? "").split(" ").includes(name)),
    free: (slivers, ending) =>
      Object.fromEntries(
        Object.entries(CAPACITY).map(([name, theirs]) => [
          name,
          ending > 0 ? 0 : left(capacity[theirs] ?? 0, slivers, name as Lent),
        ]),
      ),
  };
}

/** What caps leave of a capacity; 0 if one sliver has no cap, because it may use everything. */
function left(capacity: number, slivers: readonly SliverSpecInput[], name: Lent): number {
  const caps = slivers.map(({ rspec }) => rspec?.[name] ?? 0);
  return caps.includes(0) ? 0 : Math.max(0, capacity - caps.reduce((sum, cap) => sum + cap, 0));
}
