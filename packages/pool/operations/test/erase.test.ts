import {
  encodeComponent,
  encodeImageBuild,
  encodeImageUpload,
  encodeNode,
  newComponent,
  newImageBuild,
  newImageUpload,
  newNode,
  paths,
} from "@nodeyard/model";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { createMemoryTree, ensurePath } from "@nodeyard/tree";
import { beforeEach, expect, test } from "vitest";
import { eraseProvider, listNodes, listUploads, serversOf } from "../src/index.ts";

const clock = new VirtualClock();
let handles: Parameters<typeof eraseProvider>[0];
let locked: string;
beforeEach(async () => {
  const random = seededRandom(3);
  const tree = createMemoryTree({ clock, random }).connect();
  handles = { clock, random, tree };
  await ensurePath(tree, paths.imageBuilds("small"));
  const build = newImageBuild("b1", { builder: "host", builderId: "x", formats: ["raw"] }, 0);
  await tree.create(paths.imageBuild("small", "b1"), encodeImageBuild(build));
  await ensurePath(tree, paths.nodes);
  for (const provider of ["gone", "other"]) {
    const folder = paths.imageUploads("small", "b1", provider);
    await ensurePath(tree, `${folder}/lock`);
    const upload = encodeImageUpload(
      newImageUpload({ username: null, pythonPath: null, shellType: null }, 0),
    );
    for (const _ of [1, 2]) await tree.create(`${folder}/`, upload, { sequential: true });
    for (const _ of [1, 2]) {
      const data = encodeNode(newNode({ state: "ready", provider }, 0));
      const { path } = await tree.create(`${paths.nodes}/`, data, { sequential: true });
      locked = path.slice(-10);
    }
  }
  const nodes = (await listNodes(handles)).items.filter(({ record }) => record.provider === "gone");
  locked = nodes[0]!.record.id;
  await ensurePath(tree, paths.nodeLock(locked));
  await tree.create(`${paths.nodeLock(locked)}/aa__lock__`, undefined, { sequential: true, ephemeral: true });
});

async function erased(options: { readonly locked: boolean }) {
  const work = eraseProvider(handles, "gone", options);
  for (let second = 0; second < 5; second++) await clock.advance(1_000);
  return work;
}

async function left(): Promise<readonly string[]> {
  const uploads = (await listUploads(handles)).items.map(({ provider }) => `upload of ${provider}`);
  const nodes = (await listNodes(handles)).items.map(({ record }) => `node of ${record.provider}`);
  return [...uploads, ...nodes].sort();
}

const OTHERS = ["node of other", "node of other", "upload of other", "upload of other"];

test("uploads and nodes of the provider are removed; those of others, and locked ones, stay", async () => {
  const result = await erased({ locked: false });
  expect([result.uploads, result.nodes.length, result.kept]).toEqual([2, 1, [locked]]);
  expect(await left()).toEqual(["node of gone", ...OTHERS].sort());
  expect((await erased({ locked: false })).uploads).toBe(0);
});

test("by force locked nodes go, too (check 17)", async () => {
  const result = await erased({ locked: true });
  expect([result.uploads, result.nodes.length, result.kept]).toEqual([2, 2, []]);
  expect(await left()).toEqual(OTHERS);
});

test("the launchers that serve a provider follow from registered pools, without stopped ones", async () => {
  const folder = paths.component("pool");
  await ensurePath(handles.tree, folder);
  const register = (hostname: string, providerName: string, state: "running" | "stopped") =>
    handles.tree.create(
      `${folder}/${hostname}`,
      encodeComponent(newComponent({ kind: "pool", id: hostname, hostname, providerName, state })),
      { sequential: true },
    );
  await register("b", "gone", "running");
  await register("a", "gone", "running");
  await register("c", "gone", "stopped");
  await register("d", "other", "running");
  expect(await serversOf(handles, "gone")).toEqual(["a", "b"]);
});
