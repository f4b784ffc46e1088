import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { type AppliedWrite, attachEmbeddedTree, connectZooKeeperTree, type Tree } from "@nodeyard/tree";
import { startEnsemble, startZooKeeper, type ZooKeeperServer } from "../zookeeper/index.ts";
import { EmbeddedLog, readDisk } from "./raw-log/embedded.ts";
import { readEnsembleLog } from "./raw-log/zookeeper.ts";
import { type KillPoint, Victim } from "./victim.ts";

export const STORES = ["zookeeper", "ensemble", "embedded"] as const;
export type StoreName = (typeof STORES)[number];

export const LABELS = ["small", "large"];
/** Nodes of the pool at most. */
export const LIMIT = 10;
export const POOL = "fake-cloud/main";

/** A store, a cloud that is a file, and the launcher processes on them. */
export interface Site {
  readonly store: StoreName;
  /** The fake cloud's file. */
  readonly cloud: string;
  start(kill?: KillPoint): Victim;
  /** Text that appears in a launcher's log once it serves. */
  readonly ready: string;
  /** A session of a client, which outlives everything here. */
  connect(): Promise<Tree>;
  /** For a store with a leader: kills the leader and resolves with a description. It is restarted while the others go on. */
  killLeader?(): Promise<string>;
  /** To be called after each death, before the next start. */
  buried(): void;
  /** Everything that was done to the tree. */
  log(): readonly AppliedWrite[];
  close(): Promise<void>;
}

const CLIENT_SESSION_MS = 60_000;
/** A launcher's session: what a killed one held is free again after this, seconds. */
const SESSION_S = 4;
/** Several launchers run on one machine. Set in the file, because the launcher of the commit before has no option for it. */
const WEBAPP = "webapp: {listen_address: 127.0.0.1, port: 0}\n";

export async function openSite(store: StoreName): Promise<Site> {
  if (store === "embedded") return onEmbedded();
  return store === "zookeeper" ? onZooKeeper(await startZooKeeper()) : onEnsemble();
}

export interface SiteOptions {
  /** Where launchers find the ZooKeeper, when that is not its own port. */
  readonly launcherPort?: number;
  /** Of the fake cloud, as in the configuration. */
  readonly latency?: string;
}

export interface ZooKeeperSite extends Site {
  /** A launcher of another executable, with a state folder of its own and no kill plan. */
  startOther(bin: string): Victim;
}

const MEMBERS = 3;

async function onEnsemble(): Promise<Site> {
  const ensemble = await startEnsemble(MEMBERS);
  const site = onServers(ensemble.servers, { stop: () => ensemble.stop() });
  return {
    ...site,
    store: "ensemble",
    async killLeader() {
      // Two of three must live: the one that was killed before is back first.
      await Promise.all(ensemble.servers.map((server) => server.ready()));
      const leader = await ensemble.leader();
      await leader.restart();
      return `the leader on port ${leader.port} killed`;
    },
  };
}

/** A site that owns a ZooKeeper server and stops it in the end. */
export function onZooKeeper(zookeeper: ZooKeeperServer, options: SiteOptions = {}): ZooKeeperSite {
  return onServers([zookeeper], { ...options, stop: () => zookeeper.stop() });
}

interface ServerOptions extends SiteOptions {
  stop(): Promise<void>;
}

function onServers(servers: readonly ZooKeeperServer[], options: ServerOptions): ZooKeeperSite {
  const { launcherPort, latency } = options;
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-chaos-"));
  const cloud = join(folder, "cloud.journal");
  const config = join(folder, "nodepool.yaml");
  const hosts = servers.map(({ host, port }) => `{host: ${host}, port: ${launcherPort ?? port}}`);
  writeFileSync(
    config,
    `zookeeper-servers: [${hosts.join(", ")}]\nzookeeper-timeout: ${SESSION_S}\n${WEBAPP}${configOf(cloud, latency)}`,
  );
  return {
    store: "zookeeper",
    cloud,
    ready: "the launcher runs",
    start: (kill) =>
      new Victim(
        ["--state", join(folder, "state"), "-c", config, "launcher"],
        kill === undefined ? {} : { kill },
      ),
    startOther: (bin) =>
      new Victim(["--state", join(folder, "other"), "-c", config, "launcher"], { bin, inside: false }),
    connect: () =>
      connectZooKeeperTree({
        servers: servers.map(({ host, port }) => `${host}:${port}`).join(","),
        clock: systemClock,
        random: systemRandom,
        sessionTimeoutMs: CLIENT_SESSION_MS,
      }),
    buried: () => {},
    log: () => readEnsembleLog(servers.map(({ dataDir }) => dataDir)),
    async close() {
      await options.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function onEmbedded(): Promise<Site> {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-chaos-"));
  const [cloud, config, state, lines] = ["cloud.journal", "nodepool.yaml", "state", "tree.log"].map((name) =>
    join(folder, name),
  ) as [string, string, string, string];
  writeFileSync(config, configOf(cloud));
  const log = new EmbeddedLog(lines);
  return {
    store: "embedded",
    cloud,
    ready: "Nodeyard is up",
    start: (kill) =>
      new Victim(["--state", state, "-c", config, "up"], {
        log: lines,
        ...(kill === undefined ? {} : { kill }),
      }),
    connect: () =>
      attachEmbeddedTree({
        folder: state,
        clock: systemClock,
        random: systemRandom,
        sessionTimeoutMs: CLIENT_SESSION_MS,
      }),
    buried: () => log.died(readDisk(state)),
    log: () => log.all(),
    async close() {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const LATENCY = "{create: [50, 300], boot: [0, 100], delete: [50, 300], read: [1, 10]}";

/** Unused nodes are deleted soon, so that at the end any node that is left is an error. */
function configOf(cloud: string, latency = LATENCY): string {
  return `
labels:
${LABELS.map((label) => `  - {name: ${label}, max-ready-age: 2}\n`).join("")}
providers:
  - name: fake-cloud
    driver: fake
    cloud: shared
    fake:
      latency: ${latency}
      journal: ${cloud}
    cloud-images: [{name: debian, username: zuul}]
    pools:
      - name: main
        max-servers: ${LIMIT}
        labels:
${LABELS.map((label) => `          - {name: ${label}, cloud-image: debian, min-ram: 1024}\n`).join("")}`;
}
