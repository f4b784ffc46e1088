import { spawnSync } from "node:child_process";
import { createHash, randomFillSync } from "node:crypto";
import type { ImageTag, UploadOrder } from "@nodeyard/driver";
import { afterEach, expect, test } from "vitest";
import { compile, GceRig, INSTALLATION } from "./rig.ts";

const GIB = 1 << 30;
const TAG: ImageTag = {
  ...{
    installation: INSTALLATION,
    provider: "gcp-west",
    image: "conformance",
    buildId: "B.1",
    uploadId: "0000000007",
  },
};
/** Bytes that do not compress, so that an upload has several parts. */
const CONTENT = randomFillSync(Buffer.alloc(20_000_001));

let rig: GceRig;
afterEach(() => rig.stop());

async function upload(faults: Parameters<GceRig["cloud"]["set"]>[0]["faults"] = []) {
  rig = new GceRig({ faults });
  const config = compile(
    { built: { diskimage: "conformance" } },
    { provider: { bucket: "ci-images", diskimages: [{ name: "conformance", family: "ci" }] } },
  );
  const provider = await rig.open(config);
  rig.files.set("/i.raw", CONTENT);
  const hash = (kind: string) => createHash(kind).update(CONTENT).digest("hex");
  const order: UploadOrder = {
    ...{ tag: TAG, name: "CI image", file: "/i.raw", format: "raw", size: CONTENT.byteLength, own: {} },
    ...{ sha256: hash("sha256"), md5: hash("md5"), metadata: { os: "linux" }, progress: () => {} },
  };
  const run = () =>
    rig.drive(
      rig.run((step) => provider.offers!.images!.upload(order, step), null),
      true,
    );
  return { config, provider, run };
}

test("a file becomes an image of its family, boots a machine, and leaves nothing in the bucket", async () => {
  const { config, provider, run } = await upload();
  const id = (await run()) as string;
  const [image] = [...rig.cloud.compute.images.values()];
  expect(image).toMatchObject({
    family: "ci",
    status: "READY",
    labels: { os: "linux", nodepool_upload_id: TAG.uploadId },
  });
  expect([rig.cloud.storage.objects.size, rig.cloud.storage.uploads.size]).toEqual([0, 0]);
  const machine = await rig.create(provider, rig.order(config, "0000000001", { imageExternalId: id }));
  expect(machine.az).toBe("us-central1-a");
});

test("GNU tar unpacks the disk, with a hole up to whole GiB", async () => {
  // The insert fails for good, so that the object stays.
  const { run } = await upload([
    { call: "images.insert", how: "refuse", status: 400, reason: "invalid", times: 9 },
  ]);
  await expect(run()).rejects.toMatchObject({ kind: "configuration" });
  const [object] = [...rig.cloud.storage.objects.values()];
  const listed = spawnSync("tar", ["-tzvf", "-"], { input: object!, encoding: "utf8" });
  expect(listed.stderr).toBe("");
  expect(listed.stdout).toMatch(new RegExp(`${GIB} .*disk\\.raw`));
  const cut = spawnSync("sh", ["-c", `tar -xzOf - | head -c ${CONTENT.byteLength}`], {
    input: object!,
    maxBuffer: GIB,
  });
  expect(cut.stdout.equals(CONTENT)).toBe(true);
});

test("parts whose answers are lost, or that fail, are sent again", async () => {
  const { run } = await upload([
    { call: "POST object?uploads", how: "drop-answer" },
    { call: "PUT object?uploadId", how: "drop-answer" },
    { call: "PUT object?uploadId", how: "refuse", after: 1 },
    { call: "POST object?uploadId", how: "drop-answer" },
  ]);
  await run();
  expect(rig.cloud.compute.images.size).toBe(1);
  expect([rig.cloud.storage.objects.size, rig.cloud.storage.uploads.size]).toEqual([0, 0]);
});

test("the archive is made anew after a crash, so that no part of the first one is in it", async () => {
  const { run } = await upload([
    { call: "PUT object?uploadId", how: "refuse", status: 403, reason: "AccessDenied", after: 1 },
  ]);
  await expect(run()).rejects.toMatchObject({ kind: "access" });
  const [left] = rig.cloud.storage.uploads.keys();
  const sent = () => rig.cloud.calls.filter(({ call }) => call === "PUT object?uploadId").length;
  const before = sent();
  await run();
  expect([rig.cloud.storage.uploads.has(left!), sent() - before]).toEqual([false, 2]);
});

test("a bucket that is not there is no missing object, and a leaked object is deleted", async () => {
  const fault = { call: "GET bucket", how: "refuse", status: 404, reason: "NoSuchBucket" } as const;
  const { provider, run } = await upload([{ ...fault, message: "The specified bucket does not exist." }]);
  await expect(run()).rejects.toMatchObject({ kind: "access" });
  rig.cloud.set({
    faults: [{ call: "images.insert", how: "refuse", status: 400, reason: "invalid", times: 9 }],
  });
  await expect(run()).rejects.toMatchObject({ kind: "configuration" });
  const { signal } = new AbortController();
  const [object] = (await rig.drive(provider.list(signal))).filter(({ type }) => type === "object");
  await rig.drive(provider.removeResource(object!, signal));
  expect(rig.cloud.storage.objects.size).toBe(0);
});
