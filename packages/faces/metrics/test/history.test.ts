import { VirtualClock } from "@nodeyard/runtime";
import { memoryJournal, type PastEvent } from "@nodeyard/telemetry";
import { expect, test } from "vitest";
import { CountHistory, HISTORY_STEP_MS } from "../src/index.ts";

const DAY = 86_400_000 / HISTORY_STEP_MS;

function begin(clock: VirtualClock, state = { ready: 1, complete: true }, labels = 1) {
  const journal = memoryJournal();
  const one = () => ({ ready: state.ready });
  const counts = () => ({
    nodes: one(),
    waiting: 2,
    labels: Object.fromEntries(Array.from({ length: labels }, (_, at) => [`l${at}`, { ready: at }])),
    providers: { cloud: one() },
  });
  const history = new CountHistory({ counts }, () => state.complete, { clock, journal });
  /** As the next process reads them. */
  const noted = (): PastEvent[] => {
    const points = history.points();
    const at = (index: number) => points[index]!.at;
    return journal.events.slice(-points.length).map(({ event, facts }, index) => ({
      at: at(index),
      event,
      request: null,
      node: null,
      facts: JSON.parse(JSON.stringify(facts)) as PastEvent["facts"],
    }));
  };
  return { state, history, journal, noted };
}

test("a day is kept and no more; a restart keeps it, and the time between is missing", async () => {
  const clock = new VirtualClock();
  const first = begin(clock);
  await clock.advance(DAY * HISTORY_STEP_MS * 1.5);
  const points = first.history.points();
  expect(points.length).toBe(DAY);
  expect(points.every(({ at }, index) => index === 0 || at - points[index - 1]!.at === HISTORY_STEP_MS)).toBe(
    true,
  );
  first.history.close();
  await clock.advance(10 * HISTORY_STEP_MS);
  const second = begin(clock, { ready: 7, complete: true });
  second.history.recall(first.noted());
  await clock.advance(2 * HISTORY_STEP_MS);
  const after = second.history.points();
  expect(after.length).toBe(DAY - 10);
  expect(after.at(-1)).toMatchObject({ nodes: { ready: 7 }, waiting: 2, providers: { cloud: { ready: 7 } } });
  expect(after.at(-2)!.at - after.at(-3)!.at).toBeGreaterThanOrEqual(10 * HISTORY_STEP_MS);
  expect(after.at(-3)).toMatchObject({ nodes: { ready: 1 } });
  second.history.close();
});

test("nothing is noted while the tree is not known whole, and of many labels those with most", async () => {
  const clock = new VirtualClock();
  const { state, history, journal } = begin(clock, { ready: 1, complete: false }, 150);
  await clock.advance(3 * HISTORY_STEP_MS);
  expect([history.points(), journal.events]).toEqual([[], []]);
  state.complete = true;
  await clock.advance(HISTORY_STEP_MS);
  const [point] = history.points();
  expect(Object.keys(point!.labels).length).toBe(100);
  expect(point!.labels).toMatchObject({ l149: { ready: 149 } });
  expect(point!.labels).not.toHaveProperty("l49");
  history.close();
});

test("what a journal has of another release is skipped", () => {
  const { history } = begin(new VirtualClock());
  history.recall([{ at: 0, event: "counts.noted", request: null, node: null, facts: { ready: 3 } }]);
  expect(history.points()).toEqual([]);
  history.close();
});
