import { type Suite, TURNS } from "./suite.ts";

/** Of a run that a CI may end after an hour and a half, on a machine of any speed: minutes after which it should have ended by itself. */
export const MOST_MINUTES = 70;
/** What still runs then is ended, so that the run says what it was. */
const END_MINUTES = 82;

/** What a run knows when it begins a suite. */
export interface Run {
  readonly processors: number;
  /** Commits of the branch, which say whose turn it is. */
  readonly commits: number;
}

/**
 * The suite to start next beside those that run, or undefined: none for now. First those of each run, then those whose turn it is; of these the
 * one that others wait for, then the longest, since what begins late ends late; as long as a processor is idle. `left` are the ones that have
 * not begun, `running` those that have not ended.
 */
export function nextSuite(
  left: readonly Suite[],
  running: readonly Suite[],
  { processors, commits }: Run,
): Suite | undefined {
  if (running.some(({ alone }) => alone)) return undefined;
  const open = [...left, ...running].map(({ name }) => name);
  const able = left.filter((suite) => !before(suite).some((name) => open.includes(name)));
  const busy = running.reduce((sum, { takes }) => sum + takes.processors, 0);
  const rank = ({ always, turn }: Suite) => (always ? 0 : turn === commits % TURNS ? 1 : 2);
  const beside = able
    .filter((suite) => !suite.alone && busy < processors)
    .sort((a, b) => rank(a) - rank(b) || secondsOf(b, left) - secondsOf(a, left));
  if (beside[0] !== undefined) return beside[0];
  return running.length === 0 ? able.find(({ alone }) => alone) : undefined;
}

/**
 * Whether a suite that begins `seconds` after the run would end after it should have, or leave too little to those of each run that need the
 * machine for themselves, at the end. On a slow machine a suite takes twice what it usually does. A suite of each run always has its time.
 */
export function isTooLate({ always, takes }: Suite, seconds: number, left: readonly Suite[]): boolean {
  const last = left.filter((suite) => suite.always && suite.alone);
  const needed = last.reduce((sum, suite) => sum + suite.takes.seconds, takes.seconds);
  return !always && seconds + 2 * needed > MOST_MINUTES * 60;
}

/** How long a suite that begins `seconds` after the run may take, milliseconds; `limitMs`: at most, for itself. */
export function limitOf(limitMs: number, seconds: number): number {
  return Math.min(limitMs, (END_MINUTES * 60 - seconds) * 1_000);
}

/** The suite, and those of `left` that cannot run without it. */
export function withDependents(suite: Suite, left: readonly Suite[]): readonly Suite[] {
  const found = new Set([suite]);
  for (const { name } of found) for (const other of left) if (other.needs?.includes(name)) found.add(other);
  return [...found];
}

function before({ needs = [], after = [] }: Suite): readonly string[] {
  return [...needs, ...after];
}

/** Of the suite, and of all that waits for it. */
function secondsOf(suite: Suite, left: readonly Suite[]): number {
  const behind = left.filter((other) => before(other).includes(suite.name));
  return suite.takes.seconds + behind.reduce((sum, one) => sum + secondsOf(one, left), 0);
}
