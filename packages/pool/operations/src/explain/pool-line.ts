import type { PoolOutlook } from "@nodeyard/asking";
import { unknownMeaning, verdictMeaning } from "./meaning.ts";
import { reason } from "./reason.ts";

/** Where a subject stands in one pool, and the launcher that serves the pool. */
export type PoolLine = ReturnType<typeof poolLine>;

/**
 * What a launcher says of a subject in one of its pools, for programs. `member`: the launcher's name under `/nodeyard/members`;
 * `host`: where it runs.
 */
export function poolLine({ unknown, ...outlook }: PoolOutlook, member: string, host: string) {
  return {
    ...reason({ ...outlook, member, host }, verdictMeaning(outlook.code, outlook.facts)),
    estimate: estimateOf(outlook),
    /** Null also where the request is not served. */
    no_estimate: unknown && unknownMeaning(unknown),
  };
}

/** When the pool is likely to deliver, from now. */
function estimateOf({ pool, estimate }: Pick<PoolOutlook, "pool" | "estimate">) {
  if (estimate === null) return null;
  const { likelyMs, fromMs, toMs, launches, uses } = estimate;
  return {
    pool,
    likely_seconds: likelyMs / 1_000,
    from_seconds: fromMs / 1_000,
    to_seconds: toMs / 1_000,
    launches,
    uses,
  };
}

/** The estimate of the pool that is likely to deliver first; null: no pool has one. */
export function soonest(pools: readonly PoolLine[]): PoolLine["estimate"] {
  // Once one pool serves it, estimates of other pools do not matter.
  const serving = pools.filter(({ outlook }) => outlook === "serves");
  const estimates = (serving.length > 0 ? serving : pools).flatMap(({ estimate }) => estimate ?? []);
  return estimates.sort((a, b) => a.likely_seconds - b.likely_seconds)[0] ?? null;
}

/** Orders by the next try; those without a known time come last, because only an event or an operator ends them. */
export function byNextTry(
  a: { readonly next_try: string | null },
  b: { readonly next_try: string | null },
): number {
  const at = ({ next_try: time }: typeof a) => (time === null ? Number.POSITIVE_INFINITY : Date.parse(time));
  return at(a) - at(b);
}
