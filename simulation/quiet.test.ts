import { encodeNode, newNode, paths } from "@nodeyard/model";
import { expect, test } from "vitest";
import { checkEnd } from "./end.ts";
import { makeScene, prepare } from "./make-scene.ts";
import { isQuiet, isSettled, lacking } from "./quiet.ts";

const NODE = "0000000000";

/** An idle node and nothing else. */
async function idle() {
  const scene = makeScene({ seed: 1 }, (error) => {
    throw error;
  });
  await prepare(scene);
  const tree = scene.cluster.connect({ name: "launcher-0", latencyMs: [0, 0] });
  let checked = 0;
  const does = async (write: Promise<unknown>) => {
    await scene.clock.advance(1_000);
    await write;
    for (; checked < scene.cluster.log.length; checked++) {
      const entry = scene.cluster.log[checked]!;
      scene.check.take(entry, entry.at);
    }
  };
  scene.troubled = false;
  const kept = { name: "any", minReady: 1, maxReadyAgeMs: 600_000 };
  scene.config = { ...scene.config, labels: new Map([["any", kept]]) };
  const record = encodeNode(newNode({ state: "ready", provider: "elsewhere", type: ["any"] }, 0));
  await does(tree.create(paths.nodes));
  await does(tree.create(`${paths.nodes}/`, record, { sequential: true }));
  return { scene, tree, does };
}

test("the end waits for a lock on an idle node to go, and a lock that stays is a leftover", async () => {
  const { scene, tree, does } = await idle();
  expect(isSettled(scene)).toBe(true);
  await does(tree.create(paths.nodeLock(NODE)));
  const contender = `${paths.nodeLock(NODE)}/replaces__lock__0000000000`;
  await does(tree.create(contender));
  // Its record does not say yet that it is being replaced.
  expect(isQuiet(scene)).toBe(true);
  expect(isSettled(scene)).toBe(false);
  expect(() => checkEnd(scene, [])).toThrow(`a free node is not locked: ${NODE}: replaces`);
  await does(tree.delete(contender));
  expect(isSettled(scene)).toBe(true);
});

test("the end waits until a deleted idle node is replaced", async () => {
  const { scene, tree, does } = await idle();
  await does(tree.delete(`${paths.nodes}/${NODE}`));
  expect(isQuiet(scene)).toBe(true);
  expect(isSettled(scene)).toBe(false);
  expect(lacking(scene)).toEqual([{ label: "any", nodes: 0, minReady: 1 }]);
});
