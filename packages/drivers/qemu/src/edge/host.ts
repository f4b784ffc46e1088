import { access, constants, mkdir, readFile, stat, statfs, writeFile } from "node:fs/promises";
import { availableParallelism, hostname, release, totalmem } from "node:os";
import { dirname, join } from "node:path";
import { DriverError, ignoring, succeeds } from "@nodeyard/driver";
import type { HostAmounts } from "../machine/amounts.ts";
import { stamp } from "./image-files.ts";
import { type Account, run } from "./tools.ts";

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

/** Identity of the host: its machine id if it has one, because host names may not be unique. */
export interface HostId {
  readonly id: string;
  readonly name: string;
}

export async function thisHost(): Promise<HostId> {
  const text = await readFile("/etc/machine-id", "utf8").catch(() => "");
  return { id: text.trim() || hostname(), name: hostname() };
}

/** Creates the provider's folders, unless it `looks`. Rejects when they belong to another host. */
export async function enter(
  folder: string,
  host: HostId,
  wanted: string | null,
  looks: boolean,
): Promise<void> {
  if (wanted !== null && wanted !== host.id && wanted !== host.name)
    throw new DriverError(
      "configuration",
      `belongs to host ${wanted}, and this is ${host.name} (${host.id}); run its launcher there`,
    );
  const mine = join(folder, "host");
  if (!looks) {
    // 0711: QEMU's user may enter its own folder below, but list none of these.
    for (const path of [folder, ...FOLDERS.map((name) => join(folder, name))])
      await mkdir(path, { recursive: true, mode: 0o711 });
    await ignoring("EEXIST", writeFile(mine, `${host.id}\n`, { flag: "wx", flush: true }));
  }
  // On a shared file system two hosts would take each other's processes for dead ones.
  const owner = (await ignoring("ENOENT", readFile(mine, "utf8")))?.trim();
  if (owner !== undefined && owner !== host.id)
    throw new DriverError(
      "configuration",
      `folder ${folder} belongs to host ${owner}, and this is ${host.id}; use a folder of this host, or remove ${mine}`,
    );
}

/** Folders of the provider's folder that all launchers use. */
const FOLDERS = ["nodes", "uploads", "copies", "saving", "saved"] as const;

/** Identity of a QEMU program: its version and its file, because two builds may report the same version. */
export async function emulatorOf(program: string, signal: AbortSignal): Promise<string> {
  const path = await located(program);
  const file = await stamp(path);
  const said = versions.get(`${path} ${file}`) ?? (await run(program, ["--version"], { signal }));
  versions.set(`${path} ${file}`, said);
  return `${said.split("\n", 1)[0]}, ${file}`;
}

/** Output of `--version` by path and stamp. A process runs each program once, until its file is replaced. */
const versions = new Map<string, string>();

async function located(program: string): Promise<string> {
  if (program.includes("/")) return program;
  for (const folder of (process.env.PATH ?? "/usr/bin:/bin").split(":")) {
    const path = join(folder, program);
    if (await succeeds(access(path, constants.X_OK))) return path;
  }
  throw new DriverError("configuration", `${program} is not installed on this host`);
}

/** The host's processor and kernel, as guests under KVM see them. */
export async function processorOf(): Promise<string> {
  const text = await readFile("/proc/cpuinfo", "utf8").catch(() => "");
  const lines = text.split("\n\n", 1)[0]?.split("\n") ?? [];
  const counts = lines.filter((line) =>
    /^(vendor_id|model name|cpu family|model|stepping|microcode|flags)\b/.test(line),
  );
  return [release(), ...counts].join("\n");
}

/** What the host has, as far as this process may use it: a limit of its cgroup counts before the host's memory. */
export async function amountsOf(folder: string): Promise<HostAmounts> {
  const found = await ignoring("ENOENT", statfs(folder));
  // The first launcher makes the folder.
  if (found === undefined) return amountsOf(dirname(folder));
  const { blocks, bsize } = found;
  const bound = process.constrainedMemory();
  const memory = bound > 0 ? Math.min(bound, totalmem()) : totalmem();
  return {
    processors: availableParallelism(),
    memory: Math.floor(memory / MIB),
    disk: Math.floor((blocks * bsize) / GIB),
  };
}

/**
 * The account of QEMU. It is never root, so that a guest that breaks out of QEMU gets no rights on the host (rule 11). Null: the
 * launcher is no root, and QEMU runs as its user. Throws kind "configuration" for a user that does not exist or cannot be taken.
 */
export async function accountOf(user: string | null, signal: AbortSignal): Promise<Account> {
  const root = process.getuid?.() === 0;
  if (user === null) {
    if (root)
      throw new DriverError(
        "configuration",
        "runs as root and has no user for QEMU; add user, with a user of its own",
      );
    return null;
  }
  const numbers = /^(\d+)(?::(\d+))?$/.exec(user);
  const account = numbers === null ? await lookedUp(user, signal) : numbered(numbers[1]!, numbers[2]);
  if (account.uid === 0 || account.gid === 0)
    throw new DriverError("configuration", `user ${user} is root; give QEMU a user of its own`);
  if (!root && account.uid === process.getuid?.()) return null;
  if (!root)
    throw new DriverError(
      "configuration",
      `only root can run QEMU as ${user}; leave user out, or run as root`,
    );
  return account;
}

/** Numbers need no entry in passwd. Without a group it is the one of the same number. */
function numbered(uid: string, gid: string | undefined) {
  return { uid: Number(uid), gid: Number(gid ?? uid) };
}

/** The ids of a user by name. */
async function lookedUp(user: string, signal: AbortSignal): Promise<NonNullable<Account>> {
  try {
    const ask = async (what: string) => (await run("id", [what, "--", user], { signal })).trim();
    const [uid, gid, all] = await Promise.all([ask("-u"), ask("-g"), ask("-G")]);
    // A process starts with one group. Use the group of /dev/kvm if the user is a member.
    const kvm = (await stat("/dev/kvm").catch(() => undefined))?.gid;
    const counts = kvm !== undefined && kvm !== 0 && all.split(" ").includes(String(kvm));
    return { uid: Number(uid), gid: counts ? kvm : Number(gid) };
  } catch (error) {
    signal.throwIfAborted();
    throw new DriverError(
      "configuration",
      `there is no user ${user} on this host; add the user, or correct user`,
      {
        cause: error,
      },
    );
  }
}
