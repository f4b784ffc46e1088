import { writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { Victim } from "../chaos/victim.ts";
import { guestConfig } from "../connect/tmt.ts";
import { GiteaRepository, RUNNER, startWithRepository } from "../gitea/site.ts";
import { GitHub } from "../github/server.ts";
import { freePort } from "../zookeeper/index.ts";
import { providerLabels } from "../zuul/files.ts";
import { ZuulSite } from "../zuul/site.ts";
import { makeYard, type Yard } from "../zuul/yard.ts";
import { Ledger } from "./ledger.ts";

/** Nodes of the pool, of one tenant, of the cloud's two zones, and launches at once of each launcher. */
export const LIMITS = { pool: 10, tenant: 4, zones: [6, 7], launching: 6 } as const;
/** The tenant of scripts, which alone has a limit. */
export const TENANT = "people";
/** Pipelines of Zuul: two ask for nodes as of Nodepool, one has its nodes from launchers of Zuul and the connector. */
export const PIPELINES = ["check", "gate", "leased"] as const;
const GITHUB_RUNNER = `${process.execPath} ${join(import.meta.dirname, "../github/runner.mjs")}`;

/** Processes that are killed in a day. */
export const MORTALS = ["one", "two", "connect"] as const;
export type Mortal = (typeof MORTALS)[number];

/** One pool on two launchers and a ZooKeeper, which the real Zuul shares, and the connectors of all systems in a process of their own. */
export class DaySite {
  readonly yard: Yard;
  readonly zuul: ZuulSite;
  readonly gitea: GiteaRepository;
  readonly github: GitHub;
  readonly ledger: Ledger;
  /** The journal of the cloud. */
  readonly cloud: string;
  /** Where launchers answer REST. */
  readonly urls: Readonly<Record<"one" | "two", string>>;
  /** Where tmt finds guests. */
  readonly guests: string;
  /** What each process has logged at its end. */
  readonly logs: string[] = [];
  readonly #ports: Readonly<Record<"one" | "two", number>>;
  readonly #running = new Map<Mortal, Victim>();
  #closed = false;

  private constructor(parts: Pick<DaySite, "yard" | "zuul" | "gitea" | "github">, ports: readonly number[]) {
    [this.yard, this.zuul, this.gitea, this.github] = [parts.yard, parts.zuul, parts.gitea, parts.github];
    const [one, two, guests] = ports as [number, number, number];
    this.#ports = { one, two };
    this.urls = { one: `http://127.0.0.1:${one}`, two: `http://127.0.0.1:${two}` };
    this.guests = `http://127.0.0.1:${guests}`;
    this.ledger = new Ledger(this.zuul.folder);
    this.cloud = join(this.zuul.folder, "cloud.journal");
  }

  static async open(): Promise<DaySite> {
    const yard = await makeYard("zookeeper");
    const run = `{{ zuul_folder }}/job {{ zuul.pipeline }}-{{ zuul.project.name }}-{{ zuul.ref | basename }} 1`;
    const [zuul, gitea, github, ...ports] = await Promise.all([
      ZuulSite.make({
        hosts: yard.hosts,
        tls: yard.tls,
        objects: providerLabels("zl-small"),
        pipelines: {
          check: { labels: ["small"], command: run },
          gate: { labels: ["small"], command: run, precedence: "high" },
          leased: { labels: ["zl-small"], command: run },
        },
        sshd: (folder) => ({ loopback: true, config: guestConfig(folder) }),
      }),
      startWithRepository(),
      GitHub.start(),
      freePort(),
      freePort(),
      freePort(),
    ]);
    const site = new DaySite({ yard, zuul, gitea: new GiteaRepository(gitea), github }, ports);
    try {
      yard.write(site.#pool());
      await site.start("one");
      await site.#connectors();
      await Promise.all([
        site.start("two"),
        site.start("connect"),
        zuul.start("scheduler", "executor", "web", "launcher"),
      ]);
    } catch (error) {
      await site.close();
      throw error;
    }
    return site;
  }

  /** Path of the private key that all nodes accept. */
  get key(): string {
    return join(this.zuul.folder, "etc/id");
  }

  /** A token of the pool; `words`: options of it. */
  async token(name: string, ...words: readonly string[]): Promise<string> {
    const create = ["token", "create", name, ...words];
    return (await this.yard.json<{ token: string }>(...create)).token;
  }

  async start(name: Mortal): Promise<void> {
    const victim =
      name === "connect"
        ? new Victim(["-c", join(this.zuul.folder, "connect.yaml"), "connect"], { inside: false })
        : await this.yard.launcher(name, `127.0.0.1:${this.#ports[name]}`);
    this.#running.set(name, victim);
    void victim.ended.then(() =>
      this.logs.push(`${name} until ${new Date().toISOString()}:\n${victim.errors}`),
    );
    if (name === "connect" && !(await victim.printed("the connectors run"))) throw new Error(victim.errors);
  }

  /** SIGKILL, and once more from the start, as a supervisor does. */
  async kill(name: Mortal): Promise<void> {
    await this.#running.get(name)!.signal("SIGKILL");
    if (!this.#closed) await this.start(name);
    // GitHub ends the session of a client that it has not heard for some time.
    const set = this.github.set("small-set");
    if (name === "connect" && set !== undefined) set.session = undefined;
  }

  /** What is left in the systems around the pool. */
  async leftovers(): Promise<readonly string[]> {
    const [runners, nodes] = await Promise.all([
      this.gitea.gitea.call<{ runners: readonly { name: string }[] | null }>(
        "GET",
        "/repos/admin1/r/actions/runners",
      ),
      this.zuul.api.call<readonly { uuid: string }[]>("GET", "/tenant/t1/nodes"),
    ]);
    return [
      ...(runners.runners ?? []).map(({ name }) => `runner ${name} of Gitea`),
      ...[...(this.github.set("small-set")?.agents.values() ?? [])].map(
        ({ name }) => `runner ${name} of GitHub`,
      ),
      ...nodes.map(({ uuid }) => `node ${uuid} of Zuul`),
    ];
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#running.get("connect")?.signal("SIGKILL");
    await this.yard.close();
    await Promise.all([this.zuul[Symbol.asyncDispose](), this.gitea.gitea.stop(), this.github.stop()]);
  }

  async #connectors(): Promise<void> {
    const { folder } = this.zuul;
    const { tls, hosts } = this.yard;
    const secret = (name: string, text: string) => {
      writeFileSync(join(folder, name), text, { mode: 0o600 });
      return join(folder, name);
    };
    writeFileSync(
      join(folder, "connect.yaml"),
      `
nodeyard: {url: "${this.urls.one}", token-file: ${secret("pool-token", await this.token("connect", "--role", "operator"))}}
ssh: {identity-file: ${this.key}}
connectors:
  - name: forge
    system: gitea
    url: ${this.gitea.gitea.url}
    token-file: ${secret("gitea-token", this.gitea.gitea.token)}
    scope: admin1/r
    poll: 1
    start: ${RUNNER}
    runners:
      - {runs-on: [nodeyard-small], label: small, time: 3600}
  - name: hub
    system: github
    url: ${this.github.url}/org/repo
    token-file: ${secret("github-token", this.github.token)}
    scale-set: small-set
    label: small
    time: 3600
    start: ${GITHUB_RUNNER}
  - name: zuul
    system: zuul
    connection: nodeyard
    zookeeper: {servers: "${hosts}", ca: ${tls.ca}, cert: ${tls.cert}, key: ${tls.key}, session-seconds: 4}
    labels: {zl-small: small}
  - name: guests
    system: artemis
    listen: ${this.guests.replace("http://", "")}
    rules: [{label: small, priority: "200", for-seconds: 600}]
`,
    );
  }

  /** Launches that fail, late and early, zones that are full, lists that lag, and deletes that fail; unused nodes go soon. */
  #pool(): string {
    const { pool, tenant, zones, launching } = LIMITS;
    return `zookeeper-timeout: 6
labels: [{name: small, max-ready-age: 2}]
tenant-resource-limits: [{tenant-name: ${TENANT}, max-servers: ${tenant}}]
providers:
  - name: fake-cloud
    driver: fake
    cloud: shared
    launch-retries: 6
    launch-timeout: 20
    boot-timeout: 30
    max-concurrency: ${launching}
    fake:
      loopback: true
      journal: ${this.cloud}
      consistency-delay: 300
      latency: {create: [50, 400], boot: [50, 900], delete: [50, 400], read: [1, 20]}
      errors: {create: 0.05, delete: 0.05, find: 0.03, list: 0.03}
      faults: {ends-in-error: 3, create-fails-with-external-id: 3, never-active: 1}
      capacity: {az1: ${zones[0]}, az2: ${zones[1]}}
    cloud-images: [{name: debian, username: ${userInfo().username}, connection-port: ${this.zuul.machine.port}}]
    pools:
      - name: main
        max-servers: ${pool}
        labels: [{name: small, cloud-image: debian, min-ram: 1024}]
`;
  }
}
