import { span } from "../listing/index.ts";
import type { LifeStep } from "../operations/index.ts";
import { wrap } from "./story-pools.ts";

const NAME_MOST = 30;
const BAR_LEAST = 10;
const BAR_MOST = 60;

/**
 * Steps one below the other, each where it lies in time and as long as it took. The time in which a node is only there to be
 * used is left out of the scale: hours of it would make one point of the rest. `now` is tree time, milliseconds.
 */
export function waterfall(steps: readonly LifeStep[], now: number, columns: number): string[] {
  const first = steps[0];
  if (first === undefined) return [];
  const several = new Set(steps.map(({ node }) => node)).size > 1;
  const names = steps.map((step) => nameOf(step, several));
  const nameWidth = Math.min(NAME_MOST, Math.max(...names.map((name) => name.length)));
  const times = steps.map((step) => took(step, now));
  const timeWidth = Math.max(...times.map((time) => time.length));
  const barWidth = Math.min(BAR_MOST, Math.max(BAR_LEAST, columns - nameWidth - timeWidth - 7));
  const axis = axisOf(steps, now);
  const total = Math.max(1, ...steps.map((step) => axis(endOf(step, now))));
  return steps.flatMap((step, at) => {
    const name = fit(names[at]!, nameWidth).padEnd(nameWidth);
    const time = times[at]!.padStart(timeWidth);
    const bar = step.of === "life" ? "".padEnd(barWidth) : barOf(step, now, axis, total, barWidth);
    const line = `  ${name}  [${bar}] ${time}`.trimEnd();
    const error = step.error === null ? [] : wrap(`failed: ${step.error}`, columns - 6);
    return [line, ...error.map((part) => `      ${part}`)];
  });
}

/** The time axis of the bars. The time of a "life" step is cut out. */
function axisOf(steps: readonly LifeStep[], now: number): (at: number) => number {
  const start = Math.min(...steps.map(({ began }) => began));
  const left = steps.filter(({ of }) => of === "life").map((step) => [step.began, endOf(step, now)] as const);
  return (at) =>
    left.reduce((sum, [from, to]) => sum - Math.max(0, Math.min(at, to) - from), Math.max(0, at - start));
}

function barOf(
  step: LifeStep,
  now: number,
  axis: (at: number) => number,
  total: number,
  width: number,
): string {
  const place = (at: number) => Math.min(width, Math.max(0, (axis(at) / total) * width));
  const from = Math.min(width - 1, Math.floor(place(step.began)));
  const length = Math.max(1, Math.min(width - from, Math.round(place(endOf(step, now)) - from)));
  const end = step.error !== null ? "x" : step.ms === null ? ">" : "=";
  return `${" ".repeat(from)}${"=".repeat(length - 1)}${end}`.padEnd(width);
}

function endOf({ began, ms }: LifeStep, now: number): number {
  return ms === null ? Math.max(began, now) : began + ms;
}

function nameOf({ node, of, attempt, step }: LifeStep, several: boolean): string {
  const what = of === "life" ? step : `${of}${attempt > 1 ? ` ${attempt}` : ""}: ${step}`;
  return several ? `${node} ${what}` : what;
}

function took(step: LifeStep, now: number): string {
  const ms = endOf(step, now) - step.began;
  const text =
    ms < 1_000 ? `${Math.round(ms)} ms` : ms < 10_000 ? `${(ms / 1_000).toFixed(1)} s` : span(ms / 1_000);
  return step.ms === null ? `${text}...` : text;
}

function fit(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 3)}...`;
}
