import type { Loan, LoanRefusal, LoanStatus, Resource, Rspec } from "@nodeyard/sliver-protocol";
import { type Policy, ZERO_IS_UNLIMITED } from "./profiles.ts";
import type { SliverRecord } from "./record.ts";

/** Effective rspecs after loans, and the status of each loan. */
export interface LoanResult {
  readonly effective: ReadonlyMap<string, Rspec>;
  /** For each lender, in the order of its list. */
  readonly loanStatuses: ReadonlyMap<string, readonly LoanStatus[]>;
}

type Amounts = { -readonly [name in Resource]: number };

/**
 * The rspec of each sliver after the loans that it gives and receives (docs/contract/slivers.md, "Loans"). Only amounts from documents can
 * be lent, and no borrowed ones, so the result does not depend on the order of lenders. The loans of a lender are applied in the order of
 * its list; a loan that does not fit is skipped and reported. `now` is in seconds.
 */
export function computeLoans(
  records: ReadonlyMap<string, SliverRecord>,
  minimums: Policy["minimums"],
  now: number,
): LoanResult {
  const slivers = [...records.values()].filter(({ kind }) => kind === "sliver");
  const effective = new Map<string, Amounts>(slivers.map(({ name, rspec }) => [name, { ...rspec }]));
  const loanStatuses = new Map<string, LoanStatus[]>();
  for (const lender of slivers) {
    // Of its own rspec and not of what it borrowed.
    const residual: Amounts = { ...lender.rspec };
    const list = lender.local.loans.map((loan) => {
      const borrower = records.get(loan.to);
      const refusal = refusalOf(loan, borrower, residual, minimums, now);
      if (refusal !== undefined) return { ...loan, honoured: false, refusal };
      residual[loan.resource as Resource] -= loan.amount;
      effective.get(lender.name)![loan.resource as Resource] -= loan.amount;
      effective.get(loan.to)![loan.resource as Resource] += loan.amount;
      return { ...loan, honoured: true };
    });
    loanStatuses.set(lender.name, list);
  }
  return { effective, loanStatuses };
}

/** Why a loan does not count now; undefined: it does. */
function refusalOf(
  loan: Loan,
  borrower: SliverRecord | undefined,
  residual: Rspec,
  minimums: Policy["minimums"],
  now: number,
): LoanRefusal | undefined {
  const resource = loan.resource as Resource;
  const minimum = minimums[resource];
  // A list may be older than the table of what can be lent; the old manager stopped working at such an entry.
  if (minimum === undefined) return "not-loanable";
  if (loan.until !== undefined && loan.until < now) return "ended";
  // An amount that the lender cannot give is refused for every borrower: else the answer would tell whether the borrower exists.
  if (loan.amount > residual[resource] - minimum) return "floor";
  if (borrower?.kind !== "sliver") return "absent";
  if (loan.generation !== undefined && loan.generation !== borrower.generation) return "generation";
  // A borrower without a limit would get one by the loan.
  return ZERO_IS_UNLIMITED.has(resource) && borrower.rspec[resource] === 0 ? "not-loanable" : undefined;
}

/**
 * The loans as a lender sees them; root and the launcher see all. A loan that moves nothing shows nothing about its borrower, so that a
 * sliver cannot find out which other slivers exist without giving something away.
 */
export function shownToLender(loans: readonly LoanStatus[]): readonly LoanStatus[] {
  return loans.map((loan) => {
    if (loan.honoured && loan.amount > 0) return loan;
    const { generation, refusal, ...rest } = loan;
    const own = refusal === "floor" || refusal === "ended";
    return { ...rest, honoured: false, refusal: own ? refusal : "absent" };
  });
}
