import { type Bar, bars, type Step, took } from "@nodeyard/client/steps";
import { wrap } from "./story-pools.ts";

const NAME_MOST = 30;
const BAR_LEAST = 10;
const BAR_MOST = 60;

/**
 * Steps one below the other, each where it lies in time and as long as it took, with the scale of `bars`. `now` is tree time,
 * milliseconds.
 */
export function waterfall(steps: readonly Step[], now: number, columns: number): string[] {
  const all = bars(steps, now);
  const times = all.map(({ step, seconds }) => `${took(seconds)}${step.seconds === null ? "..." : ""}`);
  const nameWidth = Math.min(NAME_MOST, Math.max(...all.map(({ name }) => name.length)));
  const timeWidth = Math.max(...times.map((time) => time.length));
  const barWidth = Math.min(BAR_MOST, Math.max(BAR_LEAST, columns - nameWidth - timeWidth - 7));
  return all.flatMap((bar, at) => {
    const name = fit(bar.name, nameWidth).padEnd(nameWidth);
    const line = `  ${name}  [${barText(bar, barWidth)}] ${times[at]!.padStart(timeWidth)}`.trimEnd();
    const error = bar.step.error === null ? [] : wrap(`failed: ${bar.step.error}`, columns - 6);
    return [line, ...error.map((part) => `      ${part}`)];
  });
}

/** The last character says how the step ended: "x" failed, ">" in progress. */
function barText({ step, place }: Bar, width: number): string {
  if (place === undefined) return " ".repeat(width);
  const from = Math.min(width - 1, Math.floor(place.from * width));
  const length = Math.max(1, Math.min(width - from, Math.round(place.to * width - from)));
  const end = step.error !== null ? "x" : step.seconds === null ? ">" : "=";
  return `${" ".repeat(from)}${"=".repeat(length - 1)}${end}`.padEnd(width);
}

function fit(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 3)}...`;
}
