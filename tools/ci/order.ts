import type { Suite } from "./suite.ts";

/**
 * The suite to start next beside those that run, or undefined: none for now. The one that others wait for, then the longest, since what begins
 * late ends late; as long as a processor is idle. `left` are the ones that have not begun, `running` those that have not ended.
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
  const beside = able
    .filter((suite) => !suite.alone && (suite.background || busy < processors))
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

/** Of the suite, and of all that waits for it. */
function secondsOf(suite: Suite, left: readonly Suite[]): number {
  const behind = left.filter((other) => before(other).includes(suite.name));
  return suite.takes.seconds + behind.reduce((sum, one) => sum + secondsOf(one, left), 0);
}
