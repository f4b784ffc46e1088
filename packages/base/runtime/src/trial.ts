/** Results of the starts from one version of an image. */
export interface BootTally {
  readonly boots: number;
  /** Starts after which the machine did not answer. */
  readonly failed: number;
  /** Sum of the natural logarithms of the boot times in seconds, and sum of their squares: mean and variance follow from them. */
  readonly logs: number;
  readonly squares: number;
}

/** The tally of a version without starts. */
export const noBoots: BootTally = { boots: 0, failed: 0, logs: 0, squares: 0 };

/** Adds one start. `ms` is its boot time; undefined when it failed. */
export function withBoot(tally: BootTally, ms: number | undefined): BootTally {
  if (ms === undefined) return { ...tally, failed: tally.failed + 1 };
  const log = Math.log(Math.max(1, ms) / 1000);
  return {
    ...tally,
    boots: tally.boots + 1,
    logs: tally.logs + log,
    squares: tally.squares + log * log,
  };
}

/** A version on trial: since when, and how it and all others have fared since. */
export interface Trial {
  /** Milliseconds since the Unix epoch. */
  readonly since: number;
  readonly tallies: { readonly candidate: BootTally; readonly stable: BootTally };
}

/** When a trial ends. */
export interface TrialRules {
  /** Launches of the candidate after which it is promoted, if nothing speaks against it. */
  readonly launches: number;
  /** How long a trial lasts at most, milliseconds. */
  readonly maxAgeMs: number;
}

/** The verdict on a trial, with its reason for operators. */
export type TrialOutcome =
  | { readonly verdict: "promoted" | "rolled-back"; readonly why: string }
  | { readonly verdict: "wait"; readonly why: string };

/** Multiples of the golden ratio fill [0, 1) evenly: of starts numbered one after another just the share is drawn. */
const GOLDEN = 0.6180339887498949;

/** Whether the start of that number is of the version on trial. Everybody who asks gets the same answer. `share`: 0 to 1. */
export function isDrawn(number: number, share: number): boolean {
  return (number * GOLDEN) % 1 < share;
}

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
export function judgeTrial(trial: Trial, rules: TrialRules, now: number): TrialOutcome {
  const { candidate, stable } = trial.tallies;
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
  if (now - trial.since < rules.maxAgeMs)
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
