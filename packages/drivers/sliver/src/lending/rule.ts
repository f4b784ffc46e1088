import type { Loan, Rspec } from "@nodeyard/sliver-protocol";

/** What policy lends: caps, which would be unused while their sliver is idle. Unused shares and guarantees are available to others without a loan. */
export const LENT = ["cpuCap", "netCap", "ioRead"] as const;

export type Lent = (typeof LENT)[number];

/** Value of `by` for loans made by policy. */
export const POLICY = "policy";

/** A sliver of a machine, or the free part of the machine, for the computation of loans. */
export interface Party {
  readonly name: string;
  readonly generation: number;
  /** "free": nothing runs in it, so it keeps only the required minimum. */
  readonly use: "busy" | "idle" | "free";
  readonly rspec: Readonly<Partial<Rspec>>;
}

/** Amounts that the manager requires every lender to keep (docs/contract/slivers.md, "Loans"; of the two revisions the larger). */
const KEPT: Readonly<Record<Lent, number>> = {
  cpuCap: 10,
  netCap: 8_000,
  ioRead: 1_048_576,
};

/** An idle sliver keeps this part (one tenth) of its caps, so that it can still answer checks and wake up. */
const IDLE_PART = 10;

/**
 * The loans of one machine, by lender. The busy parties get in equal parts all that idle and free parties have above their floor. A busy
 * party lends nothing. A party without a cap neither lends nor borrows. There are fewer loans of a resource than parties. The result does
 * not depend on the order of the parties.
 */
export function loansOf(
  parties: readonly Party[],
  resources: readonly Lent[],
): ReadonlyMap<string, readonly Loan[]> {
  // The oldest first. Every writer must come to the same loans, or they would change the document in turns.
  const sorted = [...parties].sort((a, b) => a.generation - b.generation || (a.name < b.name ? -1 : 1));
  const loans = new Map<string, Loan[]>();
  for (const resource of resources)
    for (const { from, to, amount } of transfers(sorted, resource)) {
      const loan: Loan = { to: to.name, generation: to.generation, resource, amount, by: POLICY };
      loans.set(from.name, [...(loans.get(from.name) ?? []), loan]);
    }
  return loans;
}

/** What one party gives another, of one resource. */
interface Transfer {
  readonly from: Party;
  readonly to: Party;
  readonly amount: number;
}

/** Pairs lenders and borrowers in order: a lender with nothing left and a borrower with its full part are skipped. */
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

/** The amount of a resource that a party can lend; 0 without a cap. */
export function surplusOf({ use, rspec }: Party, resource: Lent): number {
  const cap = rspec[resource] ?? 0;
  const idle = Math.max(guaranteeOf(rspec, resource), Math.ceil(cap / IDLE_PART));
  return Math.max(0, cap - Math.max(KEPT[resource], use === "idle" ? idle : 0));
}

/** A cap is never lent below its guarantee; reads and writes have none. */
function guaranteeOf(rspec: Party["rspec"], resource: Lent): number {
  if (resource === "cpuCap") return rspec.cpuGuarantee ?? 0;
  return resource === "netCap" ? (rspec.netGuarantee ?? 0) : 0;
}
