import type { Suite } from "./suite.ts";

/** A little more than there are: suites wait for servers and guests, too. */
const OVERBOOKED = 1.5;

/**
 * The suite to start next beside those that run, or undefined: none for now. The longest first, since what begins late ends late; those that
 * others need before them. `left` are the ones that have not begun, `running` those that have not ended.
 */
export function nextSuite(
  left: readonly Suite[],
  running: readonly Suite[],
  processors: number,
): Suite | undefined {
  if (running.some(({ alone }) => alone)) return undefined;
  const open = [...left, ...running].map(({ name }) => name);
  const able = left.filter((suite) => !before(suite).some((name) => open.includes(name)));
  const busy = running.reduce((sum, suite) => sum + loadOf(suite), 0);
  const fits = (suite: Suite) =>
    busy === 0 || suite.background || busy + suite.takes.processors <= OVERBOOKED * processors;
  const beside = able
    .filter((suite) => !suite.alone && fits(suite))
    .sort((a, b) => secondsOf(b, left) - secondsOf(a, left));
  if (beside[0] !== undefined) return beside[0];
  return running.length === 0 ? able.find(({ alone }) => alone) : undefined;
}

function before({ needs = [], after = [] }: Suite): readonly string[] {
  return [...needs, ...after];
}

/** What runs behind the others takes nothing from them. */
function loadOf({ background, takes }: Suite): number {
  return background ? 0 : takes.processors;
}

/** Until the last of those that wait for it has ended. */
function secondsOf(suite: Suite, left: readonly Suite[]): number {
  const behind = left.filter((other) => before(other).includes(suite.name));
  return suite.takes.seconds + Math.max(0, ...behind.map((one) => secondsOf(one, left)));
}
