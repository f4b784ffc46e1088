/** A step in the life of a node, from `explain`. */
export interface Step {
  readonly node: string;
  /** "launch", "clean-up", "delete", or "life" for the time between them. */
  readonly of: string;
  readonly attempt: number;
  readonly step: string;
  readonly began: string | null;
  /** Null while the step is under way. */
  readonly seconds: number | null;
  readonly error: string | null;
}

/** A step with its place: `from` and `width` are fractions of the whole, 0 to 1. Undefined for the time between launch and deletion. */
export interface Bar {
  readonly step: Step;
  readonly name: string;
  readonly seconds: number;
  readonly place: { readonly from: number; readonly width: number } | undefined;
}

/**
 * Position of each step on the time line. The time during which the node is only in use is left out of the scale: with hours of it, the
 * other steps would be too narrow to see. `now` in milliseconds.
 */
export function bars(steps: readonly Step[], now: number): readonly Bar[] {
  const timed = steps.map((step) => {
    const began = Date.parse(step.began ?? "") || now;
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
  const several = new Set(steps.map(({ node }) => node)).size > 1;
  return timed.map(({ step, began, end }) => {
    const from = axis(began) / whole;
    const place = step.of === "life" ? undefined : { from, width: axis(end) / whole - from };
    return { step, name: nameOf(step, several), seconds: (end - began) / 1_000, place };
  });
}

function nameOf({ node, of, attempt, step }: Step, several: boolean): string {
  const what = of === "life" ? step : `${of}${attempt > 1 ? ` ${attempt}` : ""}: ${step}`;
  return several ? `${node} ${what}` : what;
}
