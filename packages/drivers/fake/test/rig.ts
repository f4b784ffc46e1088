import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Connection, DriverContext, ImageTag, LabelConfig } from "@nodeyard/driver";
import { DriverError } from "@nodeyard/driver";
import type { ConformanceRig } from "@nodeyard/driver-testkit";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { CloudError } from "../src/cloud/errors.ts";
import { folderShelf } from "../src/edge/folder-shelf.ts";
import {
  createFakeDriver,
  FakeCloud,
  type FakeKnobs,
  type FakeLabelOwn,
  type FakePoolConfig,
  type FakeProviderConfig,
  fakeConfig,
  INSTANT,
} from "../src/index.ts";

const CONNECTION: Connection = {
  username: "zuul",
  pythonPath: "auto",
  shellType: null,
  type: "ssh",
  port: 22,
};

export const label: LabelConfig<FakeLabelOwn> = {
  name: "fake-label",
  hostKeyChecking: true,
  connection: CONNECTION,
  image: { kind: "cloud-image", name: "Fake Precise" },
  own: { cores: 4, ram: 8192, imageProperties: {} },
};

export const pool: FakePoolConfig = {
  name: "main",
  limits: {},
  priority: 100,
  nodeAttributes: null,
  labels: new Map([[label.name, label]]),
  availabilityZones: [],
  useInternalIp: false,
  own: { networks: [] },
};

export function providerConfig(knobs: FakeKnobs, name = "fake-provider"): FakeProviderConfig {
  return {
    name,
    driver: "fake",
    maxConcurrency: Number.POSITIVE_INFINITY,
    priority: 100,
    pools: [pool],
    launchTimeoutMs: 60_000,
    bootTimeoutMs: 60_000,
    launchAttempts: 3,
    own: { cloud: "conformance", knobs, journal: null, loopback: false },
  };
}

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

export function contextFor(clock: VirtualClock, installation: string, seed = 99): DriverContext {
  return {
    clock,
    random: seededRandom(seed),
    log: quiet,
    installation,
    scan: { scan: () => Promise.reject(new DriverError("timeout", "nothing scans here")) },
  };
}

/** Moves virtual time until `work` has settled. */
export async function drive<T>(clock: VirtualClock, work: Promise<T>): Promise<T> {
  let settled = false;
  const done = () => {
    settled = true;
  };
  work.then(done, done);
  await clock.advance(0);
  for (let step = 0; !settled && step < 20_000; step++) await clock.advance(25);
  if (!settled) throw new Error("the work did not end within 500 virtual seconds");
  return work;
}

/** Nothing in the fake cloud reads the file. */
const IMAGE = {
  file: "/nowhere/image.qcow2",
  format: "qcow2",
  size: 1_234_567,
  sha256: "5".repeat(64),
  md5: "5".repeat(32),
  own: {},
};

/** A cloud whose images are files: one that is there to be uploaded, and where it goes. */
function imageFolder() {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-fake-"));
  const file = join(folder, "image.raw");
  const content = "an image";
  writeFileSync(file, content);
  const sum = (algorithm: string) => createHash(algorithm).update(content).digest("hex");
  const stored = join(folder, "stored");
  return {
    stored,
    image: { file, format: "raw", size: content.length, sha256: sum("sha256"), md5: sum("md5"), own: {} },
    inspect: () =>
      (readdirSync(folder).includes("stored") ? readdirSync(stored) : [])
        .filter((name) => name.endsWith(".json"))
        .map(
          (name) =>
            JSON.parse(readFileSync(join(stored, name), "utf8")) as {
              readonly id: string;
              readonly tag: ImageTag;
            },
        ),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export interface FakeRig extends ConformanceRig {
  readonly cloud: FakeCloud;
  /** Another one, where none of the machines is. */
  readonly far: FakeCloud;
  readonly clock: VirtualClock;
}

export async function fakeRig(
  knobs: FakeKnobs = INSTANT,
  options: { readonly imagesIn?: "cloud" | "folder" } = {},
): Promise<FakeRig> {
  const folder = options.imagesIn === "folder" ? imageFolder() : undefined;
  const clock = new VirtualClock();
  const cloud = new FakeCloud({ clock, random: seededRandom(knobs.seed + 1), knobs });
  const common = providerConfig(knobs);
  const images = folder && { images: { folder: folder.stored, formats: ["raw"] } };
  const config = { ...common, own: { ...common.own, ...images } };
  const driver = createFakeDriver({ config: fakeConfig, cloudOf: () => cloud, shelfOf: folderShelf });
  const far = new FakeCloud({
    clock,
    random: seededRandom(knobs.seed + 2),
    knobs: { ...knobs, seed: knobs.seed + 100 },
  });
  const farDriver = createFakeDriver({ config: fakeConfig, cloudOf: () => far, shelfOf: folderShelf });
  const signal = new AbortController().signal;
  let opened = 0;
  const make = (resources: Record<string, number>) =>
    cloud.create(
      { name: "theirs", tag: null, az: null, resources, networks: [], imageProperties: {} },
      signal,
    );
  /** Until it is there: a scripted fault may make nothing, or only lose the reply. */
  const persist = async (resources: Record<string, number>) => {
    const wanted = cloud.inspect().length + 1;
    while (cloud.inspect().length < wanted) await drive(clock, make(resources)).catch(() => {});
  };
  return {
    cloud,
    far,
    clock,
    pool,
    label,
    providerName: config.name,
    suspends: true,
    // No two providers draw the same ids.
    open: (installation) => driver.open(config, contextFor(clock, installation, 99 + opened++)),
    openElsewhere: (installation) =>
      farDriver.open({ ...config, own: { ...config.own, cloud: "far" } }, contextFor(clock, installation)),
    // Files take real time, and the instant knobs none.
    drive: (work) => (folder === undefined ? drive(clock, work) : work),
    settle: () => clock.advance(60_000),
    truth: async () => [
      ...cloud.inspect().map(({ id, tag, resources }) => ({ type: "instance", id, tag, resources })),
      ...(folder ?? { inspect: () => cloud.inspectImages() }).inspect().map(({ id, tag: imageTag }) => {
        return { type: "image", id, tag: null, imageTag, resources: {} };
      }),
    ],
    image: async () => folder?.image ?? IMAGE,
    fillQuota: () => persist({ instances: knobs.quota.instances ?? 0 }),
    breakList: () => cloud.adjust({ ...knobs, errors: { ...knobs.errors, list: 1 } }),
    writes: async () => cloud.inspect(),
    refuse: async () => {
      cloud.faults.refused = Number.POSITIVE_INFINITY;
    },
    denyRemoval: async () => {
      const { delete: real } = cloud;
      cloud.delete = async () => {
        cloud.delete = real;
        throw new CloudError(404, "there is no such server");
      };
    },
    loseTag: async ({ id }) => cloud.loseTag(String(id)),
    emptyList: async () => {
      const { listAll, findByTag } = cloud;
      cloud.listAll = async () => ({ servers: [], images: [] });
      cloud.findByTag = async () => undefined;
      return async () => void Object.assign(cloud, { listAll, findByTag });
    },
    cannot: { silence: "its cloud is in this process, and answers", quoteSecrets: "it logs in nowhere" },
    makeForeign: () => persist({ instances: 1 }),
    stop: async () => folder?.remove(),
  };
}
