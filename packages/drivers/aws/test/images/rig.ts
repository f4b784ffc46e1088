import { createHash } from "node:crypto";
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type Clock,
  type ExternalId,
  type ImageTag,
  type Provider,
  runSteps,
  type UploadOrder,
} from "@nodeyard/driver";
import { systemClock } from "@nodeyard/runtime";
import { AwsRig, compile, contextOf, INSTALLATION } from "../rig.ts";

export const BLOCK = 512 * 1024;
export const PROVIDER = "ec2-us-west-2";

/** Polls of seconds take hundredths; limits of minutes stay what they are. */
export const fastClock: Clock = {
  now: () => systemClock.now(),
  monotonic: () => systemClock.monotonic(),
  setTimer: (ms, fn, options) => systemClock.setTimer(ms < 60_000 ? ms / 100 : ms, fn, options),
};

/** Images of one account, by providers that take uploads. */
export class ImageRig extends AwsRig {
  folder = "";

  static override async start(): Promise<ImageRig> {
    const { server, site } = await AwsRig.start();
    const rig = new ImageRig(server, site);
    rig.folder = await mkdtemp(join(tmpdir(), "nodeyard-aws-image-"));
    return rig;
  }

  /** A provider with one diskimage `debian`, opened as by another process. */
  openWith(diskimage: object, installation = INSTALLATION, provider: object = {}): Promise<Provider> {
    return this.open(this.compiled(diskimage, provider), contextOf(installation, { clock: fastClock }));
  }

  compiled(diskimage: object, provider: object = {}) {
    const bucket = { "object-storage": { "bucket-name": this.site.bucket } };
    const diskimages = [{ name: "debian", ...diskimage }];
    return compile(this.site, { small: {} }, { provider: { ...bucket, diskimages, ...provider } });
  }

  /** A sparse file with random data in these blocks. */
  file(name: string, size: number, blocks: readonly number[]): string {
    const path = join(this.folder, name);
    const fd = openSync(path, "w");
    ftruncateSync(fd, size);
    for (const block of blocks)
      writeSync(fd, dataOf(block), 0, Math.min(BLOCK, size - block * BLOCK), block * BLOCK);
    closeSync(fd);
    return path;
  }

  override async stop(): Promise<void> {
    await super.stop();
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** What is in a block of the file: other data in each. */
export function dataOf(block: number): Buffer {
  const line = createHash("sha256").update(`block ${block}`).digest();
  return Buffer.alloc(BLOCK, line);
}

export function checksumOf(data: Buffer): string {
  return createHash("sha256").update(data).digest("base64");
}

export function tagOf(uploadId: string, more: Partial<ImageTag> = {}): ImageTag {
  return {
    installation: INSTALLATION,
    provider: PROVIDER,
    image: "debian",
    buildId: "b1",
    uploadId,
    ...more,
  };
}

export function orderOf(
  file: string,
  size: number,
  tag: ImageTag,
  more: Partial<UploadOrder> = {},
): UploadOrder {
  // The driver compares no hash of a whole file: EBS and S3 check theirs.
  const sha256 = createHash("sha256").update(file).digest("hex");
  const facts = { name: `debian-${tag.uploadId}`, file, size, format: "raw", sha256, md5: "" };
  return { ...facts, tag, metadata: { os: "linux" }, own: {}, progress: () => {}, ...more };
}

/** Uploads as the builder does. */
export function upload(
  provider: Provider,
  order: UploadOrder,
  {
    externalId = null,
    save = () => {},
  }: { readonly externalId?: ExternalId | null; readonly save?: (id: ExternalId) => void } = {},
): Promise<ExternalId> {
  return runSteps((context) => provider.offers!.images!.upload(order, context), {
    clock: fastClock,
    signal: new AbortController().signal,
    externalId,
    save: async (id) => save(id),
  });
}

export function remove(provider: Provider, tag: ImageTag): Promise<void> {
  return runSteps((context) => provider.offers!.images!.remove(tag, context), {
    clock: fastClock,
    signal: new AbortController().signal,
    externalId: null,
    save: async () => {},
  });
}

/** Uploads of a provider, as sweeps see them. */
export async function listed(provider: Provider) {
  const all = await provider.list(new AbortController().signal);
  return all
    .filter(({ imageTag }) => imageTag != null)
    .map(({ type, id, imageTag }) => ({ type, id, upload: imageTag!.uploadId }));
}

export function stored(file: string): ExternalId | null {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as ExternalId;
  } catch {
    return null;
  }
}
