import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { patient } from "../patience.ts";

const ADDRESS = "10.99.7.2";
const OURS = "10.99.7.1";
const CGROUPS = "/sys/fs/cgroup";
const CABLE = "nyforeign0";
const START_MS = patient(20_000);
/** Its own: what a test runner sets for its programs would have them write files there. */
const ENVIRONMENT = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOME: "/root" };

/** Its control groups are below one group in each hierarchy of ours; it sees no others. */
const ENTER = `
set -e
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
  for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
    echo "+$controller" > /sys/fs/cgroup/cgroup.subtree_control
  done
  mkdir "/sys/fs/cgroup/$2"
  echo 0 > "/sys/fs/cgroup/$2/cgroup.procs"
  exec unshare --cgroup sh -c "$3" sh "$1"
fi
for hierarchy in /sys/fs/cgroup/*/; do
  group="$hierarchy$2"
  mkdir "$group"
  for set in cpuset.cpus cpuset.mems; do
    if [ -f "$hierarchy$set" ]; then cat "$hierarchy$set" > "$group/$set"; fi
  done
  echo 0 > "$group/cgroup.procs"
done
exec unshare --cgroup sh -c "$3" sh "$1"
`;

/** Runs as root in namespaces of its own (mounts, processes, name, network); what it writes goes to `upper`. */
const BOOT = `
set -e
hostname foreign
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
# A home of its own: our .bashrc may start a program at each login here, too, and a lock file that the overlay has seen once stays there for ever.
mount --bind "$1/home" "$1/root/root"
cd "$1/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
  mount -t cgroup2 cgroup2 sys/fs/cgroup
  # A group that others are made in holds no processes; those of process 1 are where systemd has them.
  mkdir sys/fs/cgroup/init.scope
  echo 0 > sys/fs/cgroup/init.scope/cgroup.procs
  hierarchies=
else
  mount -t tmpfs -o mode=755 cgroups sys/fs/cgroup
  hierarchies=$(ls /sys/fs/cgroup)
fi
for name in $hierarchies; do
  mkdir "sys/fs/cgroup/$name"
  case $name in
    unified) mount -t cgroup2 cgroup2 "sys/fs/cgroup/$name" ;;
    systemd) mount -t cgroup -o none,name=systemd cgroup "sys/fs/cgroup/$name" ;;
    *) mount -t cgroup -o "$name" cgroup "sys/fs/cgroup/$name" ;;
  esac
done
mount --rbind /dev dev
mount -t tmpfs -o mode=755 run run
mkdir -p run/sshd .old
pivot_root . .old
umount -l /.old
rmdir /.old
exec /usr/sbin/sshd -D -e
`;

/**
 * Another machine, made of this one: its own copy-on-write view of the same files, a home of its own for root, its own processes and
 * network, and a real SSH server that root may log in to by a key. Needs root.
 */
export class ForeignMachine {
  readonly folder = mkdtempSync(join(tmpdir(), "nodeyard-foreign-"));
  readonly address = ADDRESS;
  /** The files that are different there, in overlayfs' upper folder. */
  readonly upper = join(this.folder, "upper");
  readonly key = join(this.folder, "key");
  readonly said: string[] = [];
  hostKey = "";
  #process: ChildProcess | undefined;
  #init = 0;

  /** Whether control groups are of version 2, here and there. */
  get hasV2(): boolean {
    return existsSync(join(CGROUPS, "cgroup.controllers"));
  }

  /** Our folder that contains its control groups of a controller. */
  groups(controller: string): string {
    return join(CGROUPS, this.hasV2 ? "." : controller, this.#group);
  }

  /** Name of its control groups. */
  get #group(): string {
    return basename(this.folder).replace("nodeyard-", "");
  }

  /** `without`: programs that it does not have. */
  async start({ without = [] }: { readonly without?: readonly string[] } = {}): Promise<void> {
    for (const name of ["upper", "work", "root"]) mkdirSync(join(this.folder, name), { mode: 0o755 });
    keygen(this.key);
    mkdirSync(join(this.folder, "home/.ssh"), { recursive: true, mode: 0o700 });
    copyFileSync(`${this.key}.pub`, join(this.folder, "home/.ssh/authorized_keys"));
    const hostKey = join(this.upper, "etc/ssh/ssh_host_ed25519_key");
    mkdirSync(join(this.upper, "etc/ssh"), { recursive: true });
    keygen(hostKey);
    this.hostKey = readFileSync(`${hostKey}.pub`, "utf8").trim().split(" ").slice(0, 2).join(" ");
    await this.#boot();
    for (const program of without) this.run("sh", "-c", `rm -f $(command -v ${program})`);
  }

  /** Ends all its processes and starts it again with the files that it had written. */
  async reboot(): Promise<void> {
    await this.#halt();
    await this.#boot();
  }

  /** Cuts the network between it and us; connections stay open on both sides. */
  unplug(): void {
    execFileSync("ip", ["link", "set", CABLE, "down"]);
  }

  plug(): void {
    execFileSync("ip", ["link", "set", CABLE, "up"]);
  }

  async #boot(): Promise<void> {
    // Its server logs each address that it listens on, also after the first was seen.
    this.said.length = 0;
    const names = ["--mount", "--net", "--uts", "--ipc", "--pid"];
    const boot = ["--fork", "--kill-child", "sh", "-c", ENTER, "sh", this.folder, this.#group, BOOT];
    const child = spawn("unshare", [...names, ...boot], {
      env: ENVIRONMENT,
      stdio: ["ignore", "ignore", "pipe"],
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => this.said.push(text));
    this.#process = child;
    await this.#until("it has an SSH server", () => {
      this.#init = childOf(child.pid!);
      return this.#init > 0 && this.said.join("").includes("Server listening");
    });
    this.#cable();
    this.said.length = 0;
  }

  /** Runs a program there. Throws with its output if it fails. */
  run(program: string, ...args: readonly string[]): string {
    return execFileSync(
      "nsenter",
      ["-t", String(this.#init), "-m", "-n", "-u", "-i", "-p", "-C", "--", program, ...args],
      {
        env: ENVIRONMENT,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
  }

  /** To find out why something hangs: lines of `ps` for all its processes, for `pid` here, and for the descendants of that. */
  processes(pid: number): string {
    const lines = execFileSync("ps", ["-eo", "pid,ppid,stat,etimes,wchan:24,args", "--cols", "200"], {
      encoding: "utf8",
    }).split("\n");
    const wanted = new Set([pid, this.#init]);
    // Until nothing is added: process ids begin again at their limit, so a child may be listed before its parent.
    for (let before = 0; before < wanted.size; ) {
      before = wanted.size;
      for (const line of lines) {
        const [own, parent] = line.trim().split(/\s+/).map(Number);
        if (wanted.has(parent!)) wanted.add(own!);
      }
    }
    return lines.filter((line) => wanted.has(Number(line.trim().split(/\s+/)[0]))).join("\n");
  }

  /** Files that are there and not here, or are different; folders are left out. */
  changed(): string[] {
    return readdirSync(this.upper, { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name).slice(this.upper.length))
      .sort();
  }

  /** Ends all its processes. */
  async stop(): Promise<void> {
    await this.#halt();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #halt(): Promise<void> {
    const child = this.#process;
    if (child !== undefined) {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await ended;
    }
    this.#process = undefined;
    this.#init = 0;
    unlink();
    for (const hierarchy of [".", ...readdirSync(CGROUPS)])
      await removeGroups(join(CGROUPS, hierarchy, this.#group));
  }

  #cable(): void {
    // Left by a run that was killed.
    unlink();
    const peer = ["peer", "name", "eth0", "netns", String(this.#init)];
    execFileSync("ip", ["link", "add", CABLE, "type", "veth", ...peer]);
    execFileSync("ip", ["address", "add", `${OURS}/30`, "dev", CABLE]);
    execFileSync("ip", ["link", "set", CABLE, "up"]);
    this.run("ip", "link", "set", "lo", "up");
    this.run("ip", "address", "add", `${ADDRESS}/30`, "dev", "eth0");
    this.run("ip", "link", "set", "eth0", "up");
  }

  async #until(what: string, look: () => boolean): Promise<void> {
    for (let waited = 0; !look(); waited += 50) {
      if (waited > START_MS || this.#process?.exitCode !== null)
        throw new Error(`the foreign machine did not start (${what}): ${this.said.join("")}`);
      await pause(50);
    }
  }
}

/** Removes groups from the innermost out, once their processes have ended; the files in them are the kernel's. */
async function removeGroups(path: string): Promise<void> {
  if (!existsSync(path)) return;
  for (const entry of readdirSync(path, { withFileTypes: true }))
    if (entry.isDirectory()) await removeGroups(join(path, entry.name));
  for (let waited = 0; ; waited += 50) {
    try {
      rmdirSync(path);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EBUSY" || waited > START_MS) throw error;
      await pause(50);
    }
  }
}

function keygen(path: string): void {
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path]);
}

function childOf(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ")[0]);
  } catch {
    return 0;
  }
}

/** Removes our end of the link, unless it was removed with the other end. */
function unlink(): void {
  try {
    execFileSync("ip", ["link", "del", CABLE], { stdio: "ignore" });
  } catch {
    // It is not there.
  }
}
