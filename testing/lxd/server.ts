import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, openSync, readdirSync, readFileSync, rmdirSync, statSync } from "node:fs";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { patient } from "../patience.ts";
import { output } from "../qemu/index.ts";
import { lxdImage } from "./image.ts";

const START = fileURLToPath(new URL("./start.sh", import.meta.url));
const CGROUPS = "/sys/fs/cgroup";

/** What the API says of a call, and its metadata, which are the result of an operation if one has begun. */
type Metadata = Readonly<Record<string, unknown>>;

/**
 * A real lxd of Debian in namespaces of its own for processes, mounts and network, with a bridge for its machines. This host reaches the
 * bridge by a pair of links; they go with the namespaces, and these with the test, however it ends.
 */
export class LxdServer {
  readonly folder: string;
  readonly socket: string;
  /** Where it listens for TLS. */
  readonly address: string;
  readonly #process: ChildProcess;

  private constructor(folder: string, address: string, process: ChildProcess) {
    this.folder = folder;
    this.socket = join(folder, "lxd/unix.socket");
    this.address = address;
    this.#process = process;
  }

  /** Starts a server with a pool for disks, a bridge, and the test image under the alias "tiny". `bare`: with none of it. */
  static async start({ bare = false } = {}): Promise<LxdServer> {
    await clearAfterKilled();
    const folder = await mkdtemp(join(tmpdir(), `nodeyard-lxd-${process.pid}-`));
    // Root of a container is a user of this host that has no rights in it.
    await chmod(folder, 0o711);
    const log = openSync(join(folder, "log"), "a");
    const spaces = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"];
    const words = ["--pdeathsig", "KILL", "unshare", ...spaces, "sh", START, folder, basename(folder)];
    const child = spawn("setpriv", words, { stdio: ["ignore", log, log] });
    const pid = child.pid!;
    // Two octets that no other server of this host has at the same time.
    const [high, low] = [(pid >> 8) & 63, pid & 255];
    const server = new LxdServer(folder, `https://10.${128 + high}.${low}.2:8443`, child);
    try {
      await server.#ready();
      await server.#connect(pid, `10.${128 + high}.${low}`);
      if (!bare) await server.#furnish(`10.${192 + high}.${low}.1/24`);
      return server;
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  /** This host, as the server sees it. */
  get gateway(): string {
    return new URL(this.address).hostname.replace(/\d+$/, "1");
  }

  /** Id of the first process inside, as this host counts: setpriv has become unshare, whose child it is. */
  get inside(): string {
    const { pid } = this.#process;
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  }

  /** A call by the socket, as an administrator; waits for the operation that it may begin. */
  async call(method: string, path: string, body?: object | Buffer): Promise<Metadata> {
    const answer = await this.#send(method, path, body);
    if (answer.type !== "async") return answer.metadata as Metadata;
    const { metadata } = await this.#send("GET", `${String(answer.operation).split("?")[0]}/wait`);
    const { err, metadata: result } = metadata as { err: string; metadata: Metadata };
    if (err !== "") throw new Error(`${method} ${path}: ${err}`);
    return result;
  }

  /** Makes it reachable over TLS. */
  async listen(): Promise<void> {
    await this.call("PATCH", "/1.0", { config: { "core.https_address": ":8443" } });
  }

  /** Makes the test image known in a project, and to everybody if it is `public`. */
  async addImage(project: string, name = "tiny", isPublic = false): Promise<void> {
    const { unified } = await lxdImage();
    const { fingerprint } = await this.call(
      "POST",
      `/1.0/images?project=${project}`,
      await readFile(unified),
    );
    await this.call("POST", `/1.0/images/aliases?project=${project}`, { name, target: fingerprint });
    await this.call("PATCH", `/1.0/images/${fingerprint}?project=${project}`, { public: isPublic });
  }

  /** Links its network with others', and returns where it and each of them listens for the rest. Once for each server. */
  async linkTo(...others: readonly LxdServer[]): Promise<readonly string[]> {
    const all = [this, ...others];
    const ip = (server: LxdServer, words: string) =>
      output("nsenter", ["-t", server.inside, "-n", "ip", ...words.split(" ")]);
    await ip(this, "link add others type bridge");
    for (const [at, other] of others.entries()) {
      await ip(this, `link add other${at} master others type veth peer name others netns ${other.inside}`);
      await ip(this, `link set other${at} up`);
    }
    for (const [at, server] of all.entries()) {
      await ip(server, `addr add 192.0.2.${at + 1}/24 dev others`);
      await ip(server, "link set others up");
    }
    return all.map((_, at) => `https://192.0.2.${at + 1}:8443`);
  }

  /** Makes it the first member, "member0", of a cluster, which bare servers join. */
  async cluster(...others: readonly LxdServer[]): Promise<void> {
    const [own, ...addresses] = (await this.linkTo(...others)).map((url) => url.slice("https://".length));
    await this.call("PATCH", "/1.0", { config: { "core.https_address": own } });
    await this.call("PUT", "/1.0/cluster", { server_name: "member0", enabled: true });
    for (const [at, other] of others.entries()) {
      const name = `member${at + 1}`;
      const said = await this.#inside(["lxc", "cluster", "add", name, "--quiet"]);
      const cluster = { enabled: true, server_name: name, server_address: addresses[at], member_config: [] };
      const preseed = { cluster: { ...cluster, cluster_token: said.trim().split("\n").at(-1) } };
      const file = join(other.folder, "preseed");
      await writeFile(file, JSON.stringify(preseed));
      await other.#inside(["sh", "-c", `lxd init --preseed <${file}`]);
    }
  }

  /** A command in its network, as root of it. Returns what it says. */
  #inside(words: readonly string[]): Promise<string> {
    const env = [`LXD_DIR=${this.folder}/lxd`, `HOME=${this.folder}`];
    return output("nsenter", ["-t", this.inside, "-n", "env", ...env, ...words]);
  }

  async stop(): Promise<void> {
    const ended = once(this.#process, "exit");
    this.#process.kill("SIGKILL");
    if (this.#process.exitCode === null && this.#process.signalCode === null) await ended;
    await clear(this.folder);
  }

  async #ready(): Promise<void> {
    await until(async () => {
      if (this.#process.exitCode !== null)
        throw new Error(`lxd ended: ${readFileSync(join(this.folder, "log"))}`);
      if (!existsSync(this.socket)) return false;
      return this.call("GET", "/1.0").then(
        () => true,
        () => false,
      );
    });
  }

  /** Makes the bridge reachable from this host. */
  async route(): Promise<void> {
    const { config } = await this.call("GET", "/1.0/networks/lxdbr0");
    const [, net] = /^(.*)\.\d+\/24$/.exec((config as Record<string, string>)["ipv4.address"]!)!;
    await output("ip", ["route", "add", `${net}.0/24`, "via", new URL(this.address).hostname]);
  }

  /** Links the network namespace with this host's, by two addresses of `net`. */
  async #connect(parent: number, net: string): Promise<void> {
    const link = `ny${parent}`;
    const inside = this.inside;
    const ip = (...words: string[]) => output("ip", words);
    await ip("link", "add", link, "type", "veth", "peer", "name", "host0", "netns", inside);
    await ip("addr", "add", `${net}.1/30`, "dev", link);
    await ip("link", "set", link, "up");
    const there = ["-t", inside, "-n", "ip"];
    await output("nsenter", [...there, "addr", "add", `${net}.2/30`, "dev", "host0"]);
    await output("nsenter", [...there, "link", "set", "host0", "up"]);
  }

  async #furnish(subnet: string): Promise<void> {
    await this.listen();
    await this.call("POST", "/1.0/storage-pools", { name: "default", driver: "dir" });
    const config = { "ipv4.address": subnet, "ipv4.nat": "false", "ipv6.address": "none" };
    await this.call("POST", "/1.0/networks", { name: "lxdbr0", type: "bridge", config });
    await this.route();
    const root = { type: "disk", pool: "default", path: "/" };
    const eth0 = { type: "nic", network: "lxdbr0", name: "eth0" };
    await this.call("PUT", "/1.0/profiles/default", { devices: { root, eth0 } });
    await this.addImage("default");
  }

  #send(method: string, path: string, body?: object | Buffer): Promise<Metadata> {
    return new Promise((resolve, reject) => {
      const call = request({ socketPath: this.socket, method, path, timeout: patient(60_000) }, (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (part) => {
          text += part;
        });
        answer.on("end", () => {
          const read = JSON.parse(text);
          if (read.type === "error") reject(new Error(`${method} ${path}: ${read.error}`));
          else resolve(read);
        });
      });
      call.on("error", reject);
      call.end(body === undefined || Buffer.isBuffer(body) ? body : JSON.stringify(body));
    });
  }
}

/** Removes what test processes that were killed have left: the name of a server's folder has the id of its process. */
async function clearAfterKilled(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    const [, pid] = /^nodeyard-lxd-(\d+)-/.exec(name) ?? [];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) await clear(join(tmpdir(), name));
  }
}

/** Removes a server's control groups, which have the name of its folder, and then the folder. */
async function clear(folder: string): Promise<void> {
  const roots = existsSync(CGROUPS) ? readdirSync(CGROUPS) : [];
  // A group can be removed only when the kernel has ended its last process.
  for (const root of roots) await until(() => removeGroups(join(CGROUPS, root, basename(folder))));
  await rm(folder, { recursive: true, force: true, maxRetries: 10 });
}

/** Repeats `done` until it is true. */
async function until(done: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + patient(30_000);
  while (!(await done())) {
    if (performance.now() > end) throw new Error(`not in time: ${done}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Removes a tree of control groups, from its leaves. False: one of them still has a process, or another test removes it, too. */
function removeGroups(group: string): boolean {
  if (!existsSync(group)) return true;
  try {
    for (const name of readdirSync(group)) {
      const inner = join(group, name);
      if (statSync(inner, { throwIfNoEntry: false })?.isDirectory() && !removeGroups(inner)) return false;
    }
    rmdirSync(group);
    return true;
  } catch {
    return false;
  }
}
