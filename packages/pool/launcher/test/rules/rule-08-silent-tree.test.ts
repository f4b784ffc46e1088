import { expect, test } from "vitest";
import { expectClean, VICTIM } from "./lost-writes.ts";
import { fakeProvider, launcherConfig, World } from "./world.ts";

/** A call that is given no other limit ends after this. */
const CALL_MS = 60_000;
const NEVER = { delayMs: 1e9 };

/**
 * A launcher serves a nodeset and deletes its nodes; its n-th write on the way is never answered, nor is anything behind it on
 * that connection. Nobody cuts the connection until long after the launcher has given up. False: there were fewer writes.
 */
async function silentAt(at: number): Promise<boolean> {
  const world = new World();
  const { tree, launcher, log } = await world.start(VICTIM, launcherConfig([fakeProvider()]), {
    sessionTimeoutMs: 600_000,
  });
  let writes = 0;
  let silentSince: number | undefined;
  world.fault = ({ kind, client }) => {
    if (client !== VICTIM || kind !== "write" || silentSince !== undefined || ++writes !== at)
      return undefined;
    silentSince = world.clock.monotonic();
    world.clock.setTimer(CALL_MS + 5_000, whileSilent);
    world.clock.setTimer(3 * CALL_MS, () => tree.disconnect());
    return NEVER;
  };
  let shown: readonly string[] = [];
  // What waits for the tree is either given up, and said, or still listed as being worked on.
  const whileSilent = () => {
    const said = log.lines.map(({ text, facts }) => `${text} ${JSON.stringify(facts)}`);
    shown = [
      ...said.filter((line) => line.includes("before the tree answered")),
      ...launcher.inspect().tasks,
    ];
  };
  const id = await world.ask({ node_types: ["small", "large"] });
  await world.fulfilled(id, 5 * CALL_MS);
  await world.use(id);
  await world.until("its nodes are gone", () => world.nodes().length === 0, 10 * CALL_MS);
  await expectClean(world, `write ${at} was not answered`);
  await world.until("nothing is worked on", () => launcher.inspect().tasks.length === 0);
  if (silentSince === undefined) return false;
  expect(shown, `write ${at}`).not.toEqual([]);
  return true;
}

test("rule 8: a write without an answer ends with an error, and the work goes on once the connection was cut", async () => {
  let at = 1;
  while (await silentAt(at)) at++;
  expect(at).toBeGreaterThan(10);
});
