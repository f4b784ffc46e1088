import type { Call } from "./pool-site.ts";
import { listed, type Seeded } from "./seed.ts";

/** Each view of the page by name, as its address has it, of a seeded pool. */
export async function views(
  call: Call,
  { granted, waiting, held }: Seeded,
): Promise<ReadonlyMap<string, string>> {
  const [lease] = await listed(call, `/v1/leases?id=${waiting}`);
  const [delivered] = await listed(call, `/v1/leases?id=${granted}`);
  return new Map([
    ["overview", ""],
    ["requests", "requests"],
    ["request", `requests/${lease!.request}`],
    ["nodes", "nodes"],
    ["node", `nodes/${(delivered!.nodes as readonly string[])[0]}`],
    ["held-node", `nodes/${held}`],
    ["leases", "leases"],
    ["lease", `leases/${granted}`],
    ["images", "images"],
    ["image", "images/debian-trixie"],
    ["providers", "providers"],
    ["provider", "providers/east"],
    ["slivers", "slivers"],
    ["plan", "plan"],
    ["audit", "audit"],
    ["label", "labels/arm-board"],
    ["why", "why?q=nothing"],
  ]);
}
