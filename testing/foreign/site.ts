import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AppliedWrite } from "@nodeyard/tree";
import { EmbeddedLog } from "../chaos/raw-log/embedded.ts";
import { readZooKeeperLog } from "../chaos/raw-log/zookeeper.ts";
import { Victim } from "../chaos/victim.ts";
import { freePort, startZooKeeper } from "../zookeeper/index.ts";
import { Agent } from "./agent.ts";

/** Session timeout of launchers on ZooKeeper, seconds; a launcher loses its session only if it stalls for longer. */
const SESSION_S = 15;

export type StoreName = "zookeeper" | "embedded";

/** A launcher process and the port at which foreign clients find its tree. */
export interface ForeignSite {
  readonly hosts: string;
  readonly launcher: Victim;
  /** A foreign client; all end with the site. */
  agent(timeoutS?: number): Agent;
  /** Everything that was done to the tree. */
  log(): readonly AppliedWrite[];
  close(): Promise<void>;
}

/**
 * `nodeyard launcher` on a real ZooKeeper, or `nodeyard up --listen`. Resolves when it serves. `labelsAndProviders` is a piece of
 * its file.
 */
export async function startForeignSite(
  store: StoreName,
  labelsAndProviders: string = CONFIG,
): Promise<ForeignSite> {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-foreign-"));
  const [state, config, lines] = [
    join(folder, "state"),
    join(folder, "nodepool.yaml"),
    join(folder, "tree.log"),
  ];
  const zookeeper = store === "zookeeper" ? await startZooKeeper() : undefined;
  const port = zookeeper?.port ?? (await freePort());
  const servers =
    zookeeper && `zookeeper-servers: [{host: 127.0.0.1, port: ${port}}]\nzookeeper-timeout: ${SESSION_S}.0\n`;
  writeFileSync(config, `${servers ?? ""}${labelsAndProviders}`);
  const words = zookeeper ? ["launcher", "--no-webapp"] : ["up", "--listen", `127.0.0.1:${port}`];
  const launcher = new Victim(["--state", state, "-c", config, ...words], { log: lines });
  const embedded = new EmbeddedLog(lines);
  const agents: Agent[] = [];
  const site: ForeignSite = {
    hosts: `127.0.0.1:${port}`,
    launcher,
    agent(timeoutS) {
      const agent = new Agent(site.hosts, timeoutS);
      agents.push(agent);
      return agent;
    },
    log: () => (zookeeper === undefined ? embedded.all() : readZooKeeperLog(zookeeper.dataDir)),
    async close() {
      await Promise.all(agents.map((agent) => agent.kill()));
      await launcher.signal("SIGKILL");
      await zookeeper?.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  if (!(await launcher.printed(zookeeper ? "the launcher runs" : "Nodeyard is up"))) {
    await site.close();
    throw new Error(launcher.errors);
  }
  return site;
}

/**
 * quick: two labels without any delay; slow: a launch takes long enough to be seen in progress, even by a client that stalls for seconds;
 * narrow: one node at a time; warm: one stays ready.
 */
const CONFIG = `
labels:
  - {name: small}
  - {name: large}
  - {name: slow}
  - {name: narrow}
  - {name: warm, min-ready: 1}
providers:
${provider("quick", ["small", "large", "warm"], "{}", 20)}
${provider("sluggish", ["slow"], "{create: 10000}", 5)}
${provider("single", ["narrow"], "{}", 1)}
`;

function provider(name: string, labels: readonly string[], latency: string, limit: number): string {
  return `
  - name: ${name}
    driver: fake
    cloud: ${name}
    fake: {latency: ${latency}}
    cloud-images: [{name: debian, username: zuul}]
    pools:
      - name: main
        max-servers: ${limit}
        labels:
${labels.map((label) => `          - {name: ${label}, cloud-image: debian, min-ram: 1024}`).join("\n")}`;
}
