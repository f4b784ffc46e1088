import { mkdir, readdir, readFile, rm, stat, statfs, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { succeeds } from "@nodeyard/runtime";
import { MachineError } from "../../../errors.ts";
import type { PoolDevice } from "../../cgroups/limits.ts";
import { deviceNumber } from "../../edge/device-number.ts";
import { run } from "../../edge/run.ts";
import { type PoolTools, QuotaGroups } from "../quota-groups.ts";
import { BtrfsQuota } from "./btrfs-quota.ts";
import { type ListedSubvolume, readSubvolumes } from "./subvolume-list.ts";

/** Bytes that the pool's file leaves free on the machine's own file system, so that the machine works when the pool is full. */
const SPARE = 67_108_864;
/** Where btrfs shows its file systems, by their ids. */
const SYSTEMS = "/sys/fs/btrfs";
/**
 * The height of a tree from which on btrfs does not count its removal, and so loses count of everything: no tree is so high. Linux 6.13 and later
 * do not count trees of a height of 3 by themselves, as copies of large images have.
 */
const ALWAYS_COUNT = "8";
/** Magic number of btrfs in `statfs`. */
const BTRFS = 0x9123683e;

/**
 * The btrfs for images and slivers: in a file whose blocks are allocated in advance, or in a folder that is on a btrfs already. Only root
 * can enter it, because slivers can write set-uid programs whose ids may be those of users here.
 */
export class Pool {
  readonly folder: string;
  /** Quota groups of removed subvolumes. */
  readonly groups: QuotaGroups;
  /** What `counts` found last: disk limits do not hold. */
  miscounts = false;
  /** Undefined: the pool is a folder on a btrfs of the machine. */
  readonly #file: string | undefined;
  readonly #bytes: number;
  readonly #say: (line: string) => void;

  /** `bytes`: size of the file when it has to be made. Without `file`, `folder` must be on a btrfs. */
  constructor(folder: string, file: string | undefined, bytes: number, options: PoolTools) {
    this.folder = folder;
    this.groups = new QuotaGroups(new BtrfsQuota(folder, (signal) => this.subvolumes(signal)), options);
    this.#file = file;
    this.#bytes = bytes;
    this.#say = options.onProgress;
  }

  /** Mounts the pool, and makes it first when it does not exist. Throws MachineError, CommandError. */
  async prepare(signal: AbortSignal): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    if (this.#file !== undefined && (await this.#source()) === undefined) {
      await this.#makeFile(this.#file, signal);
      await this.#tellOtherSize();
      await run(["mount", "-o", "loop,noatime,nodev", this.#file, this.folder], { signal });
    }
    const info = await stat(this.folder);
    if (info.uid !== 0 || (info.mode & 0o077) !== 0) await run(["chmod", "700", this.folder], { signal });
    // Not the usual scheduler of a loop device, which serves who asks most.
    const device = await this.device();
    if (device !== undefined) await schedule(device.number, "bfq");
    await run(["btrfs", "quota", "enable", this.folder], { signal });
    const groups = await this.quotaFolder();
    if (groups !== undefined)
      await writeFile(join(groups, "drop_subtree_threshold"), ALWAYS_COUNT).catch(() => undefined);
    await this.groups.resume(signal);
    for (const name of ["slivers", "images"]) await mkdir(join(this.folder, name), { recursive: true });
  }

  /** Whether the pool is a file of its own. Then the removal of the file removes its content too. */
  get own(): boolean {
    return this.#file !== undefined;
  }

  /**
   * In place of `prepare` when slivers are only removed: makes and mounts nothing. On a shared file system it resumes the removal of quota
   * groups that an earlier process left. Throws MachineError when that file system is not mounted although slivers `used` it.
   */
  async prepareToEnd(used: boolean, signal: AbortSignal): Promise<void> {
    if (this.own) return;
    const there = await statfs(this.folder).then(
      ({ type }) => type === BTRFS,
      () => false,
    );
    if (!there && used)
      throw new MachineError(
        `the pool ${this.folder} is not on btrfs, so what slivers left there cannot be removed: mount its file system first`,
      );
    if (there) await this.groups.resume(signal);
  }

  /** Unmounts the pool and keeps its content. On a shared file system the quota groups of slivers are removed first. */
  async leave(signal: AbortSignal): Promise<void> {
    if (this.#file === undefined) await this.groups.hurry(signal);
    await this.groups.stop();
    // The loop device stays when the pool goes, so what was changed is changed back.
    const device = await this.device();
    if (device?.weighs) await schedule(device.number, "none");
    if (device !== undefined) await run(["umount", this.folder], { signal });
  }

  /** Size in bytes, also of a pool that has not been made yet. Throws MachineError. */
  async capacity(): Promise<number> {
    if (this.#file !== undefined) return (await sizeOf(this.#file)) ?? this.#bytes;
    const { bsize, blocks } = await statfs(this.folder).catch((cause) => {
      throw new MachineError(`the pool ${this.folder} cannot be read: ${cause.message}`, { cause });
    });
    return bsize * blocks;
  }

  /** Size in bytes, and bytes that images and slivers use now. */
  async space(): Promise<{ size: number; used: number }> {
    const { bsize, blocks, bavail } = await statfs(this.folder);
    return { size: blocks * bsize, used: (blocks - bavail) * bsize };
  }

  /**
   * Whether disk limits hold. They do not when btrfs has lost count of what subvolumes own; then a new count is begun, after which they do.
   * A kernel that does not say so (before 6.1), and a pool on a file system of others, count as right.
   */
  async counts(signal: AbortSignal): Promise<boolean> {
    const groups = await this.quotaFolder();
    const text = groups && (await readFile(join(groups, "inconsistent"), "utf8").catch(() => undefined));
    this.miscounts = text?.trim() === "1";
    if (!this.miscounts) return true;
    this.#say(`btrfs has lost count of the disk that slivers use in ${this.folder}: it counts again`);
    // It may be counting already.
    await run(["btrfs", "quota", "rescan", this.folder], { signal }).catch(() => signal.throwIfAborted());
    return false;
  }

  /** The device that only the pool uses. Undefined when the pool shares its device. */
  async device(): Promise<PoolDevice | undefined> {
    const source = this.#file === undefined ? undefined : await this.#source();
    if (source === undefined) return undefined;
    const { rdev } = await stat(source);
    const number = deviceNumber(rdev).join(":");
    return { number, weighs: (await scheduler(number)) === "bfq" };
  }

  /** All subvolumes of the pool's file system. */
  async subvolumes(signal: AbortSignal): Promise<ListedSubvolume[]> {
    return readSubvolumes(await run(["btrfs", "subvolume", "list", "-u", "-q", this.folder], { signal }));
  }

  async #makeFile(file: string, signal: AbortSignal): Promise<void> {
    // A temporary name until the file contains a file system: an incomplete file is never mounted.
    if (await exists(file)) return;
    const half = `${file}.new`;
    await rm(half, { force: true });
    await this.#requireSpace(dirname(file));
    try {
      await run(["fallocate", "-l", String(this.#bytes), half], { signal });
      // Metadata once: a second copy in the same file would protect against nothing.
      await run(["mkfs.btrfs", "-q", "-m", "single", half], { signal });
      await run(["mv", half, file], { signal });
    } catch (error) {
      // After a failed allocation, ext4 keeps the blocks that it could allocate. The machine would have no space left.
      await rm(half, { force: true }).catch(() => undefined);
      throw error;
    }
  }

  /** Throws MachineError with both sizes before anything is allocated. */
  async #requireSpace(place: string): Promise<void> {
    const { bsize, bavail } = await statfs(place);
    const free = bsize * bavail;
    if (this.#bytes + SPARE > free)
      throw new MachineError(
        `the pool needs ${this.#bytes} bytes in ${place} and leaves ${SPARE} free beside it; ${free} are free: ` +
          "make room there, or set a smaller isolation.pool.bytes",
      );
  }

  /** An existing file is used with the size it has: its slivers have been promised their disk space. */
  async #tellOtherSize(): Promise<void> {
    const size = await sizeOf(this.#file!);
    if (size === undefined || size === this.#bytes) return;
    this.#say(
      `the pool ${this.#file} has ${size} bytes, and isolation.pool.bytes says ${this.#bytes}: it keeps its size until it is created again, ` +
        "after sliverd --dismantle",
    );
  }

  /** The kernel's files about the quota groups of a pool of our own. */
  async quotaFolder(): Promise<string | undefined> {
    const source = this.#file === undefined ? undefined : await this.#source();
    if (source === undefined) return undefined;
    for (const id of await readdir(SYSTEMS).catch(() => []))
      if (await exists(join(SYSTEMS, id, "devices", basename(source)))) return join(SYSTEMS, id, "qgroups");
    return undefined;
  }

  /** The device that is mounted at the folder. */
  async #source(): Promise<string | undefined> {
    const lines = (await readFile("/proc/self/mountinfo", "utf8")).split("\n").map((line) => line.split(" "));
    const line = lines.findLast((one) => one[4] === this.folder);
    if (line === undefined) return undefined;
    const [type, source] = line.slice(line.indexOf("-") + 1);
    if (type !== "btrfs") throw new MachineError(`${this.folder} holds a ${type}, and must be a btrfs`);
    return source;
  }
}

/** `device` is MAJOR:MINOR. */
function schedulerFile(device: string): string {
  return `/sys/dev/block/${device}/queue/scheduler`;
}

/** The scheduler in use, which the kernel shows in brackets. */
async function scheduler(device: string): Promise<string | undefined> {
  const text = await readFile(schedulerFile(device), "utf8").catch(() => "");
  return /\[(\S+)\]/.exec(text)?.[1];
}

/** Changes the scheduler, if the kernel has that one. */
async function schedule(device: string, name: string): Promise<void> {
  if ((await scheduler(device)) === name) return;
  await writeFile(schedulerFile(device), name).catch(() => undefined);
}

async function sizeOf(path: string): Promise<number | undefined> {
  return stat(path).then(
    ({ size }) => size,
    () => undefined,
  );
}

/** Whether a file or folder exists at the path. Links are followed. */
export function exists(path: string): Promise<boolean> {
  return succeeds(stat(path));
}
