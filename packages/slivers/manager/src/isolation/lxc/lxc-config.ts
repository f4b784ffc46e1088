import { UnsafeTextError } from "../../errors.ts";
import type { Hierarchy } from "../cgroups/limits.ts";
import { GATEWAY } from "../network/edge/network.ts";
import { GATEWAY6 } from "../network/shape.ts";
import { IDS, type Names } from "./names.ts";

/** A folder or file of the host that a sliver sees read-only. */
export interface Bind {
  readonly from: string;
  /** Without a leading slash. */
  readonly to: string;
  readonly kind: "dir" | "file";
  /** `from`, or a folder above it: what is mounted read-only on the machine before the sliver has mounts of its own. */
  readonly locked: string;
}

/** A device of the sliver's own. */
export interface DeviceNode {
  /** A node that its root owns. */
  readonly from: string;
  /** Without a leading slash. */
  readonly to: string;
  /** As in `c 10:232`. */
  readonly number: string;
}

/** Input of a sliver's LXC configuration. */
export interface LxcConfig {
  readonly names: Names;
  readonly root: string;
  /** The sliver's own folder on the machine, with `etc` (keys, the configuration of its sshd, its start script) and `api` (its socket). */
  readonly folder: string;
  /** An empty folder, over which that one is mounted read-only. */
  readonly seen: string;
  readonly binds: readonly Bind[];
  /** Copies of caches; `name`: of a folder in `copies` of the sliver's own one. */
  readonly copies: readonly { readonly name: string; readonly from: string; readonly to: string }[];
  readonly seccomp: string;
  /** A process in the user namespace of the sliver. */
  readonly user: number;
  /** File of the host for what the sliver writes to its console. */
  readonly console: string;
  /** Path of its control groups, below the mount of every hierarchy. */
  readonly group: string;
  /** Hierarchies of v1 in which it makes no groups, and the v2 whose controller of io stays above its groups. */
  readonly kept: readonly Hierarchy[];
  readonly nodes: readonly DeviceNode[];
  readonly devices: "v1" | "v2" | "none";
  /** Whether it sees the limits of its own groups, which language runtimes read; only with v2. */
  readonly ownGroups: boolean;
  /** Containers may run in it. */
  readonly nesting: boolean;
  /** Whether it gets its IPv6 address, if there is one in its names. */
  readonly ipv6: boolean;
  /** For example `0,2-3`. */
  readonly cpus?: string;
}

/**
 * Capabilities of root in a sliver (rule 11). Not sys_admin (mounts, new namespaces, and the code with most of the kernel's past
 * vulnerabilities), nor capabilities that affect the machine: modules, time, raw I/O, audit, boot. Not net_admin, which gives access to
 * nf_tables and the kernel's queues; a sliver gets its address and routes from outside. net_raw is for ping; the packet sockets that it
 * would also allow are refused below.
 */
export const CAPABILITIES = [
  "audit_write",
  "chown",
  "dac_override",
  "fowner",
  "fsetid",
  "kill",
  "mknod",
  "net_bind_service",
  "net_raw",
  "setfcap",
  "setgid",
  "setpcap",
  "setuid",
  "sys_chroot",
] as const;

/**
 * Capabilities that root does not get even with nesting. All others apply to the sliver's own user namespace only, which the kernel
 * enforces.
 */
const KEPT_FROM_NESTING = [
  "mac_admin",
  "mac_override",
  "sys_boot",
  "sys_module",
  "sys_rawio",
  "sys_time",
] as const;

/** null, zero, full, random, urandom, tty, console, ptmx, pts. */
const DEVICES = ["c 1:3", "c 1:5", "c 1:7", "c 1:8", "c 1:9", "c 5:0", "c 5:1", "c 5:2", "c 136:*"];

/** The configuration file, which LXC reads as root. Throws UnsafeTextError. */
export function lxcConfig(config: LxcConfig): string {
  const { names, root, seen, binds, group } = config;
  const mounts = [
    mount("tmpfs", "run", "tmpfs", "nosuid,nodev,mode=755,create=dir"),
    mount(`${seen}/api`, "run/nodeyard", "none", "bind,ro,nosuid,nodev,noexec,create=dir"),
    mount("tmpfs", "dev/shm", "tmpfs", "nosuid,nodev,mode=1777,create=dir"),
    mount(`${seen}/etc`, "etc/nodeyard", "none", "bind,ro,nosuid,nodev,noexec,create=dir"),
    ...binds.map(({ from, to, kind }) => mount(from, to, "none", `bind,ro,nodev,create=${kind}`)),
    // Owners of files are mapped as in its root, so nobody walks over them.
    ...config.copies.map(({ name, to }) =>
      mount(`${seen}/copies/${name}`, to, "none", "bind,idmap=container,nosuid,nodev,create=dir"),
    ),
    ...config.nodes.map(({ from, to }) => mount(from, to, "none", "bind,nosuid,noexec,create=file")),
  ];
  // The kernel allows a new mount of proc or sys only if it shows no more than an existing complete one, and lxcfs covers parts of /proc.
  // These are complete.
  if (config.nesting)
    mounts.push(
      mount("proc", "dev/.lxc/proc", "proc", "create=dir,optional"),
      mount("sysfs", "dev/.lxc/sys", "sysfs", "create=dir,optional"),
    );
  const entries: [string, string][] = [
    ["lxc.uts.name", names.user],
    ["lxc.rootfs.path", `dir:${root}`],
    ["lxc.rootfs.options", "idmap=container"],
    ["lxc.idmap", `u 0 ${names.idBase} ${IDS}`],
    ["lxc.idmap", `g 0 ${names.idBase} ${IDS}`],
    ["lxc.namespace.share.user", String(config.user)],
    ["lxc.init.cmd", "/bin/sh /etc/nodeyard/init"],
    ["lxc.apparmor.profile", "unconfined"],
    ["lxc.mount.auto", autoMounts(config)],
    ["lxc.monitor.unshare", "1"],
    ["lxc.hook.version", "1"],
    ["lxc.hook.pre-start", lockCommand(config)],
    ...mounts.map((value): [string, string] => ["lxc.mount.entry", value]),
    ["lxc.autodev", "1"],
    ["lxc.pty.max", "256"],
    ["lxc.tty.max", "0"],
    // LXC's own process writes the file, outside of the sliver: at 128 KiB ("auto") it takes a second name and the former one of that name goes.
    ["lxc.console.logfile", config.console],
    ["lxc.console.size", "auto"],
    ["lxc.console.rotate", "1"],
    ["lxc.seccomp.profile", config.seccomp],
    config.nesting ? ["lxc.cap.drop", KEPT_FROM_NESTING.join(" ")] : ["lxc.cap.keep", CAPABILITIES.join(" ")],
    // The inner end of a cable that exists, with rules and queues, before the sliver starts.
    ["lxc.net.0.type", "phys"],
    ["lxc.net.0.link", names.inner],
    ["lxc.net.0.name", "eth0"],
    ["lxc.net.0.flags", "up"],
    ["lxc.net.0.ipv4.address", `${names.address}/32`],
    ["lxc.net.0.ipv4.gateway", GATEWAY],
    ...(config.ipv6 && names.address6 !== undefined
      ? ([
          ["lxc.net.0.ipv6.address", `${names.address6}/128`],
          ["lxc.net.0.ipv6.gateway", GATEWAY6],
        ] satisfies [string, string][])
      : []),
    // Below the sliver's own group, whose limits LXC does not write. Without these three settings LXC leaves groups behind.
    ["lxc.cgroup.dir.monitor", `${group}/monitor`],
    ["lxc.cgroup.dir.container", `${group}/payload`],
    ["lxc.cgroup.dir.monitor.pivot", `${group}/pivot`],
  ];
  if (config.nesting && config.kept.length > 0) entries.push(["lxc.hook.start-host", keepCommand(config)]);
  if (config.devices !== "none") {
    const key = config.devices === "v1" ? "lxc.cgroup.devices" : "lxc.cgroup2.devices";
    entries.push([`${key}.deny`, "a"], [`${key}.allow`, "c *:* m"]);
    for (const device of [...DEVICES, ...config.nodes.map(({ number }) => number)])
      entries.push([`${key}.allow`, `${device} rwm`]);
  }
  if (config.cpus !== undefined) entries.push(["lxc.cgroup.cpuset.cpus", config.cpus]);
  return `${entries.map(([key, value]) => `${key} = ${oneLine(value)}`).join("\n")}\n`;
}

function autoMounts({ nesting, ownGroups }: LxcConfig): string {
  const groups = ownGroups || nesting ? ` cgroup:${nesting ? "rw" : "ro"}:force` : "";
  return `proc:${nesting ? "rw" : "mixed"} sys:ro${groups}`;
}

/**
 * Mounts what the sliver sees of the machine read-only, in a mount namespace of LXC's own process. The kernel locks flags that a mount has when
 * it enters a new user namespace. Flags that are set inside, as by `lxc.mount.entry`, root inside removes again. Inner folders come first: a
 * folder cannot be bound when something that is locked is mounted below it.
 */
function lockCommand({ folder, seen, binds, copies }: LxcConfig): string {
  const over = [...new Set(binds.map(({ locked }) => locked))].sort().reverse();
  const mounts = [
    `/bin/mount --bind -o ro,nosuid,nodev,noexec ${safePath(folder)} ${safePath(seen)}`,
    // LXC reaches them by this name as the sliver's root, who cannot enter the pool. Files of earlier slivers set no ids.
    ...copies.map(
      ({ name, from }) =>
        `/bin/mount --bind -o nosuid,nodev ${safePath(from)} ${safePath(`${seen}/copies/${name}`)}`,
    ),
    ...over.map((path) => `/bin/mount --bind -o ro,nodev ${safePath(path)} ${path}`),
  ];
  // LXC executes the first word of a hook, so it must be a shell.
  return `/bin/sh -c '${mounts.join(" && ")}'`;
}

/** LXC gives all of the sliver's groups to its root, and all controllers to them. Some are taken back before the first process. */
function keepCommand({ kept, group }: LxcConfig): string {
  const of = (mount: string, file: string) => safePath(`${mount}/${group}/${file}`);
  const commands = kept.map(({ version, mount }) =>
    version === 1
      ? `/bin/chown 0:0 ${of(mount, "payload")}`
      : `echo -io >${of(mount, "cgroup.subtree_control")}`,
  );
  return `/bin/sh -c '${commands.join(" && ")}'`;
}

function mount(from: string, to: string, type: string, options: string): string {
  return `${safePath(from)} ${safePath(to)} ${type} ${options} 0 0`;
}

function safePath(path: string): string {
  if (!/^\/?[A-Za-z0-9._+-]+(?:\/[A-Za-z0-9._+-]+)*$/.test(path) || /(?:^|\/)\.\.(?:\/|$)/.test(path))
    throw new UnsafeTextError(`${JSON.stringify(path)} is not a path for a mount`);
  return path;
}

function oneLine(value: string): string {
  if (!/^[\x20-\x7e]+$/.test(value) || value.includes("#") || value.startsWith('"'))
    throw new UnsafeTextError(`${JSON.stringify(value)} is not a value for LXC`);
  return value;
}

const NEW_USER_NAMESPACE = "0x10000000";
/** Packet sockets, which send raw frames. The sliver's address is checked outside, and their code has had vulnerabilities. */
const PACKET_SOCKET = "0x11";
/** `ioctl` and `socket` use only the lower 32 bits of this argument, so only these are compared. */
const LOW_HALF = "0xffffffff";

/** ioctls that make a subvolume, which would have no disk limit: create, snapshot, and their second versions. */
const BTRFS_SUBVOLUMES = ["0x5000940e", "0x50009401", "0x50009417", "0x50009418"];

/**
 * The list of refused system calls in LXC's format. A new user namespace would give back every dropped capability. `clone3` hides its flags
 * from filters; libraries fall back to `clone` when it fails with ENOSYS (38).
 */
/** `nesting`: allows namespaces and mounts. */
export function seccompPolicy(nesting: boolean): string {
  const calls = [
    "kexec_load",
    "kexec_file_load",
    "open_by_handle_at",
    "init_module",
    "finit_module",
    "delete_module",
    "perf_event_open",
    "userfaultfd",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "quotactl",
    "quotactl_fd",
    ...(nesting ? [] : ["bpf", "fsopen", "open_tree", "move_mount"]),
  ];
  // Each user may have keys of 20 KB, and a sliver has 65,536 users. Engines of containers and systemd go on without keys on a kernel that
  // has none.
  const keys = ["keyctl", "add_key", "request_key"].map((call) => `${call} errno 38`);
  const namespaces = [
    `unshare errno 1 [0,${NEW_USER_NAMESPACE},SCMP_CMP_MASKED_EQ,${NEW_USER_NAMESPACE}]`,
    `clone errno 1 [0,${NEW_USER_NAMESPACE},SCMP_CMP_MASKED_EQ,${NEW_USER_NAMESPACE}]`,
    "clone3 errno 38",
  ];
  const lines = [
    "2",
    "denylist",
    "reject_force_umount",
    "[all]",
    ...calls.map((call) => `${call} errno 1`),
    ...keys,
    ...(nesting ? [] : namespaces),
    `socket errno 1 [0,${PACKET_SOCKET},SCMP_CMP_MASKED_EQ,${LOW_HALF}]`,
    ...BTRFS_SUBVOLUMES.map((code) => `ioctl errno 1 [1,${code},SCMP_CMP_MASKED_EQ,${LOW_HALF}]`),
  ];
  return `${lines.join("\n")}\n`;
}
