import { z } from "zod";

const amounts = z.record(z.string(), z.number());

const loan = z.object({
  to: z.string().describe("a sliver of the same machine"),
  resource: z.string(),
  amount: z.number(),
  refused: z.string().nullable().describe("null: it is in force"),
});

const sliver = z.object({
  name: z.string(),
  node: z.string().nullable().describe("null: it is no node of this installation"),
  use: z
    .enum(["busy", "idle", "free"])
    .describe("free: the part of the machine that no sliver has, while it is lent"),
  phase: z.string(),
  doing: z.string().nullable().describe("the operation under way"),
  held: z.boolean().describe("its document holds it: it is suspended"),
  settled: z.boolean().nullable().describe("it is as its document says; null: not known"),
  error: z.string().nullable(),
  remarks: z
    .array(z.string())
    .describe("what explains how its jobs fare: kills for memory, a used up budget"),
  usage: amounts.describe("what it uses, since its start where it adds up"),
  guarantees: amounts.describe("named as in the provider's quota, as are caps, borrowed and uses"),
  caps: amounts.describe("the most that it may use now, loans included; absent: no cap of its own"),
  borrowed: amounts.describe("what loans add to its caps; below 0: what it lends"),
  uses: amounts.describe("what it uses now; absent: not measured"),
  rspec: amounts.describe("in the sliver manager's names and units, as all below"),
  effective: amounts.describe("the rspec after loans"),
  loans: z.array(loan),
});

const cache = z.object({
  id: z.string(),
  name: z.string(),
  key: z.array(z.string()).describe("installation, tenant, and what its label says"),
  bytes: z.number(),
  began: z.number().describe("seconds since the Unix epoch, as all times below"),
  committed: z.number(),
  by: z.string().describe("the sliver that left its present version"),
  node: z.string().nullable().describe("the node that this sliver was; null: of none of this installation"),
  used: z.number(),
  hits: z.number().describe("slivers that began with a copy of it"),
  lost: z.number().describe("versions that another one replaced which did not come of them"),
  pinned: z.boolean(),
});

/** What a launcher reports of a machine, and REST describes. */
export const sliverMachine = z.object({
  name: z.string(),
  error: z.string().nullable().describe("why nothing is known of it, or nothing is done to it"),
  capacity: amounts.describe("what it guarantees at most, named as in the provider's quota"),
  guaranteed: amounts,
  uses: amounts.describe("what its slivers use together, as far as it is measured"),
  remarks: z
    .array(z.string())
    .describe(
      "faults; updates of its images that are tried, or how they ended; slivers that ended after they were killed for memory",
    ),
  faults: z
    .object({
      counting: z
        .boolean()
        .describe("disk limits do not hold until its file system has counted again what slivers use"),
      waitingThreads: z.int().describe("operations on files that have waited for half a minute"),
    })
    .exactOptional()
    .describe("absent: it does not answer"),
  caches: z.array(cache).describe("what its slivers left to later ones"),
  spares: z
    .array(
      z.object({
        phase: z.string(),
        image: z.string().nullable().describe("null: the machine's default image"),
        nesting: z.boolean(),
      }),
    )
    .describe("slivers without a login that are kept ready, to become the next ones"),
  slivers: z.array(sliver),
});

/** A machine with its slivers, among them the part that no sliver has while one borrows from it. */
export type SliverMachine = Unchanged<z.infer<typeof sliverMachine>>;

/** The same, which nobody changes. */
type Unchanged<T> = T extends object ? { readonly [Key in keyof T]: Unchanged<T[Key]> } : T;
