import { isDeepStrictEqual } from "node:util";
import {
  type Edit,
  type Loan,
  MAX_LOANS,
  type NodeDocument,
  type Rspec,
  type SliverSpecInput,
} from "@nodeyard/sliver-protocol";
import { LENT, type Lent, loansOf, type Party, POLICY } from "./rule.ts";

/** Which slivers of a machine lend to each other, and which amounts are free. */
export interface Lending {
  /** The caps that a sliver lends and borrows. */
  lent(spec: SliverSpecInput): readonly Lent[];
  /** Caps that no sliver has. `slivers` are in the document; `ending` slivers have left it but still exist. */
  free(slivers: readonly SliverSpecInput[], ending: number): Readonly<Partial<Rspec>>;
}

/** Name of the entry for the unassigned part of a machine. It is in the document only while a sliver borrows from it, and never runs. */
export const FREE = "free";

/** Tags of a sliver: `use` is "idle" while no client uses it; `turn` counts how often it was given to a client. */
const USE = "use";
const TURN = "turn";

/** Marks the sliver as idle, in its present turn. */
export function setIdle(spec: SliverSpecInput): SliverSpecInput {
  return { ...spec, tags: { ...spec.tags, [USE]: "idle", [TURN]: String(turnOf(spec)) } };
}

/** Marks the sliver as busy in a new turn. Decisions that were based on an earlier turn are then void. */
export function setBusy(spec: SliverSpecInput): SliverSpecInput {
  return { ...spec, tags: { ...spec.tags, [USE]: "busy", [TURN]: String(turnOf(spec) + 1) } };
}

/** Slivers without the tag are busy. */
export function isIdle({ tags }: Pick<SliverSpecInput, "tags">): boolean {
  return tags?.[USE] === "idle";
}

/** 0 for a sliver that was never woken. */
export function turnOf({ tags }: Pick<SliverSpecInput, "tags">): number {
  const turn = Number(tags?.[TURN] ?? 0);
  return Number.isSafeInteger(turn) ? turn : 0;
}

/**
 * Combines an edit with the loans that follow from the slivers after it. Changes no loans that are right. Without `lending` there are none.
 * `tags` are for the entry of free amounts.
 */
export function withLoans(
  edit: Edit,
  lending: Lending | undefined,
  tags: Readonly<Record<string, string>>,
): Edit {
  return (slivers, now) => {
    edit(slivers, now);
    // An older manager does not report its loans, so they must not be overwritten.
    if (now.loans === undefined) return;
    const real = [...slivers.values()].filter(({ name }) => name !== FREE);
    const parties = lending === undefined ? [] : real.map((spec) => partyOf(spec, lending.lent(spec)));
    // The unassigned part of the machine.
    const rspec = lending?.free(real, endingIn(slivers, now)) ?? {};
    const free: Party = { name: FREE, generation: 1, use: "free", rspec };
    const loans = loansOf([...parties, free], LENT);
    if (loans.has(FREE)) slivers.set(FREE, freeSpec(free, tags, now));
    else slivers.delete(FREE);
    for (const [name, spec] of [...slivers]) setLoans(slivers, spec, now.loans[name] ?? [], loans.get(name));
  };
}

/** Number of slivers that have left the document but still exist. Their amounts are not free yet. */
function endingIn(slivers: ReadonlyMap<string, SliverSpecInput>, now: NodeDocument): number {
  const leaving = now.slivers.map(({ name }) => name).filter((name) => name !== FREE && !slivers.has(name));
  return new Set([...leaving, ...now.unlisted]).size;
}

/** The sliver for the rule, with 0 for the caps that it neither lends nor borrows. */
function partyOf(spec: SliverSpecInput, lent: readonly Lent[]): Party {
  const { name, generation, rspec = {} } = spec;
  const others = LENT.filter((one) => !lent.includes(one)).map((one) => [one, 0] as const);
  const use = isIdle(spec) ? "idle" : "busy";
  return { name, generation, use, rspec: { ...rspec, ...Object.fromEntries(others) } };
}

/** The entry for free amounts. An equal entry of the document is reused. */
function freeSpec(
  { name, generation, rspec }: Party,
  tags: Readonly<Record<string, string>>,
  now: NodeDocument,
): SliverSpecInput {
  const before = now.slivers.find((one) => one.name === FREE);
  const same =
    before !== undefined &&
    isDeepStrictEqual(before.tags, tags) &&
    LENT.every((resource) => (rspec[resource] ?? before.rspec[resource]) === before.rspec[resource]);
  return same
    ? before
    : { name, generation, instantiation: "not-instantiated", rspec: { ...rspec, disk: 0 }, tags };
}

/** Sets the loans of a sliver. Loans that its own client made stay and come first. When the list is full, further loans are left out. */
function setLoans(
  slivers: Map<string, SliverSpecInput>,
  { loans: _earlier, ...spec }: SliverSpecInput,
  has: readonly Loan[],
  policy: readonly Loan[] = [],
): void {
  const wanted = [...has.filter(({ by }) => by !== POLICY), ...policy].slice(0, MAX_LOANS);
  const same = isDeepStrictEqual(wanted, [...has]);
  // A list that the document does not name stays unchanged, so that loans which its client makes meanwhile are kept.
  if (!same) slivers.set(spec.name, { ...spec, loans: wanted });
  else if (_earlier !== undefined) slivers.set(spec.name, spec);
}
