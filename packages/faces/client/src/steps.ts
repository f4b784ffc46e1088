// Steps of a node's life as a page and a terminal draw them. No other module is imported: a browser loads this file too.

/** A step in the life of a node, from `explain`. */
export interface Step {
  readonly node: string;
  /** "launch", "clean-up", "delete", or "life" for the time between them. */
  readonly of: string;
  /** From 1. */
  readonly attempt: number;
  readonly step: string;
  /** ISO 8601, by the tree's clock; null: not a valid time. */
  readonly began: string | null;
  /** Null while the step is in progress. */
  readonly seconds: number | null;
  readonly error: string | null;
}

/** A step with its name, its duration and its place on the time line. */
export interface Bar {
  readonly step: Step;
  /** "launch 2: boot", preceded by the node where steps of several nodes are shown. */
  readonly name: string;
  /** Until now while the step is in progress. */
  readonly seconds: number;
  /** Its beginning and end as fractions of the whole, 0 to 1. Undefined for the time between launch and deletion. */
  readonly place: { readonly from: number; readonly to: number } | undefined;
}

/**
 * Position of each step on the time line. The time during which the node is only in use is left out of the scale: with hours of it, the
 * other steps would be too narrow to see. `now` is tree time, milliseconds.
 */
export function bars(steps: readonly Step[], now: number): readonly Bar[] {
  const timed = steps.map((step) => {
    const began = step.began === null ? now : Date.parse(step.began);
    return { step, began, end: step.seconds === null ? Math.max(began, now) : began + step.seconds * 1_000 };
  });
  const start = Math.min(...timed.map(({ began }) => began));
  const idle = timed.filter(({ step }) => step.of === "life");
  const axis = (at: number) =>
    idle.reduce(
      (sum, { began, end }) => sum - Math.max(0, Math.min(at, end) - began),
      Math.max(0, at - start),
    );
  const whole = Math.max(1, ...timed.map(({ end }) => axis(end)));
  // Steps of several nodes overlap: the service of one may be longer than all steps of another, which leaves the scale otherwise.
  const fraction = (at: number) => Math.min(1, Math.max(0, axis(at) / whole));
  const several = new Set(steps.map(({ node }) => node)).size > 1;
  return timed.map(({ step, began, end }) => ({
    step,
    name: nameOf(step, several),
    seconds: (end - began) / 1_000,
    place: step.of === "life" ? undefined : { from: fraction(began), to: fraction(end) },
  }));
}

function nameOf({ node, of, attempt, step }: Step, several: boolean): string {
  const what = of === "life" ? step : `${of}${attempt > 1 ? ` ${attempt}` : ""}: ${step}`;
  return several ? `${node} ${what}` : what;
}

/** Duration of a step: "28 ms", "1.3 s", "1 min". */
export function took(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1_000)} ms`;
  return seconds < 10 ? `${seconds.toFixed(1)} s` : span(seconds);
}

/** Duration in its two largest units, from seconds to days: "59 s", "3 h 20 min", "2 d 4 h". */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return hours % 24 === 0 ? `${Math.floor(hours / 24)} d` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
