import { type NodeUse, type NodeUses, tagOf } from "@nodeyard/driver";
import type { Edit, SliverSpecInput } from "@nodeyard/sliver-protocol";
import { lends, markUse } from "./lending/index.ts";
import type { Seen, SliverHosts } from "./sliver-hosts.ts";

/** Marks slivers of unused nodes as idle, so that they lend, and slivers of used nodes as busy. Machines that do not answer are left out. */
export async function reconcileUses(hosts: SliverHosts, uses: NodeUses, signal: AbortSignal): Promise<void> {
  // The machines must be asked before the tree; `Handover.reconcile` says why.
  const seen = (await hosts.seen(signal)).filter(({ report }) => report.slivers.some(lends));
  if (seen.length === 0) return;
  const tags = seen.flatMap(({ report }) =>
    report.slivers.filter(lends).flatMap((sliver) => tagOf(sliver.tags) ?? []),
  );
  const known = await uses(tags);
  await Promise.all(seen.map((one) => mark(one, known, signal)));
}

/** Writes only when something changes. Wrong loans are corrected by the same write. */
async function mark(
  { host, report }: Seen,
  known: ReadonlyMap<string, NodeUse>,
  signal: AbortSignal,
): Promise<void> {
  const before = new Map(report.slivers.map((sliver) => [sliver.name, sliver]));
  const useOf = ({ tags }: SliverSpecInput) => known.get(tagOf(tags ?? {})?.nodeId ?? "");
  const marked: Edit = (slivers) => {
    for (const [name, spec] of [...slivers])
      if (lends(spec)) slivers.set(name, markUse(spec, before.get(name), useOf(spec)));
  };
  await host.changeOfPool(marked, signal);
}
