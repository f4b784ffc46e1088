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
  expect(rig.cloud.storage.objects.size).toBe(0);
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
  const listed = spawnSync("tar", ["-tzvf", "-"], { input: object!.bytes, encoding: "utf8" });
  expect(listed.stderr).toBe("");
  expect(listed.stdout).toMatch(new RegExp(`${GIB} .*disk\\.raw`));
  const cut = spawnSync("sh", ["-c", `tar -xzOf - | head -c ${CONTENT.byteLength}`], {
    input: object!.bytes,
    maxBuffer: GIB,
  });
  expect(cut.stdout.equals(CONTENT)).toBe(true);
});

test("parts whose answers are lost, or that fail, are sent again from where the bucket has come to", async () => {
  const { run } = await upload([
    { call: "upload.part", how: "drop-answer" },
    { call: "upload.part", how: "refuse", status: 503, after: 2 },
    { call: "upload.part", how: "drop", after: 3 },
  ]);
  await run();
  expect(rig.cloud.compute.images.size).toBe(1);
});

test("what the bucket has not taken of a part is sent again, also of the last one", async () => {
  const { run } = await upload([{ call: "upload.part", how: "part", times: 4 }]);
  await run();
  expect(rig.cloud.compute.images.size).toBe(1);
});

test.each([["https://elsewhere.example/upload?upload_id=1"], [undefined]])(
  "an upload goes, with its token, to no other host than the cloud's: %s",
  async (location) => {
    const { run } = await upload([
      { call: "objects.insert", how: "moved", ...(location !== undefined && { location }) },
    ]);
    await expect(run()).rejects.toMatchObject({ kind: "transient", cause: { code: "cloud.odd_answer" } });
    expect(rig.cloud.counts()["upload.part"]).toBe(undefined);
  },
);

test("a bucket that is not there is no missing object, and a leaked object is deleted", async () => {
  const fault = { call: "objects.get", how: "refuse", status: 404, reason: "notFound" } as const;
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
