import { type DriverContext, DriverError } from "@nodeyard/driver";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { createOpenstackDriver } from "../../src/index.ts";
import { readRecordings } from "./exchange.ts";
import { Player } from "./player.ts";
import { FILE, scenarios } from "./scenarios.ts";

const CLOUDS = `
clouds:
  nodeyard:
    region_name: RegionOne
    auth: {auth_url: "http://127.0.0.1:15000/v3", username: nodeyard, password: secret, project_name: nodeyard}
`;

const recordings = readRecordings();

test.each(Object.keys(scenarios))("%s: as a real cloud answered, and no call besides", async (name) => {
  const recording = recordings[name]!;
  const player = new Player(recording);
  const clock = new VirtualClock();
  const driver = createOpenstackDriver({
    around: {
      env: {},
      cwd: "/lab",
      home: "/home",
      read: (path) => (path === "/lab/clouds.yaml" ? CLOUDS : undefined),
    },
    connect: () => player.connect(),
    async *openFile() {
      yield new Uint8Array(FILE.size).fill(FILE.fill);
    },
    hasIpv6: () => false,
  });
  const context: DriverContext = {
    clock,
    random: seededRandom(1),
    log: { debug() {}, info() {}, warn() {}, error() {} },
    scan: { scan: () => Promise.reject(new DriverError("timeout", "nothing scans here")) },
    installation: "6a1f6d1e-0f5e-4a62-9d51-6f3f0d8f5b01",
  };
  const work = scenarios[name]!({
    clock,
    open: (config) => driver.open(config, context),
    faults: async () => {},
  });
  let settled = false;
  const done = () => {
    settled = true;
  };
  work.then(done, done);
  for (let step = 0; !settled && step < 2_000; step++) await clock.advance(100);
  expect(player.unexpected).toEqual([]);
  expect(JSON.parse(JSON.stringify(await work))).toEqual(recording.outcome);
  expect(player.unused).toEqual([]);
});
