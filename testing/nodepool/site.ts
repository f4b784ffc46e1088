import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AppliedWrite } from "@nodeyard/tree";
import { Running } from "../../packages/nodeyard/cli/test/nodeyard.ts";
import { readZooKeeperLog } from "../chaos/raw-log/zookeeper.ts";
import { Agent, type Fields } from "../foreign/agent.ts";
import { patient } from "../patience.ts";
import { startZooKeeper, type ZooKeeperServer } from "../zookeeper/index.ts";
import { Nodepool, treeYaml } from "./index.ts";

/** Time for the first installation, milliseconds. */
export const INSTALL_MS = 600_000;

/** A cloud that both Nodepool's fake driver and Nodeyard's take; each has machines of its own. */
export const CLOUD = `
  - name: cloud
    driver: fake
    cloud: fake
    region-name: fake-region
    rate: 0.01
    cloud-images: [{name: fake-image, image-id: fake-image-id, username: zuul}]
    pools:
      - name: main
        max-servers: 2
        host-key-checking: false
        networks: [fake-public-network-name]
        labels: [{name: small, cloud-image: fake-image, flavor-name: Fake Flavor}]
`;

/** Boards of a lab; both names are this machine, where nothing has to answer. */
export const LAB = `
  - name: lab
    driver: static
    pools:
      - name: main
        nodes:
          - {name: 127.0.0.1, labels: board, host-key-checking: false, username: zuul}
          - {name: localhost, labels: board, host-key-checking: false, username: zuul}
`;

/** A real ZooKeeper, a real Nodepool launcher on it, processes of Nodeyard, and a client that plays Zuul. */
export class NodepoolSite implements AsyncDisposable {
  readonly zookeeper: ZooKeeperServer;
  nodepool: Nodepool;
  readonly zuul: Agent;
  readonly folder: string;
  readonly #running: Running[] = [];

  private constructor(zookeeper: ZooKeeperServer, folder: string, providers: string) {
    this.zookeeper = zookeeper;
    this.folder = folder;
    this.zuul = new Agent(`127.0.0.1:${zookeeper.plainPort}`);
    this.nodepool = new Nodepool(folder, this.yaml(providers));
  }

  /** Resolves when the Python launcher has registered the pools of `providers`. */
  static async start(providers: string): Promise<NodepoolSite> {
    // Outside of the time of a test.
    execFileSync(join(import.meta.dirname, "install.sh"));
    const zookeeper = await startZooKeeper({ tls: true });
    const site = new NodepoolSite(zookeeper, mkdtempSync(join(tmpdir(), "nodeyard-nodepool-")), providers);
    for (const provider of providers.match(/(?<=^ {2}- name: ).*/gm) ?? [])
      await site.served(provider, "python");
    return site;
  }

  /** A configuration with the labels of all tests. */
  yaml(providers: string): string {
    const list = providers === "" ? "providers: []\n" : `providers:${providers}`;
    return `${treeYaml(this.zookeeper)}labels: [{name: small}, {name: board}]\n${list}`;
  }

  /** Writes a configuration for Nodeyard, and returns its path. */
  file(name: string, providers: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, this.yaml(providers));
    return path;
  }

  /** A process of Nodeyard with a state folder of its own. */
  run(name: string, ...words: readonly string[]): Running {
    const running = new Running(["--state", join(this.folder, `state-${name}`), ...words]);
    this.#running.push(running);
    return running;
  }

  /** Resolves when a pool of the provider is registered by this kind of launcher: Nodepool's have version 11. */
  async served(provider: string, by: "python" | "nodeyard"): Promise<void> {
    await this.until(`${provider} is served by ${by}`, async () =>
      (await this.pools()).some(
        (pool) => pool.provider_name === provider && (pool.version === "11.0.0") === (by === "python"),
      ),
    );
  }

  /** Ends the Python launcher, as systemd does, and starts another with these providers. */
  async restartNodepool(providers: string): Promise<void> {
    await this.nodepool.signal("SIGTERM");
    this.nodepool = new Nodepool(this.folder, this.yaml(providers));
  }

  async pools(): Promise<readonly Fields[]> {
    return this.#records("/nodepool/components/pool");
  }

  async nodes(): Promise<readonly (Fields & { id: string })[]> {
    return this.#records("/nodepool/nodes");
  }

  /** What Zuul does with a request that is answered: locks its nodes, deletes it, uses them. Returns their ids. */
  async use(request: string): Promise<readonly string[]> {
    const { nodes } = await this.zuul.requestIs(request, "fulfilled");
    for (const id of nodes as string[]) {
      await this.zuul.lock(`/nodepool/nodes/${id}/lock`, true, 30);
      await this.zuul.change(`/nodepool/nodes/${id}`, { state: "in-use" });
    }
    await this.zuul.delete(`/nodepool/requests/${request}`);
    return nodes as string[];
  }

  /** Gives nodes back, as Zuul does. */
  async giveBack(nodes: readonly string[]): Promise<void> {
    for (const id of nodes) {
      await this.zuul.change(`/nodepool/nodes/${id}`, { state: "used" });
      await this.zuul.unlock(`/nodepool/nodes/${id}/lock`);
    }
  }

  log(): readonly AppliedWrite[] {
    return readZooKeeperLog(this.zookeeper.dataDir);
  }

  async until(what: string, look: () => Promise<boolean>): Promise<void> {
    const limit = performance.now() + PATIENCE_MS;
    while (!(await look())) {
      if (performance.now() > limit)
        throw new Error(
          `${what}: not within ${PATIENCE_MS} ms\n${this.#running.map(({ err }) => err.slice(-4_000)).join("\n")}\n${this.nodepool.output.slice(-4_000)}`,
        );
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#running.map((running) => running.kill("SIGKILL")));
    await this.nodepool[Symbol.asyncDispose]();
    await this.zuul.kill();
    await this.zookeeper.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #records(parent: string): Promise<(Fields & { id: string })[]> {
    if (!(await this.zuul.exists(parent))) return [];
    const records: (Fields & { id: string })[] = [];
    // It may go meanwhile.
    for (const id of (await this.zuul.children(parent)).sort())
      await this.zuul
        .record(`${parent}/${id}`)
        .then((record) => records.push({ id, ...record }))
        .catch(() => {});
    return records;
  }
}

const LOOK_MS = 100;
const PATIENCE_MS = patient(60_000);
