import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Driver, DriverError, type ProviderConfig } from "@nodeyard/driver";
import { createFakeDriver, FakeCloud, type FakeKnobs, fakeConfig, INSTANT } from "@nodeyard/driver-fake";
import { staticConfig, staticDriver } from "@nodeyard/driver-static";
import { decodeNode, decodeRequest, type NodeRecord, paths, type RequestRecord } from "@nodeyard/model";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { Counters, type Log, type LogLine, memoryJournal, memoryLog } from "@nodeyard/telemetry";
import { type EmbeddedTree, openEmbeddedTree, type Tree, TreeError } from "@nodeyard/tree";
import { patience } from "../../../../testing/patience.ts";
import { Launcher, type LauncherConfig, type LauncherOptions } from "../src/index.ts";

export const LABELS = ["small", "large"];

/** A fake provider's configuration, compiled as the program compiles it. */
export function fakeProvider(name = "cloud", fields: object = {}, pool: object = {}): ProviderConfig {
  const raw = {
    name,
    driver: "fake",
    "cloud-images": [{ name: "image", username: "tester" }],
    pools: [
      {
        name: "main",
        "host-key-checking": true,
        labels: LABELS.map((label) => ({
          name: label,
          "cloud-image": "image",
          "flavor-name": "Fake Flavor",
        })),
        ...pool,
      },
    ],
    ...fields,
  };
  const problems: string[] = [];
  const config = fakeConfig.load(raw, {
    labels: new Set(LABELS),
    diskimages: new Map([["noble", { username: "zuul", pythonPath: "auto", shellType: null }]]),
    report: (finding) =>
      void (finding.severity === "error" && problems.push(`${finding.path.join(".")}: ${finding.message}`)),
  });
  if (config === undefined || problems.length > 0)
    throw new Error(`bad test configuration: ${problems.join("; ")}`);
  return config;
}

/** A static provider's configuration; `nodes` as in the file. */
export function staticProvider(nodes: readonly object[], name = "lab"): ProviderConfig {
  const raw = { name, driver: "static", pools: [{ name: "main", nodes }] };
  const problems: string[] = [];
  const config = staticConfig.load(raw, {
    labels: new Set(LABELS),
    diskimages: new Map(),
    report: (finding) => void (finding.severity === "error" && problems.push(finding.message)),
  });
  if (config === undefined || problems.length > 0)
    throw new Error(`bad test configuration: ${problems.join("; ")}`);
  return config;
}

export function launcherConfig(
  providers: readonly ProviderConfig[],
  fields: Partial<LauncherConfig> = {},
): LauncherConfig {
  return {
    providers,
    labels: new Map(),
    tenantLimits: new Map(),
    maxHoldAgeMs: Number.POSITIVE_INFINITY,
    ...fields,
  };
}

export interface Rig extends AsyncDisposable {
  readonly tree: EmbeddedTree;
  readonly cloud: FakeCloud;
  readonly launcher: Launcher;
  readonly log: ReturnType<typeof memoryLog>;
  readonly counters: Counters;
  /** Starts another launcher, in a session of its own. */
  another(config?: LauncherConfig): Promise<Launcher>;
  ask(fields: object, prefix?: string): Promise<string>;
  request(id: string): Promise<RequestRecord | undefined>;
  node(id: string): Promise<NodeRecord | undefined>;
  nodes(): Promise<NodeRecord[]>;
  contenders(id: string): Promise<readonly string[]>;
}

/** A launcher with a fake cloud on an embedded tree, all in this process. */
export async function startRig(
  config: LauncherConfig,
  options: {
    readonly knobs?: Partial<FakeKnobs>;
    readonly before?: (tree: Tree) => Promise<void>;
    readonly beforeCloud?: (cloud: FakeCloud) => Promise<void>;
    /** Something around the fake driver. */
    readonly around?: (fake: Driver) => Driver;
    /** Where the launchers log; else into memory. */
    readonly logTo?: Log;
  } = {},
): Promise<Rig> {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-launcher-"));
  const tree = await openEmbeddedTree({ folder, clock: systemClock, random: systemRandom });
  const cloud = new FakeCloud({
    clock: systemClock,
    random: systemRandom,
    knobs: { ...INSTANT, quota: {}, ...options.knobs },
  });
  const fake = createFakeDriver({ config: fakeConfig, cloudOf: () => cloud }) as unknown as Driver;
  const driver = options.around?.(fake) ?? fake;
  const log = memoryLog();
  lines = log.lines;
  const counters = new Counters();
  await options.before?.(tree);
  await options.beforeCloud?.(cloud);
  const launchers: Launcher[] = [];
  const start = async (given: LauncherConfig): Promise<Launcher> => {
    const handles: LauncherOptions = {
      tree: await tree.connect(),
      clock: systemClock,
      random: systemRandom,
      scan: { scan: () => Promise.reject(new DriverError("timeout", "nothing to scan here")) },
      log: options.logTo ?? log,
      journal: memoryJournal(),
      counters,
      identity: { hostname: "host", fqdn: "host.example", version: "0.0.0" },
      driverOf: async (name) => (name === "static" ? (staticDriver as unknown as Driver) : driver),
      config: given,
    };
    const launcher = await Launcher.start(handles);
    launchers.push(launcher);
    return launcher;
  };
  const launcher = await start(config);
  const read = async <T>(path: string, decode: (data: Uint8Array) => T): Promise<T | undefined> => {
    try {
      return decode((await tree.get(path)).data);
    } catch (error) {
      if (error instanceof TreeError && error.code === "tree.no_node") return undefined;
      throw error;
    }
  };
  const node = (id: string) => read(paths.node(id), (data) => decodeNode(id, data));
  return {
    tree,
    cloud,
    launcher,
    log,
    counters,
    another: (given = config) => start(given),
    async ask(fields, prefix = "100") {
      await ensure(tree, paths.requests);
      const data = {
        state: "requested",
        state_time: 1,
        node_types: ["small"],
        requestor: "test",
        requestor_data: { a: 1 },
        event_id: "e",
        ...fields,
      };
      const { path } = await tree.create(`${paths.requests}/${prefix}-`, Buffer.from(JSON.stringify(data)), {
        sequential: true,
      });
      return path.slice(path.lastIndexOf("/") + 1);
    },
    request: (id) => read(paths.request(id), (data) => decodeRequest(id, data)),
    node,
    async nodes() {
      const ids = await tree.children(paths.nodes).catch(() => []);
      return (await Promise.all([...ids].sort().map(node))).filter((record) => record !== undefined);
    },
    contenders: (id) => tree.children(paths.nodeLock(id)).catch(() => []),
    async [Symbol.asyncDispose]() {
      await Promise.all(launchers.map((each) => each.close(500)));
      await tree.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function ensure(tree: Tree, path: string): Promise<void> {
  let at = "";
  for (const part of path.split("/").slice(1)) {
    at += `/${part}`;
    await tree.create(at).catch(() => {});
  }
}

/** The log of the rig started last, for messages. */
let lines: readonly LogLine[] = [];

/** Waits, without a guess about time, until `look` returns something; fails with `what` after 40 s, before anything is looked at again without an event. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
): Promise<T> {
  for (let tries = 0; tries < 4_000 * patience(); tries++) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(
    `it never happened: ${what}${lines.map((line) => `\n  ${line.level} ${line.text} ${JSON.stringify(line.facts)}`).join("")}`,
  );
}

/** What Zuul's executor does with a node: lock, in-use, used, unlock. */
export async function useNode(tree: Tree, id: string, leave: "used" | "in-use" = "used"): Promise<void> {
  const { path } = await tree.create(`${paths.nodeLock(id)}/${"e".repeat(32)}__lock__`, undefined, {
    ephemeral: true,
    sequential: true,
  });
  for (const state of leave === "used" ? ["in-use", "used"] : ["in-use"]) {
    const found = await tree.get(paths.node(id));
    const record = { ...JSON.parse(Buffer.from(found.data).toString()), state, state_time: 2, id };
    await tree.set(paths.node(id), Buffer.from(JSON.stringify(record)));
  }
  await tree.delete(path);
}
