import { expect, test } from "vitest";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

const HOUR = 3_600_000;

test("a process that runs for long listens to nothing more often than at first", async () => {
  const world = new World();
  const counts = new Map<EventTarget, number>();
  const { addEventListener, removeEventListener } = EventTarget.prototype;
  const count = (of: EventTarget, change: 1 | -1) => void counts.set(of, (counts.get(of) ?? 0) + change);
  EventTarget.prototype.addEventListener = function (this: EventTarget, ...words) {
    // Those that end by themselves are gone with what they wait for.
    count(this, 1);
    return addEventListener.apply(this, words);
  };
  EventTarget.prototype.removeEventListener = function (this: EventTarget, ...words) {
    count(this, -1);
    return removeEventListener.apply(this, words);
  };
  try {
    await world.start("a", launcherConfig([fakeProvider()]));
    await world.run(HOUR);
    const most = () => Math.max(...counts.values());
    const first = most();
    await world.run(3 * HOUR);
    expect(most()).toBeLessThanOrEqual(first + 5);
  } finally {
    Object.assign(EventTarget.prototype, { addEventListener, removeEventListener });
  }
});
