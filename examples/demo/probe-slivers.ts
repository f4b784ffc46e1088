import { execFile } from "node:child_process";
import { accessSync, constants, existsSync, readdirSync, readFileSync, statfsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { sliverdProgram } from "@nodeyard/process";
import type { Machine } from "@nodeyard/telemetry/machine";
import { diskNeeded, IMAGE_CACHE, PLACES, type SliverFacts } from "./sliver-plan.ts";

const run = promisify(execFile);

/** Programs with Debian's packages. */
const PROGRAMS: Readonly<Record<string, string>> = {
  "lxc-start": "lxc",
  "mkfs.btrfs": "btrfs-progs",
  btrfs: "btrfs-progs",
  nft: "nftables",
  ip: "iproute2",
  tc: "iproute2",
  sshd: "openssh-server",
  ssh: "openssh-client",
  setpriv: "util-linux",
};

/** Whether slivers can be made here, as far as can be seen without a change; `why` not is one clause. */
export async function probeSlivers(machine: Machine): Promise<SliverFacts | { readonly why: string }> {
  if (process.platform !== "linux") return { why: `slivers are Linux's, and this is ${process.platform}` };
  if (!machine.isRoot) return { why: "only root can make slivers" };
  const path = `${machine.env.PATH ?? ""}`;
  const missing = Object.entries(PROGRAMS).filter(([program]) => !isThere(program, path));
  if (missing.length > 0) {
    const packages = [...new Set(missing.map(([, name]) => name))].join(" ");
    return {
      why: `${new Intl.ListFormat("en").format(missing.map(([program]) => program))} ${missing.length === 1 ? "is" : "are"} not installed (Debian: ${packages})`,
    };
  }
  if (!/\bbtrfs$/m.test(readFileSync("/proc/filesystems", "utf8")))
    return { why: "the kernel knows no btrfs (modprobe btrfs)" };
  if (!/ - cgroup2? /m.test(readFileSync("/proc/self/mountinfo", "utf8")))
    return { why: "no control groups are mounted" };
  const sliverd = sliverdProgram();
  if (sliverd === undefined) return { why: "@nodeyard/sliver is not installed" };
  const image = cachedImage();
  const needed = diskNeeded({ image });
  const { bavail, bsize } = statfsSync(dirname(PLACES.folder));
  if (bavail * bsize < needed)
    return { why: `${dirname(PLACES.folder)} has less than ${Math.round(needed / 2 ** 20)} MiB left` };
  const foreign = await others(path);
  if (foreign !== undefined) return { why: foreign };
  return { cores: availableParallelism(), memory: memory(), image, sliverd };
}

/** KiB. */
function memory(): number {
  return Number(/^MemTotal:\s+(\d+) kB$/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1] ?? 0);
}

function cachedImage(): string | undefined {
  if (!existsSync(IMAGE_CACHE)) return undefined;
  const archives = readdirSync(IMAGE_CACHE).filter((name) => /^[A-Za-z0-9._+-]+(?<!\.new)\.tar$/.test(name));
  return archives.sort().map((name) => join(IMAGE_CACHE, name))[0];
}

/** Names on a machine belong to all slivers: beside another manager there is no room for a second one. */
async function others(path: string): Promise<string | undefined> {
  // With our folder, everything there is from an earlier start, and its manager removes it.
  if (existsSync(PLACES.folder)) return undefined;
  const { stdout } = await run("nft", ["list", "tables"], { env: { PATH: path } });
  if (/^table inet nodeyard-slivers$/m.test(stdout)) return "another sliver manager works on this machine";
  const cable = readdirSync("/sys/class/net").find((name) => /^ny-/.test(name));
  return cable === undefined
    ? undefined
    : `there is an interface ${cable}, as slivers of another manager have`;
}

function isThere(program: string, path: string): boolean {
  return path.split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
