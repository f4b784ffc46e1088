import { createHash } from "node:crypto";
import { type DriverContext, DriverError, type Wire } from "@nodeyard/driver";
import { Between, type ConformanceRig, driverConformance } from "@nodeyard/driver-testkit";
import { systemRandom } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { Meadow } from "../server/meadow.ts";
import { meadowConfig } from "../src/config.ts";
import { createMeadowDriver } from "../src/driver.ts";
import { meadowDriver } from "../src/index.ts";

const TOKEN = "green-grass-of-home";
const DATA = Buffer.alloc(3 << 20, "an image");
const hash = (kind: string) => createHash(kind).update(DATA).digest("hex");
const IMAGE = { file: "/image", format: "raw", size: DATA.byteLength, own: {} };

function compile(endpoint: string) {
  const raw = {
    ...{ name: "meadow", driver: "meadow", endpoint, "token-file": "/token" },
    "cloud-images": [{ name: "wool" }],
    pools: [
      { name: "main", labels: [{ name: "lamb", "cloud-image": "wool", "min-ram": 256, address: true }] },
    ],
  };
  const report = ({ message }: { message: string }) => {
    throw new Error(message);
  };
  return meadowConfig.load(raw, { labels: new Set(["lamb"]), diskimages: new Map(), report })!;
}

async function setup(): Promise<ConformanceRig> {
  const [cloud, other] = [new Meadow(TOKEN), new Meadow(TOKEN)];
  const [config, elsewhere] = [compile(await cloud.start()), compile(await other.start())];
  const between = new Between({
    writes: ({ method }) => method !== "GET",
    makes: ({ method, url }) => method === "POST" && url.endsWith("/machines"),
    removes: ({ method, url }) => method === "DELETE" && url.includes("/machines/"),
    lists: ({ method, url }) => method === "GET" && /\/machines(\?|$)/.test(url),
  });
  const pass: Wire["send"] = async ({ url, ...request }) => {
    const answer = await fetch(url, request as RequestInit);
    return { status: answer.status, headers: Object.fromEntries(answer.headers), text: await answer.text() };
  };
  const driver = createMeadowDriver({
    connect: () => ({
      send: (request) => between.send(request, () => pass(request)),
      close: async () => {},
    }),
    around: { env: {}, read: () => `${TOKEN}\n` },
    async *openFile() {
      yield DATA;
    },
  });
  const contextOf = (installation: string): DriverContext => ({
    ...{ clock: between.clock, random: systemRandom, installation },
    log: { debug() {}, info() {}, warn() {}, error() {} },
    scan: { scan: () => Promise.reject(new DriverError("timeout", "nothing scans here")) },
  });
  const [pool] = config.pools;
  return {
    clock: between.clock,
    providerName: config.name,
    pool: pool!,
    label: pool!.labels.get("lamb")!,
    open: (installation) => driver.open(config, contextOf(installation)),
    openElsewhere: (installation) => driver.open(elsewhere, contextOf(installation)),
    drive: (work) => work,
    settle: async () => {},
    ...between.faults(),
    async loseTag({ id }) {
      cloud.machines.get(String(id))!.labels = {};
    },
    makeForeign: async () => void cloud.make({}),
    async fillQuota() {
      cloud.quota = 0;
    },
    breakList() {
      cloud.failing = 5;
    },
    image: async () => ({ ...IMAGE, sha256: hash("sha256"), md5: hash("md5") }),
    async stop() {
      cloud.stop();
      other.stop();
    },
  };
}

driverConformance("meadow", meadowDriver, setup, { describe, test: test.concurrent, expect });
