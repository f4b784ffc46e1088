import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Victim } from "../chaos/victim.ts";
import { patient } from "../patience.ts";
import { SOURCE } from "../program.ts";
import { type Sshd, startSshd } from "../sshd/index.ts";
import { freePort, startZooKeeper, type ZooKeeperServer } from "../zookeeper/index.ts";
import type { OpenstackSite } from "./site.ts";
import { Zuul } from "./zuul.ts";

const run = promisify(execFile);

/** `nodeyard launcher` as a process, ZooKeeper, Zuul, and an sshd that answers for all guests. */
export class LauncherSite {
  readonly zuul: Zuul;
  readonly guest: Sshd;
  readonly hosts: string;
  readonly #zookeeper: ZooKeeperServer;
  readonly #guestPort: number;
  readonly #folder: string;
  #launcher: Victim | undefined;

  private constructor(zookeeper: ZooKeeperServer, guest: Sshd, guestPort: number, folder: string) {
    this.#guestPort = guestPort;
    this.#zookeeper = zookeeper;
    this.guest = guest;
    this.#folder = folder;
    this.hosts = `127.0.0.1:${zookeeper.port}`;
    this.zuul = new Zuul(this.hosts);
  }

  /** `configuration`: a piece of nodepool.yaml, given the port at which guests answer. */
  static async start(
    site: OpenstackSite,
    configuration: (guestPort: number) => string,
  ): Promise<LauncherSite> {
    process.env.OS_CLIENT_CONFIG_FILE = site.cloudsYaml;
    const port = await freePort();
    const [zookeeper, guest] = await Promise.all([
      startZooKeeper(),
      startSshd({ config: [`ListenAddress 0.0.0.0:${port}`, "MaxStartups 500"] }),
    ]);
    const folder = mkdtempSync(join(tmpdir(), "nodeyard-openstack-launcher-"));
    const started = new LauncherSite(zookeeper, guest, port, folder);
    started.#configure(configuration);
    await started.launch();
    return started;
  }

  get #config(): string {
    return join(this.#folder, "nodepool.yaml");
  }

  /** Writes its file again and waits until the running launcher has read it; once for each launcher. */
  async reconfigure(configuration: (guestPort: number) => string): Promise<void> {
    this.#configure(configuration);
    if (!(await this.#launcher!.printed("the configuration changed"))) throw new Error(this.log);
  }

  #configure(configuration: (guestPort: number) => string): void {
    const servers = `zookeeper-servers: [{host: ${this.hosts.replace(":", ", port: ")}}]\nzookeeper-timeout: 8.0\n`;
    writeFileSync(this.#config, servers + configuration(this.#guestPort));
  }

  async launch(): Promise<void> {
    this.#launcher = new Victim([...this.#words("launcher"), "--no-webapp"], { inside: false });
    if (!(await this.#launcher.printed("the launcher runs"))) throw new Error(this.#launcher.errors);
  }

  /** SIGKILL: it shuts nothing down in order. */
  async kill(): Promise<void> {
    await this.#launcher?.signal("SIGKILL");
  }

  /** The end of its log. */
  get log(): string {
    return this.#launcher?.errors ?? "";
  }

  /** The output of a command. Rejects with the program's error output. */
  async explain(what: string): Promise<string> {
    const words = ["--disable-warning=ExperimentalWarning", SOURCE, ...this.#words("explain", what)];
    return (await run(process.execPath, words, { timeout: patient(60_000) })).stdout;
  }

  async stop(): Promise<void> {
    await this.zuul.kill();
    await this.kill();
    await this.guest.stop();
    await this.#zookeeper.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #words(...words: readonly string[]): readonly string[] {
    return ["--state", join(this.#folder, "state"), "-c", this.#config, ...words];
  }
}

/** One label, one pool, without floating IPs. */
export const smallCloud = (guestPort: number) => `
labels:
  - name: small
providers:
  - name: cloud
    driver: openstack
    cloud: nodeyard
    boot-timeout: 15
    launch-timeout: 300
    launch-retries: 5
    cloud-images:
      - {name: fake, image-name: nodeyard-fake, username: zuul, connection-port: ${guestPort}}
    pools:
      - name: main
        networks: [nodeyard]
        auto-floating-ip: false
        labels:
          - {name: small, cloud-image: fake, flavor-name: small, key-name: nodeyard}
`;
