import type { Loan, Rspec } from "@nodeyard/sliver-protocol";

/** What policy lends: caps, which nobody has the use of while their owner is idle. Shares and guarantees lend themselves. */
export const LENT = ["cpuCap", "netCap", "ioRead", "ioWrite"] as const;

export type Lent = (typeof LENT)[number];

/** `by` of a loan that policy made. */
export const POLICY = "policy";

/** A sliver of a machine, or what is free of it, as far as lending goes. */
export interface Party {
  readonly name: string;
  readonly generation: number;
  /** "free": nothing runs in it, so it keeps no more than the arithmetic wants. */
  readonly use: "busy" | "idle" | "free";
  readonly rspec: Readonly<Partial<Rspec>>;
}

/** What the manager makes every lender keep (docs/contract/slivers.md, "Loans"; of the two revisions the larger). */
const KEPT: Readonly<Record<Lent, number>> = {
  cpuCap: 10,
  netCap: 8_000,
  ioRead: 1_048_576,
  ioWrite: 1_048_576,
};

/** An idle sliver still answers: to whoever looks whether it is there, and when it is woken. */
const IDLE_PART = 10;

/**
 * The loans of one machine, by lender: what idle and free parties have above their floor goes to the busy ones in equal parts. Nothing of a
 * busy one is lent, and what has no cap neither lends nor borrows. Of one resource there are fewer loans than parties. The same parties
 * in another order give the same loans.
 */
export function loansOf(
  parties: readonly Party[],
  resources: readonly Lent[],
): ReadonlyMap<string, readonly Loan[]> {
  const sorted = [...parties].sort((a, b) => a.generation - b.generation || (a.name < b.name ? -1 : 1));
  const loans = new Map<string, Loan[]>();
  for (const resource of resources)
    for (const { from, to, amount } of transfers(sorted, resource)) {
      const loan: Loan = { to: to.name, generation: to.generation, resource, amount, by: POLICY };
      loans.set(from.name, [...(loans.get(from.name) ?? []), loan]);
    }
  return loans;
}

interface Transfer {
  readonly from: Party;
  readonly to: Party;
  readonly amount: number;
}

/** Lenders and borrowers side by side: who has given all goes, and who has got his part goes. */
function transfers(parties: readonly Party[], resource: Lent): Transfer[] {
  const borrowers = parties.filter(({ use, rspec }) => use === "busy" && (rspec[resource] ?? 0) > 0);
  const lenders = parties
    .filter(({ use }) => use !== "busy")
    .map((from) => ({ from, left: surplusOf(from, resource) }))
    .filter(({ left }) => left > 0);
  const total = lenders.reduce((sum, { left }) => sum + left, 0);
  const made: Transfer[] = [];
  let at = 0;
  for (const [place, to] of borrowers.entries()) {
    let wanted = Math.floor(total / borrowers.length) + (place < total % borrowers.length ? 1 : 0);
    while (wanted > 0) {
      const lender = lenders[at]!;
      const amount = Math.min(wanted, lender.left);
      made.push({ from: lender.from, to, amount });
      wanted -= amount;
      lender.left -= amount;
      if (lender.left === 0) at += 1;
    }
  }
  return made;
}

/** What a party can lend of a resource; 0 where it has no cap. */
export function surplusOf({ use, rspec }: Party, resource: Lent): number {
  const cap = rspec[resource] ?? 0;
  const idle = Math.max(guaranteeOf(rspec, resource), Math.ceil(cap / IDLE_PART));
  return Math.max(0, cap - Math.max(KEPT[resource], use === "idle" ? idle : 0));
}

function guaranteeOf(rspec: Party["rspec"], resource: Lent): number {
  if (resource === "cpuCap") return rspec.cpuGuarantee ?? 0;
  return resource === "netCap" ? (rspec.netGuarantee ?? 0) : 0;
}
