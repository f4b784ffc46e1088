import {
  type DriverContext,
  driverScanner,
  type LabelConfig,
  type PoolConfig,
  type Provider,
} from "@nodeyard/driver";
import { Between, type ConformanceRig } from "@nodeyard/driver-testkit";
import { createScanner } from "@nodeyard/keyscan";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import {
  readSigningKeys,
  SliverClient,
  type SliverSpecInput,
  unixTransport,
} from "@nodeyard/sliver-protocol";
import { CAPACITY, type Machine } from "../../../../testing/slivers/index.ts";
import type { MachineAt } from "../src/config.ts";
import { createSliverDriver } from "../src/driver.ts";
import { type SliverProviderConfig, sliverConfig } from "../src/index.ts";
import { isIdle, setIdle } from "../src/lending/index.ts";

/** What a label takes of it where a test says nothing. */
const LABEL = {
  name: "small",
  "cpu-guarantee": 100,
  "cpu-share": 64,
  "memory-guarantee": 64,
  memory: 256,
  pids: 200,
  disk: 64,
};

export function contextOf(
  installation: string,
  warnings: string[] = [],
  parts: string[] = [],
): DriverContext {
  const warn = (_: object, text: string) => void warnings.push(text);
  const log = { debug() {}, info() {}, warn, error: warn };
  const scan = driverScanner(createScanner({ clock: systemClock }));
  const impaired = (part: string, why: string | null) => void (why === null || parts.push(`${part}: ${why}`));
  return { clock: systemClock, random: systemRandom, log, scan, installation, impaired };
}

/** What the driver makes of a provider of the file; a finding is an error. */
export function compile(raw: Readonly<Record<string, unknown>>): SliverProviderConfig {
  const report = ({ path, message }: { path: readonly unknown[]; message: string }) => {
    throw new Error(`${path.join(".")}: ${message}`);
  };
  const findings = sliverConfig.schema.safeParse(raw);
  if (!findings.success) throw findings.error;
  const labels = (raw.pools as { labels: { name: string }[] }[]).flatMap((pool) => pool.labels);
  const context = { labels: new Set(labels.map((one) => one.name)), diskimages: new Map(), report };
  const config = sliverConfig.load(raw, context);
  if (config === undefined) throw new Error("the provider was refused");
  return config;
}

export function providerOf(machines: readonly Machine[], label: object = {}, more: object = {}) {
  return compile({
    name: "lab",
    machines: machines.map(({ name, socket }) => ({ name, socket })),
    "signing-keys": machines[0]!.keysFile,
    pools: [{ name: "main", labels: [{ ...LABEL, ...label }] }],
    ...more,
  });
}

/** The driver, with a test between it and the managers. What is sent has the manager's method, and the machine's name as its address. */
export function driverBehind(between: Between) {
  const connect = ({ name, at }: MachineAt) => {
    const transport = unixTransport((at as { socket: string }).socket);
    return new SliverClient(async (request, signal) => {
      const sent = { method: String(JSON.parse(request).method), url: name, headers: {}, signal };
      const pass = async () => ({ status: 200, headers: {}, text: await transport(request, signal) });
      return (await between.send(sent, pass)).text;
    });
  };
  return createSliverDriver({ connect, readKeys: readSigningKeys });
}

export function betweenManagers(isMeant: (method: string, machine: string) => boolean): Between {
  const makes = ({ method, url }: { method: string; url: string }) => isMeant(method, url);
  return new Between({ makes, writes: () => false, removes: () => false, lists: () => false });
}

export async function sliverRig(machine: Machine, label: object = {}): Promise<ConformanceRig> {
  await machine.clear();
  const config = providerOf([machine], { "cpu-cap": 500, lend: "idle", ...label });
  const [pool] = config.pools as readonly [PoolConfig];
  const between = betweenManagers((method) => method === "Deliver");
  const driver = driverBehind(between);
  const foreign = (count: number, more: Partial<SliverSpecInput> = {}) =>
    machine.change((slivers) => {
      const name = `theirs${count}`;
      slivers.set(name, { name, generation: 1, instantiation: "plc-instantiated", ...more });
    });
  let count = 0;
  const opened: Provider[] = [];
  return {
    clock: between.clock,
    providerName: config.name,
    pool,
    label: pool.labels.get("small") as LabelConfig,
    // Another copy of the file, which does not lend: a launcher with it would end the loans.
    async open(installation, purpose = "serve") {
      const own = purpose === "look" ? providerOf([machine], { "cpu-cap": 500 }) : config;
      const context = { ...contextOf(installation), clock: between.clock, purpose };
      const provider = await driver.open(own, context);
      opened.push(provider);
      return provider;
    },
    drive: (work) => work,
    settle: async () => {},
    // With every sliver idle, so that there is lending to end.
    async writes() {
      const { signal } = new AbortController();
      const { slivers } = await machine.client.document(signal);
      if (!slivers.some(isIdle))
        await machine.change((all) => {
          for (const [name, spec] of [...all]) all.set(name, setIdle(spec));
        });
      return (await machine.client.document(signal)).slivers.map(({ tags }) => tags);
    },
    makeForeign: async () => void (await foreign(count++, { rspec: { disk: 65_536 } })),
    fillQuota: async () =>
      void (await foreign(count++, {
        instantiation: "delegated",
        rspec: { cpuGuarantee: CAPACITY.cpu, disk: 65_536 },
      })),
    breakList: () => void machine.kill(),
    silence: between.faults().silence,
    cannot: {
      openElsewhere: "its ids name the machine",
      refuse:
        "only documents are signed, and reading needs no credential (faults.test.ts has keys that are not trusted)",
      quoteSecrets: "it sends no secret: documents are signed, and ssh has its own key",
      denyRemoval: "a machine takes a document or refuses it",
      loseTag: "the tag is in the document, which has one writer",
      emptyList:
        "the list is the machine's own document; when it was lost, the machine says so and the list is refused",
    },
    async stop() {
      for (const provider of opened) await provider.close();
    },
  };
}
