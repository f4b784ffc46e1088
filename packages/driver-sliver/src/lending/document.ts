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

/** Who of a machine's slivers lend to each other, and what is free. */
export interface Lending {
  /** Caps of a sliver that it lends and borrows. */
  lent(spec: SliverSpecInput): readonly Lent[];
  /** Caps that no sliver has: `slivers` are in the document, and `ending` have left it and are still there. */
  free(slivers: readonly SliverSpecInput[], ending: number): Readonly<Partial<Rspec>>;
}

/** The part of a machine that no sliver has. It is in the document only while somebody borrows it, and is never made. */
export const FREE = "free";

/** Tags of a sliver: `idle` while nobody uses it, and how often it was given to somebody. */
const USE = "use";
const TURN = "turn";

/**
 * Makes the loans of a document follow from its slivers; to be called last in every edit of it. Where they do so already it changes nothing.
 * `lending` undefined: there are none. `tags` are for what is free.
 */
export function lend(
  slivers: Map<string, SliverSpecInput>,
  now: NodeDocument,
  lending: Lending | undefined,
  tags: Readonly<Record<string, string>>,
): void {
  // Of lists that nobody tells us none is written over.
  if (now.loans === undefined) return;
  const real = [...slivers.values()].filter(({ name }) => name !== FREE);
  const parties = lending === undefined ? [] : real.map((spec) => partyOf(spec, lending.lent(spec)));
  const free = freeParty(lending?.free(real, endingIn(slivers, now)) ?? {});
  const loans = loansOf([...parties, free], LENT);
  if (loans.has(FREE)) slivers.set(FREE, freeSpec(free, tags, now));
  else slivers.delete(FREE);
  for (const [name, spec] of [...slivers]) setLoans(slivers, spec, now.loans[name] ?? [], loans.get(name));
}

/** Nobody uses it, in this turn. */
export function setIdle(spec: SliverSpecInput): SliverSpecInput {
  return { ...spec, tags: { ...spec.tags, [USE]: "idle", [TURN]: String(turnOf(spec)) } };
}

/** It is somebody's from now on: whoever saw it in an earlier turn knows nothing of it. */
export function setBusy(spec: SliverSpecInput): SliverSpecInput {
  return { ...spec, tags: { ...spec.tags, [USE]: "busy", [TURN]: String(turnOf(spec) + 1) } };
}

export function isIdle({ tags }: Pick<SliverSpecInput, "tags">): boolean {
  return tags?.[USE] === "idle";
}

export function turnOf({ tags }: Pick<SliverSpecInput, "tags">): number {
  const turn = Number(tags?.[TURN] ?? 0);
  return Number.isSafeInteger(turn) ? turn : 0;
}

/** An edit and the loans that follow from it. */
export function withLoans(
  edit: Edit,
  lending: Lending | undefined,
  tags: Readonly<Record<string, string>>,
): Edit {
  return (slivers, now) => {
    edit(slivers, now);
    lend(slivers, now, lending, tags);
  };
}

/** They have left the document, and what they had is theirs until nothing of them is left. */
function endingIn(slivers: ReadonlyMap<string, SliverSpecInput>, now: NodeDocument): number {
  const leaving = now.slivers.map(({ name }) => name).filter((name) => name !== FREE && !slivers.has(name));
  return new Set([...leaving, ...now.unlisted]).size;
}

function partyOf(spec: SliverSpecInput, lent: readonly Lent[]): Party {
  const { name, generation, rspec = {} } = spec;
  const others = LENT.filter((one) => !lent.includes(one)).map((one) => [one, 0] as const);
  const use = isIdle(spec) ? "idle" : "busy";
  return { name, generation, use, rspec: { ...rspec, ...Object.fromEntries(others) } };
}

function freeParty(rspec: Party["rspec"]): Party {
  return { name: FREE, generation: 1, use: "free", rspec };
}

/** As the document has it, where it says the same. */
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

/** Loans that its own user made stay, and come first, as they did before; who has none left in a list that is full gets none. */
function setLoans(
  slivers: Map<string, SliverSpecInput>,
  { loans: _earlier, ...spec }: SliverSpecInput,
  has: readonly Loan[],
  policy: readonly Loan[] = [],
): void {
  const wanted = [...has.filter(({ by }) => by !== POLICY), ...policy].slice(0, MAX_LOANS);
  const same = isDeepStrictEqual(wanted, [...has]);
  // A list that is not named stays as it is, whatever its user does to it meanwhile.
  if (!same) slivers.set(spec.name, { ...spec, loans: wanted });
  else if (_earlier !== undefined) slivers.set(spec.name, spec);
}
