import type { BootTally, Canary } from "@nodeyard/model";

export interface CanaryRules {
  /** Launches of the candidate after which it is promoted, if nothing speaks against it. */
  readonly launches: number;
  /** How long a trial lasts at most, milliseconds. */
  readonly maxAgeMs: number;
}

export type TrialOutcome =
  | { readonly verdict: "promoted" | "rolled-back"; readonly why: string }
  | { readonly verdict: "wait"; readonly why: string };

/** A candidate may fail this much oftener than the others before it counts as worse: images that differ a little are no news. */
const TOLERATED_FAILURES = 0.05;
/** And its boots may take this many times as long. */
const TOLERATED_SLOWDOWN = 1.5;
/** Chance that one look condemns a candidate that is just within these limits. With some tens of looks the whole stays below a few percent. */
const ALPHA = 0.001;
/** The normal distribution's quantile of 1 - ALPHA. */
const Z = 3.09;
/** Boots of each side from which on times are compared. */
const LEAST_BOOTS = 5;

/**
 * Judges a trial. Rolled back: with the failure rate of the other builds plus the tolerance, so many failures would have a probability
 * of at most ALPHA (one-sided binomial test); or the mean logarithm of its boot times exceeds the tolerated one by more than chance
 * explains (one-sided, normal); or most of its launches failed by the end of the trial. Promoted: the trial had its number of launches
 * or its time, and none of these holds. Pure.
 */
export function judgeCanary(canary: Canary, rules: CanaryRules, now: number): TrialOutcome {
  const { candidate, stable } = canary.tallies;
  const launches = candidate.boots + candidate.failed;
  const tried = `${candidate.failed} of ${launches} launches failed`;
  const others = `${stable.failed} of ${stable.boots + stable.failed} of the others`;
  if (failsOftener(candidate, stable)) return { verdict: "rolled-back", why: `${tried}, against ${others}` };
  const slower = slowdown(candidate, stable);
  if (slower !== undefined) {
    const why = `it boots in ${seconds(candidate)} s, the others in ${seconds(stable)} s`;
    return { verdict: "rolled-back", why };
  }
  if (launches >= rules.launches) {
    // A short trial may end before chance is out of the question.
    const verdict = failsMostly(candidate, stable) ? "rolled-back" : "promoted";
    return { verdict, why: `${tried}, against ${others}` };
  }
  if (now - canary.since < rules.maxAgeMs)
    return { verdict: "wait", why: `${tried}; decided after ${rules.launches} launches` };
  // The image is rarely launched; few results are no reason to keep the old build for ever.
  return candidate.failed === 0
    ? { verdict: "promoted", why: `the trial time ended without a failure: ${tried}` }
    : {
        verdict: "rolled-back",
        why: `the trial time ended with too few launches to accept failures: ${tried}`,
      };
}

function failsOftener(candidate: BootTally, stable: BootTally): boolean {
  const launches = candidate.boots + candidate.failed;
  // With one success and one failure added, so that few launches claim little (the rule of succession).
  const rate = (stable.failed + 1) / (stable.boots + stable.failed + 2);
  // Nothing known of the others is no licence: then one in five is the most that is thought normal.
  const usual = Math.min(0.2, rate) + TOLERATED_FAILURES;
  return candidate.failed > 0 && atLeast(candidate.failed, launches, usual) <= ALPHA;
}

/** More than half of its launches, and more than the others. */
function failsMostly(candidate: BootTally, stable: BootTally): boolean {
  const share = ({ boots, failed }: BootTally) => failed / Math.max(1, boots + failed);
  return share(candidate) > Math.max(0.5, share(stable));
}

/** Probability of `least` or more successes in `tries`, each of chance `p`. */
export function atLeast(least: number, tries: number, p: number): number {
  let term = (1 - p) ** tries;
  let below = 0;
  for (let count = 0; count < least; count++) {
    below += term;
    term *= ((tries - count) / (count + 1)) * (p / (1 - p));
  }
  return Math.max(0, 1 - below);
}

/** How many times as long its boots surely take; undefined: not surely more than is tolerated. */
function slowdown(candidate: BootTally, stable: BootTally): number | undefined {
  if (candidate.boots < LEAST_BOOTS || stable.boots < LEAST_BOOTS) return undefined;
  const [ours, theirs] = [spread(candidate), spread(stable)];
  const error = Math.sqrt(ours.variance / candidate.boots + theirs.variance / stable.boots);
  const surely = ours.mean - theirs.mean - Z * error;
  return surely > Math.log(TOLERATED_SLOWDOWN) ? Math.exp(surely) : undefined;
}

function spread({ boots, logs, squares }: BootTally): { readonly mean: number; readonly variance: number } {
  const mean = logs / boots;
  return { mean, variance: Math.max(0, (squares - boots * mean * mean) / (boots - 1)) };
}

function seconds({ boots, logs }: BootTally): string {
  return Math.exp(logs / boots).toFixed(1);
}
