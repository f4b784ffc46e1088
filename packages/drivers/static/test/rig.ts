import { type DriverContext, DriverError, driverScanner } from "@nodeyard/driver";
import type { ConformanceRig } from "@nodeyard/driver-testkit";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import {
  type StaticHost,
  type StaticPoolConfig,
  type StaticProviderConfig,
  staticDriver,
} from "../src/index.ts";

export const SSH = {
  username: "zuul",
  pythonPath: "auto",
  shellType: null,
  type: "ssh",
  port: 22,
};

export function host(more: Partial<StaticHost> = {}): StaticHost {
  return {
    name: "board.example",
    labels: ["arm-board"],
    connection: SSH,
    slots: 1,
    hostKeyChecking: true,
    hostKeys: [],
    timeoutMs: 2_000,
    ...more,
  };
}

export function config(hosts: readonly StaticHost[]): StaticProviderConfig {
  const pool: StaticPoolConfig = {
    name: "lab",
    limits: {},
    priority: 100,
    nodeAttributes: null,
    labels: new Map(),
    availabilityZones: [],
    useInternalIp: false,
    own: { hosts },
  };
  return {
    name: "lab-provider",
    driver: "static",
    maxConcurrency: Number.POSITIVE_INFINITY,
    priority: 100,
    pools: [pool],
    launchTimeoutMs: 1,
    bootTimeoutMs: 1,
    launchAttempts: 1,
    own: {},
  };
}

type Scan = DriverContext["scan"];

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

export function context(scan: Scan, installation = "i"): DriverContext {
  return { clock: systemClock, random: systemRandom, log: quiet, scan: driverScanner(scan), installation };
}

/** A scanner that answers from a table and counts. */
export function tableScanner(hostKeys: readonly string[], address = "192.0.2.7") {
  const state = { alive: true, scans: [] as Parameters<Scan["scan"]>[0][] };
  const scan: Scan = {
    async scan(target) {
      state.scans.push(target);
      await Promise.resolve();
      target.signal?.throwIfAborted();
      if (!state.alive) throw new DriverError("timeout", `${target.host}:${target.port} was not ready`);
      return { address, family: address.includes(":") ? 6 : 4, hostKeys: target.keys ? hostKeys : [] };
    },
  };
  return { scan, state };
}

export async function staticRig(): Promise<ConformanceRig> {
  const compiled = config([host(), host({ name: "other.example", slots: 4 })]);
  const { scan, state } = tableScanner(["ssh-ed25519 AAAA"]);
  const [pool] = compiled.pools;
  const label = {
    name: "arm-board",
    hostKeyChecking: true,
    connection: SSH,
    image: null,
    own: undefined,
  };
  return {
    clock: systemClock,
    providerName: compiled.name,
    pool: pool!,
    label,
    open: (installation) => staticDriver.open(compiled, context(scan, installation)),
    drive: (work) => work,
    settle: async () => {},
    setAlive: async (_item, alive) => {
      state.alive = alive;
    },
    stop: async () => {},
  };
}
