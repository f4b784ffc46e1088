import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Victim } from "../chaos/victim.ts";
import { patient } from "../patience.ts";
import { PROGRAM } from "../program.ts";
import { removeFolder, temporaryFolder } from "../zookeeper/children.ts";
import {
  type Certificates,
  freePort,
  makeCertificates,
  startZooKeeper,
  type ZooKeeperServer,
} from "../zookeeper/index.ts";

const run = promisify(execFile);

export type StoreName = "zookeeper" | "embedded";

/** A node as `nodeyard list --json` prints it. */
export interface ListedNode {
  readonly id: string;
  readonly state: string;
  readonly label: readonly string[];
  readonly comment: string | null;
  readonly hold_job: string | null;
}

/** A Nodeyard whose tree the real Zuul shares: over TLS, which Zuul insists on. */
export interface Yard {
  /** Zuul's `hosts`. */
  readonly hosts: string;
  readonly tls: Certificates;
  /** Undefined: its tree is embedded. */
  readonly zookeeper: ZooKeeperServer | undefined;
  /** Writes the labels and providers. */
  write(labelsAndProviders: string): void;
  /** Writes them, and starts the launcher or `up` on them. */
  start(labelsAndProviders: string): Promise<Victim>;
  /** Starts a launcher of this name, with a folder of its own, or once more; `webapp`: where it answers REST. */
  launcher(name: string, webapp: string): Promise<Victim>;
  /** Moves an embedded tree to a ZooKeeper, and starts a launcher there. Clients go on at the former address. */
  move(): Promise<void>;
  /** Where an embedded one answers REST. */
  readonly socket: string;
  /** A command of the CLI; resolves with what it prints. */
  run(...words: readonly string[]): Promise<string>;
  /** The same, as JSON. */
  json<T>(...words: readonly string[]): Promise<T>;
  close(): Promise<void>;
}

/** ZooKeeper starts at once; the embedded tree serves from `start` on. `more`: words for its daemon. */
export async function makeYard(store: StoreName, more: readonly string[] = []): Promise<Yard> {
  const folder = await temporaryFolder("nodeyard-yard-");
  const zookeeper = store === "zookeeper" ? await startZooKeeper({ tls: true }) : undefined;
  const tls = zookeeper?.tls ?? (await makeCertificates(folder));
  const port = zookeeper?.port ?? (await freePort());
  const config = join(folder, "nodepool.yaml");
  const common = (name = "state") => ["--state", join(folder, name), "-c", config];
  const serversAt = (at: number, { cert, key, ca }: Certificates) =>
    `zookeeper-servers: [{host: localhost, port: ${at}}]\nzookeeper-tls: {cert: ${cert}, key: ${key}, ca: ${ca}}\n`;
  const head = zookeeper ? serversAt(port, tls) : "";
  const listen =
    `--listen 127.0.0.1:${port} --tls-cert ${tls.cert} --tls-key ${tls.key} --tls-ca ${tls.ca}`.split(" ");
  const daemon = zookeeper ? ["launcher", "--no-webapp"] : ["up", ...listen];
  let moved: ZooKeeperServer | undefined;
  const command = async (...words: readonly string[]) => {
    const argv = ["--disable-warning=ExperimentalWarning", PROGRAM, ...common(), ...words];
    return (await run(process.execPath, argv, { timeout: patient(60_000) })).stdout;
  };
  const write = (text: string) => writeFileSync(config, head + text);
  const victims = new Map<string, Victim>();
  const begin = async (name: string, words: readonly string[], folders = common(name)) => {
    await victims.get(name)?.signal("SIGKILL");
    const victim = new Victim([...folders, ...words], { inside: false });
    victims.set(name, victim);
    const printed =
      { up: "Nodeyard is up", promote: "start the ZooKeeper at" }[words[0]!] ?? "the launcher runs";
    if (!(await victim.printed(printed))) throw new Error(victim.errors);
    return victim;
  };
  return {
    zookeeper,
    hosts: `localhost:${port}`,
    tls,
    write,
    start(labelsAndProviders) {
      write(labelsAndProviders);
      return begin("state", [...daemon, ...more]);
    },
    launcher: (name, webapp) => begin(name, ["launcher", "--webapp", webapp]),
    async move() {
      await victims.get("state")!.signal("SIGTERM");
      const there = join(folder, "moved.yaml");
      const folders = [...common().slice(0, -1), there];
      let promotion: Victim | undefined;
      moved = await startZooKeeper({
        tls: true,
        fill: async (data, at, own) => {
          writeFileSync(there, serversAt(at, own!) + readFileSync(config, "utf8"));
          promotion = await begin("promotion", ["promote", "--data", data, ...listen], folders);
        },
      });
      if (!(await promotion!.printed("clients go on"))) throw new Error(promotion!.errors);
      await begin("moved", ["launcher", "--no-webapp"], folders);
    },
    socket: join(folder, "state/http.sock"),
    run: command,
    json: async <T>(...words: readonly string[]) => JSON.parse(await command(...words, "--json")) as T,
    async close() {
      await Promise.all([...victims.values()].map((victim) => victim.signal("SIGKILL")));
      await zookeeper?.stop();
      await moved?.stop();
      await removeFolder(folder);
    },
  };
}
