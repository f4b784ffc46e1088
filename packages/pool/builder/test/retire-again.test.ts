import { changeImageBuild, decodeImageBuild, encodeImageBuild, newImageBuild, paths } from "@nodeyard/model";
import { seededRandom, systemClock } from "@nodeyard/runtime";
import { Counters, memoryLog } from "@nodeyard/telemetry";
import { createMemoryTree, ensurePath, Fence } from "@nodeyard/tree";
import { View } from "@nodeyard/view";
import { expect, test } from "vitest";
import type { BuilderContext } from "../src/control/context.ts";
import { sweepImages } from "../src/control/janitor.ts";

function record(id: string, state: "ready" | "deleting", at: number): Uint8Array {
  const made = newImageBuild(id, { builder: "host", builderId: "b", formats: [] }, at);
  return encodeImageBuild(changeImageBuild(made, { state }, at));
}

const [IMAGE, OLDEST, NEWEST] = ["noble", "a", "c"];

/** A builder's view of builds with these states, the oldest first. */
async function builder(states: Readonly<Record<string, "ready" | "deleting">>) {
  const random = seededRandom(1);
  const tree = createMemoryTree({ clock: systemClock, random }).connect();
  const counters = new Counters();
  const handles = { tree, clock: systemClock, random, log: memoryLog(), counters };
  for (const [index, [id, state]] of Object.entries(states).entries()) {
    const path = paths.imageBuild(IMAGE, id);
    await ensurePath(tree, path);
    await tree.set(path, record(id, state, index + 1));
    await tree.create(paths.imageBuildLock(IMAGE, id));
  }
  const view = new View(handles);
  await view.start();
  const fence = new Fence(tree, systemClock, random);
  const images = new Map([[IMAGE, {}]]);
  const settings = { images, uploads: new Map() };
  const parts = { ...handles, view, fence, settings, providers: new Map() };
  return parts as unknown as BuilderContext;
}

const sweep = (context: BuilderContext) => sweepImages(context, new AbortController().signal);

/** The state of the oldest of three builds after a sweep; `meanwhile` happens between its decision and its first lock. */
async function swept(meanwhile: (context: BuilderContext) => Promise<void>): Promise<string> {
  const context = await builder({ [OLDEST]: "ready", b: "ready", [NEWEST]: "ready" });
  const { fence, tree } = context;
  const lock = fence.lock.bind(fence);
  let first = true;
  fence.lock = async (parent) => {
    if (first) await meanwhile(context);
    first = false;
    return lock(parent);
  };
  await sweep(context);
  return decodeImageBuild(OLDEST, (await tree.get(paths.imageBuild(IMAGE, OLDEST))).data).state;
}

test("the oldest of three builds goes, unless a newer one went before the lock was taken", async () => {
  expect(await swept(async () => {})).toBe("deleting");
  const deleted = record(NEWEST, "deleting", 4);
  expect(
    await swept(async ({ tree }) => void (await tree.set(paths.imageBuild(IMAGE, NEWEST), deleted))),
  ).toBe("ready");
});

test("a build that another builder is in line for is looked at again: both may leave it to the other", async () => {
  const context = await builder({ [OLDEST]: "deleting" });
  const { tree } = context;
  const other = `${paths.imageBuildLock(IMAGE, OLDEST)}/${"2".repeat(32)}__lock__`;
  const { path: contender } = await tree.create(other, undefined, { ephemeral: true, sequential: true });
  expect((await sweep(context)).crossed).toBe(true);
  await tree.delete(contender);
  expect((await sweep(context)).crossed).toBe(false);
  expect(await tree.stat(paths.imageBuild(IMAGE, OLDEST))).toBeUndefined();
});
