import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** Interfaces and nftables tables of the `qemu` driver, whose tests may run beside. */
const VIRTUAL_MACHINE = /\bnyq/;
const ITS_TABLE = /^table inet nodeyard_(qemu_|nyq)/;

/** What slivers could leave on a machine, and the complete state of the host that they must not change. */
export function hostState(folder: string): Readonly<Record<string, readonly string[]>> {
  return {
    processes: sliverProcesses(),
    mounts: lines(readFileSync("/proc/self/mountinfo", "utf8"))
      .map((line) => line.split(" ").slice(2).join(" "))
      .filter((line) => /nodeyard-sliver|ny-\d/.test(line)),
    cgroups: cgroups(),
    users: ["passwd", "group", "shadow", "subuid", "subgid"].flatMap((name) =>
      existsSync(`/etc/${name}`) ? lines(readFileSync(`/etc/${name}`, "utf8")) : [],
    ),
    interfaces: lines(output("ip", "-br", "link"))
      .map((line) => line.split(/[\s@]/)[0]!)
      .filter((name) => !VIRTUAL_MACHINE.test(name)),
    routes: lines(output("ip", "route", "show", "table", "all")).filter(
      (line) => !VIRTUAL_MACHINE.test(line),
    ),
    rules: output("nft", "list", "ruleset")
      .split(/^(?=table )/m)
      .filter((table) => !ITS_TABLE.test(table))
      .flatMap(lines),
    sysctls: [
      "net/ipv4/ip_forward",
      "net/ipv4/conf/all/forwarding",
      "net/ipv4/conf/default/forwarding",
      "net/ipv6/conf/all/disable_ipv6",
      "net/ipv4/neigh/default/gc_thresh3",
      "kernel/pty/max",
      "kernel/pid_max",
      "fs/inotify/max_user_instances",
    ]
      // Of a machine that is a network namespace, some are the kernel's own.
      .filter((name) => existsSync(`/proc/sys/${name}`))
      .map((name) => `${name} ${readFileSync(`/proc/sys/${name}`, "utf8").trim()}`),
    ipc: lines(output("ipcs", "-a")).filter((line) => /^0x/.test(line)),
    files: ["slivers", "pool/slivers"].flatMap((name) => {
      const path = join(folder, name);
      return existsSync(path) ? readdirSync(path).map((one) => join(name, one)) : [];
    }),
    limits: existsSync(join(folder, "pool", "slivers")) ? quotaGroups(join(folder, "pool")) : [],
  };
}

/** Differences between two states, one line each. */
export function difference(
  before: ReturnType<typeof hostState>,
  after: ReturnType<typeof hostState>,
): string[] {
  return Object.keys(before).flatMap((name) => [
    ...after[name]!.filter((line) => !before[name]!.includes(line)).map((line) => `${name} + ${line}`),
    ...before[name]!.filter((line) => !after[name]!.includes(line)).map((line) => `${name} - ${line}`),
  ]);
}

/**
 * Processes of slivers, by their ids, and LXC's own: number and command line. Readers have such ids, too: only those count whose `sliverd`
 * is gone.
 */
export function sliverProcesses(): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        // Zombies are left to their parent, in the end to process 1.
        const status = readFileSync(`/proc/${pid}/status`, "utf8");
        if (/^State:\tZ/m.test(status)) return [];
        const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        // It ends: the kernel has its memory back already, and nothing says any more what it was.
        if (command === "") return [];
        if (/sliver-reader/.test(command) && !/^PPid:\t1$/m.test(status)) return [];
        const ours =
          statSync(`/proc/${pid}`).uid >= 0x7000_0000 ||
          /\[lxc monitor\]|lxc-start|^lxcfs .*slivers/.test(command);
        return ours ? [`${pid} ${command}`] : [];
      } catch {
        return [];
      }
    });
}

/** The file system removes deleted subvolumes later, with their quota groups; this waits until it has done so. */
function quotaGroups(pool: string): string[] {
  for (let look = 1; ; look++) {
    output("btrfs", "filesystem", "sync", pool);
    output("timeout", "60", "btrfs", "subvolume", "sync", pool);
    const there = new Set(output("btrfs", "subvolume", "list", pool).match(/(?<=^ID )\d+/gm));
    const groups = output("btrfs", "qgroup", "show", "--raw", pool).match(/^0\/\d+/gm) ?? [];
    const stale = groups.filter((name) => name !== "0/5" && !there.has(name.slice(2)));
    if (look === 50 || stale.length === 0) return groups;
    execFileSync("sleep", ["0.1"]);
  }
}

function cgroups(): string[] {
  const found: string[] = [];
  const look = (path: string, depth: number): void => {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (!entry.isDirectory()) continue;
      const below = join(path, entry.name);
      if (/nodeyard|ny-|lxc/.test(entry.name)) found.push(below);
      if (depth > 0) look(below, depth - 1);
    }
  };
  look("/sys/fs/cgroup", 2);
  return found;
}

function output(program: string, ...args: string[]): string {
  return execFileSync(program, args, { encoding: "utf8" });
}

function lines(text: string): string[] {
  return text.split("\n").filter((line) => line !== "");
}
