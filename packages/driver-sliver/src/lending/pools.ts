import type { Rspec, SliverSpecInput } from "@nodeyard/sliver-protocol";
import type { Lending } from "./document.ts";
import { LENT, type Lent } from "./rule.ts";

/** Tag of a sliver: the caps that it lends and borrows. */
const LEND = "lend";

/** What a machine calls its capacity of what is lent; it knows none of its disk's rates. */
const CAPACITY = { cpuCap: "cpu", netCap: "net" } as const;

/** Tags of a sliver of a label that lends; caps that its label does not give are no part of it. */
export function lendTags(rspec: Readonly<Partial<Rspec>>): Readonly<Record<string, string>> {
  return { [LEND]: LENT.filter((name) => (rspec[name] ?? 0) > 0).join(" ") };
}

export function lends({ tags }: Pick<SliverSpecInput, "tags">): boolean {
  return (tags?.[LEND] ?? "") !== "";
}

/**
 * A machine with slivers of any labels, each by its own tags, so that all who write to it see the same. What its capacity leaves when
 * every cap is used to the full is free, where each of its slivers has one and nothing is just ending.
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

function left(capacity: number, slivers: readonly SliverSpecInput[], name: Lent): number {
  const caps = slivers.map(({ rspec }) => rspec?.[name] ?? 0);
  return caps.includes(0) ? 0 : Math.max(0, capacity - caps.reduce((sum, cap) => sum + cap, 0));
}
