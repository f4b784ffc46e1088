import type { ImageTag, Resource, Step } from "@nodeyard/driver";
import { encodeImageUpload, newImageUpload, paths } from "@nodeyard/model";
import { VirtualClock } from "@nodeyard/runtime";
import { Counters, memoryLog } from "@nodeyard/telemetry";
import { expect, test } from "vitest";
import { ImageTable } from "../../view/src/image-table.ts";
import { UnreadableTable } from "../../view/src/unreadable.ts";
import type { BuilderContext } from "../src/control/context.ts";
import { LeakedImages } from "../src/control/leaked-images.ts";
import { alienImages, leakedImages } from "../src/core/leaked-images.ts";

const OURS = "11111111-1111-4111-8111-111111111111";

function image(uploadId: string, change: Partial<ImageTag> = {}): Resource {
  const imageTag = {
    installation: OURS,
    provider: "cloud",
    image: "small",
    buildId: "b1",
    uploadId,
    ...change,
  };
  return { type: "image", id: `id-${uploadId}`, tag: null, imageTag, resources: {} };
}

const machine: Resource = { type: "instance", id: "vm", tag: null, resources: {} };
const context = { installation: OURS, provider: "cloud", previous: new Set<string>() };

test("aliens are tagged images without an upload; those of another installation are listed apart", () => {
  const all = [
    machine,
    image("0000000001"),
    image("0000000002"),
    image("0000000003", { installation: "another" }),
    image("0000000004", { provider: "other-cloud" }),
    // Numbers of uploads are counted for each build.
    image("0000000001", { buildId: "b2" }),
  ];
  const found = alienImages("cloud", OURS, all, new Set(["b1/cloud/0000000001"]));
  expect(found.map(({ kind, tag }) => [kind, tag.uploadId])).toEqual([
    ["leaked", "0000000002"],
    ["foreign", "0000000003"],
    ["leaked", "0000000001"],
  ]);
});

test("only what two looks in a row suspected goes, nothing foreign, and not too much at once", () => {
  const all = [machine, image("0000000001"), image("0000000002"), image("0000000003", { installation: "x" })];
  const known = new Set(["b1/cloud/0000000001"]);
  const first = leakedImages(all, known, context);
  expect(first.remove).toEqual([]);
  const second = leakedImages(all, known, { ...context, previous: first.suspects });
  expect(second.remove.map(({ uploadId }) => uploadId)).toEqual(["0000000002"]);
  const many = Array.from({ length: 20 }, (_, at) => image(String(at).padStart(10, "0")));
  const empty = leakedImages(many, new Set(), context);
  const braked = leakedImages(many, new Set(), { ...context, previous: empty.suspects });
  expect([braked.braked, braked.remove, braked.wouldRemove]).toEqual([true, [], 20]);
});

test("a builder removes it by its tag at the second look, keeps one whose record cannot be read, and asks no cloud oftener than every five minutes", async () => {
  const clock = new VirtualClock();
  const images = new ImageTable();
  const record = newImageUpload({ username: null, pythonPath: null, shellType: null }, 1);
  const at = { image: "small", build: "b1", provider: "cloud", upload: "0000000001" };
  images.putUpload(at, encodeImageUpload({ ...record, state: "ready" }));
  const unreadable = new UnreadableTable();
  const path = paths.imageUpload("small", "b1", "cloud", "0000000003");
  const why = { code: "record.not_json", why: "nonsense", known: {} };
  unreadable.put({ path, kind: "image-upload", id: "0000000003", version: 1, ...why });
  const cloud = [image("0000000001"), image("0000000002"), image("0000000003")];
  let asked = 0;
  const provider = {
    name: "cloud",
    list: async () => {
      asked++;
      return [...cloud];
    },
    store: {
      formats: ["raw"],
      upload: () => expect.unreachable("nobody uploads here"),
      async *remove(tag: ImageTag): AsyncGenerator<Step, void, void> {
        yield { step: "delete", deadlineMs: 1_000 };
        cloud.splice(
          cloud.findIndex(({ imageTag }) => imageTag?.uploadId === tag.uploadId),
          1,
        );
      },
    },
  };
  const leaked = new LeakedImages({
    clock,
    log: memoryLog(),
    counters: new Counters(),
    installation: OURS,
    providers: new Map([["cloud", provider]]),
    view: { images, unreadable, complete: true, resync: async () => {} },
    tree: { session: () => ({ state: "connected" }) },
    fence: { sessionTrusted: () => true },
  } as unknown as BuilderContext);
  const look = () => leaked.look(new AbortController().signal);
  await look();
  await look();
  expect([asked, cloud.length]).toEqual([1, 3]);
  await clock.advance(5 * 60_000);
  await look();
  expect(asked).toBe(2);
  expect(cloud.map(({ imageTag }) => imageTag?.uploadId)).toEqual(["0000000001", "0000000003"]);
});
