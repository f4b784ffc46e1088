import type { Resource } from "@nodeyard/driver";
import { type ConformanceRig, driverConformance } from "@nodeyard/driver-testkit";
import { describe, expect, test } from "vitest";
import { Dropped, type GceSettings } from "../../../../testing/gce/index.ts";
import { gceDriver } from "../src/index.ts";
import { compile, GceRig, TOKEN } from "./rig.ts";

const SITE = "/compute/v1/projects/ci-project-1";
const UPLOADS = { provider: { bucket: "ci-images", diskimages: [{ name: "conformance", family: "ci" }] } };
const CONTENT = Buffer.alloc(3 << 20, "an image");
const IMAGE = {
  ...{ file: "/image.raw", format: "raw", size: CONTENT.byteLength, own: {} },
  ...{ sha256: "5".repeat(64), md5: "5".repeat(32) },
};
const NOBODY = new AbortController().signal;

function conformanceRig(settings: Partial<GceSettings>): ConformanceRig {
  const rig = new GceRig(settings);
  const { cloud, clock } = rig;
  const config = compile({ small: {} }, UPLOADS);
  const [pool] = config.pools;
  let compresses = false;
  const faults = (...all: GceSettings["faults"]) => cloud.set({ faults: all });
  /** A person's call. */
  const call = (method: string, path: string, body: object) =>
    cloud.answer(
      {
        ...{ method, url: `https://compute.googleapis.com${SITE}${path}` },
        headers: { authorization: "Bearer a person", "content-type": "application/json" },
        body: Buffer.from(JSON.stringify(body)),
      },
      NOBODY,
    );
  const pathOf = ({ id }: Resource) => `/zones/${String(id).replace("/", "/instances/")}`;
  const elsewhere = compile({ small: {} }, { provider: { region: "europe-west4", zone: "europe-west4-a" } });
  return {
    clock,
    providerName: config.name,
    suspends: true,
    pool: pool!,
    label: pool!.labels.get("small")!,
    open: (installation, purpose = "serve") => rig.open(config, { installation, purpose }),
    openElsewhere: (installation) => rig.open(elsewhere, { installation }),
    drive: (work) => rig.drive(work, compresses),
    settle: () => clock.advance(30_000),
    writes: async () =>
      cloud.calls.filter(({ call: name }) => !/^GET |\.(get|list|aggregated)/i.test(name)).length,
    image: async () => {
      compresses = true;
      rig.files.set(IMAGE.file, CONTENT);
      return IMAGE;
    },
    fillQuota: async () => cloud.set({ quotas: { CPUS: 2, INSTANCES: 10, CPUS_ALL_REGIONS: 100 } }),
    breakList: () => faults({ call: "instances.aggregatedList", how: "unreachable" }),
    refuse: async () => cloud.refuse(),
    silence: async () => faults({ call: "instances.insert", how: "silence" }),
    quoteSecrets: async () => {
      cloud.refuse(true);
      return [TOKEN];
    },
    denyRemoval: async () =>
      faults({ call: "instances.delete", how: "refuse", status: 404, reason: "notFound" }),
    loseTag: async (machine) => {
      await call("POST", `${pathOf(machine)}/setMetadata`, { items: [] });
      await call("POST", `${pathOf(machine)}/setLabels`, { labels: {} });
    },
    emptyList: async () => {
      faults({ call: "instances.aggregatedList", how: "empty", times: 1_000 });
      return async () => faults();
    },
    makeForeign: async () => {
      const image = "projects/debian-cloud/global/images/family/debian-12";
      const made = call("POST", "/zones/us-central1-b/instances", {
        ...{ name: "theirs", machineType: "zones/us-central1-b/machineTypes/f1-micro" },
        disks: [{ boot: true, autoDelete: true, initializeParams: { sourceImage: image } }],
      });
      await made.catch((error: unknown) => expect(error).toBeInstanceOf(Dropped));
    },
    stop: () => rig.stop(),
  };
}

const kit = { describe, test, expect };
driverConformance("gce", gceDriver, async () => conformanceRig({}), kit);
driverConformance(
  "gce, slow, lists that lag and have small pages, answers that are lost",
  gceDriver,
  async () =>
    conformanceRig({
      ...{ startMs: 20_000, stopMs: 15_000, unseenMs: 4_000, pageSize: 1 },
      faults: [
        { call: "instances.insert", how: "drop-answer" },
        { call: "instances.delete", how: "drop", after: 1 },
        { call: "instances.suspend", how: "drop-answer" },
        { call: "instances.resume", how: "drop" },
      ],
    }),
  kit,
);
