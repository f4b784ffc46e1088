import { type ConformanceRig, driverConformance } from "@nodeyard/driver-testkit";
import { describe, expect, test } from "vitest";
import { API_KEY, type IbmSettings } from "../../../../testing/ibmvpc/index.ts";
import { ibmvpcDriver } from "../src/index.ts";
import { compile, IbmRig, STORAGE } from "./rig.ts";

const UPLOADS = {
  "object-storage": STORAGE,
  diskimages: [{ name: "conformance", "operating-system": "debian-13-amd64" }],
};
const CONTENT = Buffer.alloc(3 << 20, "an image");
const IMAGE = {
  ...{ file: "/image.qcow2", format: "qcow2", size: CONTENT.byteLength, own: {} },
  ...{ sha256: "5".repeat(64), md5: "5".repeat(32) },
};

function conformanceRig(settings: Partial<IbmSettings>, pool: object = {}): ConformanceRig {
  const rig = new IbmRig(settings);
  const { cloud, clock } = rig;
  const config = compile({ small: {} }, { provider: UPLOADS, pool });
  const elsewhere = compile({ small: {} }, { provider: { region: "eu-de" } });
  const [own] = config.pools;
  const faults = (...all: IbmSettings["faults"]) => cloud.set({ faults: all });
  return {
    clock,
    providerName: config.name,
    suspends: true,
    pool: own!,
    label: own!.labels.get("small")!,
    open: (installation, purpose = "serve") => rig.open(config, { installation, purpose }),
    openElsewhere: (installation) => rig.open(elsewhere, { installation }),
    drive: (work) => rig.drive(work),
    settle: () => clock.advance(30_000),
    writes: async () => cloud.calls.filter(({ call }) => !/^GET|^\w+ (token|iam_token)$/.test(call)).length,
    image: async () => {
      rig.files.set(IMAGE.file, CONTENT);
      return IMAGE;
    },
    fillQuota: async () => cloud.set({ quotas: { vcpu: 1 } }),
    breakList: () => faults({ call: "GET instances", how: "page" }),
    refuse: async () => cloud.refuse(),
    silence: async () => faults({ call: "POST instances", how: "silence" }),
    quoteSecrets: async () => {
      const secrets = [API_KEY, ...cloud.tokens()];
      cloud.quote(secrets.join(" "));
      return secrets;
    },
    denyRemoval: async () =>
      faults({ call: "DELETE instances/*", how: "refuse", status: 404, code: "not_found" }),
    loseTag: async ({ id }) => {
      cloud.vpc.instances.get(String(id))!.name = "renamed";
    },
    emptyList: async () => {
      faults({ call: "GET instances", how: "empty", times: 1_000 });
      return async () => faults();
    },
    makeForeign: async () => cloud.vpc.foreign("theirs"),
    stop: () => rig.stop(),
  };
}

const kit = { describe, test, expect };
driverConformance("ibmvpc", ibmvpcDriver, async () => conformanceRig({}), kit);
driverConformance(
  "ibmvpc, slow, lists that lag and have small pages, answers that are lost",
  ibmvpcDriver,
  async () =>
    conformanceRig({
      ...{ startMs: 20_000, stopMs: 15_000, importMs: 30_000, unseenMs: 4_000, pageSize: 1 },
      faults: [
        { call: "POST instances", how: "drop-answer" },
        { call: "DELETE instances/*", how: "drop", after: 1 },
        { call: "POST images", how: "drop-answer" },
        { call: "POST instances/*/actions", how: "drop-answer", times: 2 },
      ],
    }),
  kit,
);
const PUBLIC = {
  ...{ "public-ipv4": true, zone: undefined, subnet: undefined },
  subnets: ["sn-nodepool", "sn-nodepool-2"],
};
driverConformance("ibmvpc, with floating IPs", ibmvpcDriver, async () => conformanceRig({}, PUBLIC), kit);
