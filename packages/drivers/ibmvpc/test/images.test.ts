import { createHash, randomFillSync } from "node:crypto";
import { DriverError, type ImageTag, type UploadOrder } from "@nodeyard/driver";
import { afterEach, expect, test } from "vitest";
import type { IbmSettings } from "../../../../testing/ibmvpc/index.ts";
import { compile, IbmRig, INSTALLATION, STORAGE } from "./rig.ts";

const TAG: ImageTag = {
  ...{ installation: INSTALLATION, provider: "ibm-south", image: "conformance" },
  ...{ buildId: "0123456789abcdef0123456789abcdef", uploadId: "0000000007" },
};
/** Three parts. */
const CONTENT = randomFillSync(Buffer.alloc((40 << 20) + 1));
const SIGNAL = new AbortController().signal;

let rig: IbmRig;
afterEach(() => rig.stop());

async function site(settings: Partial<IbmSettings> = {}) {
  rig = new IbmRig(settings);
  const uploads = {
    "object-storage": STORAGE,
    diskimages: [{ name: "conformance", "operating-system": "debian-13-amd64" }],
  };
  const config = compile({ built: { diskimage: "conformance" } }, { provider: uploads });
  const provider = await rig.open(config);
  rig.files.set("/i.qcow2", CONTENT);
  const hash = (kind: string) => createHash(kind).update(CONTENT).digest("hex");
  const order: UploadOrder = {
    ...{ tag: TAG, name: "CI image", file: "/i.qcow2", format: "qcow2", size: CONTENT.byteLength, own: {} },
    ...{ sha256: hash("sha256"), md5: hash("md5"), metadata: { os: "linux" }, progress: () => {} },
  };
  const run = (by = provider) => rig.drive(rig.run((step) => by.offers!.images!.upload(order, step), null));
  return { config, provider, run, cloud: rig.cloud, list: () => rig.drive(provider.list(SIGNAL)) };
}

const ours = () => {
  rig.cloud.vpc.tick();
  return [...rig.cloud.vpc.images.values()].filter(({ owner }) => owner === "user");
};
const kindOf = (work: Promise<unknown>) =>
  work.then(
    () => "no error",
    (error: unknown) => (error instanceof DriverError ? `${error.kind}: ${error.message}` : String(error)),
  );

// docs/contract/checks.md, "IBM".
test("36: a file becomes an image by way of the bucket, boots a machine, and is no leak", async () => {
  const { config, provider, run, cloud, list } = await site();
  const id = String(await run());
  const [image] = ours();
  expect(image).toMatchObject({
    id,
    os: "debian-13-amd64",
    name: expect.stringMatching(/^npimage-0000000007-/),
  });
  expect(image!.name.length).toBeLessThan(64);
  const imported = cloud.calls.find(({ call }) => call === "POST images")?.body as { file: { href: string } };
  expect(imported.file.href).toBe(`cos://us-south/ci-images/${image!.name}.qcow2`);
  expect([...cloud.vpc.groups.values()]).toContain("npimages_ibm-south");
  expect(cloud.objects.objects.size).toBe(0);
  expect(await list()).toEqual([{ type: "image", id, tag: null, imageTag: TAG, resources: {} }]);
  const machine = await rig.create(provider, rig.order(config, "0000000001", { imageExternalId: id }));
  expect(machine.az).toBe("us-south-1");
});

test("an upload whose builder died goes on with the parts that are missing", async () => {
  const { config, run, cloud } = await site({ pageSize: 1 });
  cloud.set({
    faults: [{ call: "PUT objects/*?uploadId", how: "refuse", status: 403, code: "AccessDenied", after: 2 }],
  });
  expect(await kindOf(run())).toMatch(/^access: /);
  const sent = () =>
    cloud.calls.filter(({ call, status }) => call === "PUT objects/*?uploadId" && status === 200);
  expect(sent()).toHaveLength(2);
  await run(await rig.open(config));
  expect(sent().map(({ query }) => query.partNumber)).toEqual(["1", "2", "3"]);
  expect(ours()).toHaveLength(1);
});

test("parts whose answers are lost are sent again, and nothing is left of uploads that began twice", async () => {
  const { run, cloud } = await site();
  cloud.set({
    faults: [
      { call: "POST objects/*?uploads", how: "drop-answer" },
      { call: "PUT objects/*?uploadId", how: "drop-answer", times: 2 },
      { call: "POST objects/*?uploadId", how: "drop-answer" },
      { call: "POST images", how: "drop-answer" },
    ],
  });
  await kindOf(run());
  await run();
  expect(ours()).toHaveLength(1);
  expect([cloud.objects.objects.size, cloud.objects.uploads.size]).toEqual([0, 0]);
});

test("an image that IBM cannot import is deleted, and said with the reason", async () => {
  const { run, cloud } = await site();
  const importing = kindOf(run());
  cloud.objects.loses = true;
  expect(await importing).toMatch(/^transient: .*is failed: The file was not found \(image_data_corrupted\)/);
  await rig.clock.advance(10_000);
  expect(ours()).toEqual([]);
});

test("what is left in the bucket is a leak with its tag; files of others are not looked at", async () => {
  const { provider, run, cloud, list } = await site();
  cloud.objects.objects.set("theirs.qcow2", Buffer.from("x"));
  cloud.objects.objects.set("npimage0000000001.qcow2", Buffer.from("x"));
  cloud.set({ faults: [{ call: "POST images", how: "refuse", status: 400, code: "bad_field", times: 9 }] });
  expect(await kindOf(run())).toMatch(/^configuration: /);
  const [left, ...more] = await list();
  expect([left, more]).toMatchObject([{ type: "object", imageTag: TAG }, []]);
  await rig.drive(provider.removeResource(left!, SIGNAL));
  expect([...cloud.objects.objects.keys()]).toEqual(["theirs.qcow2", "npimage0000000001.qcow2"]);
});

test("a bucket that is not there is a fault of the provider; images of a diskimage that left the file are still removed", async () => {
  const { run, config, cloud } = await site();
  await run();
  const without = compile({ small: {} }, { provider: { "object-storage": STORAGE } });
  const provider = await rig.open(without);
  const [image] = await rig.drive(provider.list(SIGNAL));
  expect(image?.imageTag).toMatchObject({
    buildId: TAG.buildId,
    uploadId: TAG.uploadId,
    image: expect.stringMatching(/^#/),
  });
  await rig.drive(rig.run((step) => provider.offers!.images!.remove(TAG, step), null));
  await rig.clock.advance(10_000);
  expect(ours()).toEqual([]);
  cloud.set({ faults: [{ call: "GET objects?uploads", how: "refuse", status: 404, code: "NoSuchBucket" }] });
  const order = { ...TAG, uploadId: "0000000008" };
  const again = (await rig.open(config)).offers!.images!.remove.bind(null, order);
  expect(await kindOf(rig.drive(rig.run(again, null)))).toMatch(/^access: .*object-storage/);
});
