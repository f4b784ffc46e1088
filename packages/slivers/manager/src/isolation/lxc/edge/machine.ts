import { chmod, mkdir, readdir, readFile, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, Gate, messageOf } from "@nodeyard/runtime";
import { MachineError } from "../../../errors.ts";
import { Cgroups } from "../../cgroups/edge/cgroups.ts";
import { strayingGroup } from "../../cgroups/limits.ts";
import { writeAtomic } from "../../edge/files.ts";
import { packagesOf, run } from "../../edge/run.ts";
import { Network } from "../../network/edge/network.ts";
import { CacheStore } from "../../storage/edge/cache-store.ts";
import { Images } from "../../storage/edge/images.ts";
import { exists, Pool } from "../../storage/edge/pool.ts";
import { Subvolumes } from "../../storage/edge/subvolumes.ts";
import { seccompPolicy } from "../lxc-config.ts";
import { clashes } from "../names.ts";
import { type IsolationOptions, prefixOf } from "../options.ts";
import { raiseSettings, restoreSettings, tasksOfMachine } from "./kernel-settings.ts";
import { Lxcfs } from "./lxcfs.ts";
import { SliverFolders } from "./sliver-folders.ts";

/**
 * Records the network prefix of slivers' addresses in the machine's folder for as long as there are slivers. Existing slivers have their
 * addresses inside and could not be reached with another prefix. Throws MachineError.
 */
export async function keepNetwork(folder: string, network: string, slivers: number): Promise<void> {
  const kept = await keptNetwork(folder);
  if (kept === network) return;
  if (kept !== undefined && slivers > 0)
    throw new MachineError(
      `isolation.network is ${network}, and the existing slivers (${slivers}) have addresses of ${kept}: ` +
        `write ${kept} again; it can change once they have ended (sliverd --dismantle ends all of them)`,
    );
  await writeAtomic(fileIn(folder), `${network}\n`);
}

/** The recorded prefix, for ending slivers whatever is configured by now. */
export async function keptNetwork(folder: string): Promise<string | undefined> {
  const text = await readFile(fileIn(folder), "utf8").catch(() => "");
  return text.trim() || undefined;
}

function fileIn(folder: string): string {
  return join(folder, "network");
}

/**
 * Throws MachineError when slivers would escape their limits or share their ids. Then no sliver may be made or started; existing ones can
 * still be ended.
 */
export async function demandFitMachine(): Promise<void> {
  const straying = strayingGroup(await text("/proc/1/cgroup"));
  if (straying !== undefined)
    throw new MachineError(
      `process 1 of this machine is in control group ${straying}, below which LXC would start slivers without their limits: ` +
        "start it in / or in /init.scope",
    );
  for (const file of ["/etc/passwd", "/etc/group", "/etc/subuid", "/etc/subgid"]) {
    const clash = clashes(await text(file), file.startsWith("/etc/sub"));
    if (clash !== undefined)
      throw new MachineError(`${file} gives ids of slivers to ${clash}; no other user may have them`);
  }
}

async function text(file: string): Promise<string> {
  return readFile(file, "utf8").catch(() => "");
}

/** Names that this program makes in the machine's folder. Other names are left alone. */
export const OWN_FILES = [
  "slivers",
  "seen",
  "pool",
  "pool.img",
  "pool.img.new",
  "cache",
  "network",
  "forwarding",
  "raised",
  "lxcfs",
  "lxcfs.pid",
  "seccomp.policy",
  "seccomp.policy.nesting",
] as const;

/** Removes this program's files from a folder, and the folder if it is then empty. Nothing may be mounted there. */
export async function removeOwn(folder: string, own: readonly string[] = OWN_FILES): Promise<void> {
  for (const name of own) await rm(join(folder, name), { recursive: true, force: true });
  if ((await readdir(folder).catch(() => undefined))?.length === 0) await rmdir(folder);
}

/** Options of the resources that all slivers share. */
export interface MachineOptions extends IsolationOptions {
  /** bit/s. */
  readonly link: number;
  /** Memory in bytes for all slivers together. */
  readonly memory: number;
  readonly clock: Clock;
  readonly onProgress: (line: string) => void;
}

/** The part of the machine's processes that slivers may have: the rest of the machine always starts some. */
const SLIVERS_PART = 0.75;
const NEEDED_PROGRAMS = packagesOf(["lxc-start", "btrfs", "nft", "ip", "tc"]);

/** Resources that all slivers share: made for the first sliver, removed after the last. */
export class SliverMachine {
  readonly options: MachineOptions;
  readonly pool: Pool;
  readonly subvolumes: Subvolumes;
  readonly images: Images;
  readonly caches: CacheStore;
  readonly folders: SliverFolders;
  readonly network: Network;
  readonly lxcfs: Lxcfs;
  readonly seccomp: string;
  /** Runs one piece of work at a time, because shared resources must not be removed while a sliver starts to use them. */
  readonly exclusive = new Gate(1);
  /** From `prepare` or `prepareToEnd` on. */
  cgroups!: Cgroups;
  /** Processes and threads that all slivers together may have; from `prepare` on. */
  tasks!: number;
  #prepared: Promise<void> | undefined;

  constructor(options: MachineOptions) {
    this.options = options;
    const { folder, pool, clock, onProgress, images } = options;
    this.pool =
      "bytes" in pool
        ? new Pool(join(folder, "pool"), join(folder, "pool.img"), pool.bytes, { clock, onProgress })
        : new Pool(pool.folder, undefined, 0, { clock, onProgress });
    this.subvolumes = new Subvolumes(this.pool);
    this.images = new Images(this.pool, {
      sources: images,
      trial: options.trial,
      cache: options.cache ?? join(folder, "cache"),
      clock,
      onProgress,
    });
    this.caches = new CacheStore(this.pool, options.cacheRoom / 100, { clock, onProgress });
    this.folders = new SliverFolders(folder);
    const { outbound, network, inbound } = options;
    // A prefix of the owner's is routed to this machine. Private addresses are translated.
    const ipv6 = outbound !== false && typeof outbound.ipv6 === "string" ? "routed" : prefixOf(options);
    const way = outbound === false ? {} : { outbound: { ...outbound, network, ipv6 } };
    const forwarding = join(folder, "forwarding");
    this.network = new Network({ ...way, network, link: options.link, inbound, forwarding, clock });
    this.lxcfs = new Lxcfs(folder, clock, onProgress);
    this.seccomp = join(folder, "seccomp.policy");
  }

  /** Makes the shared resources once; tries again after a failure. Throws MachineError, CommandError. */
  prepare(signal: AbortSignal): Promise<void> {
    return this.#once(() => this.#prepare(signal));
  }

  /**
   * Used instead of `prepare` to end all slivers and remove everything: it makes and mounts nothing and needs no program, so that a machine
   * that cannot make slivers can still be cleaned up. Running slivers keep the pool mounted. Of an own pool that is not mounted only the
   * file must be removed. Throws MachineError, CommandError.
   */
  prepareToEnd(signal: AbortSignal): Promise<void> {
    return this.#once(async () => {
      // The seccomp file is made last, so it exists only if the pool was made.
      await this.pool.prepareToEnd(await exists(this.seccomp), signal);
      this.cgroups = await Cgroups.detect(this.options.clock);
    });
  }

  /**
   * Resolves when no removal of shared resources is in progress. For a sliver whose folder exists: a removal that starts later finds that
   * folder and removes nothing.
   */
  noRemoval(): Promise<void> {
    return this.exclusive.run(async () => undefined);
  }

  /** Called after a sliver was removed. After the last one, only files of slivers are left on the machine. */
  async leave(signal: AbortSignal): Promise<void> {
    await this.exclusive.run(async () => {
      if ((await this.folders.list()).length > 0) return;
      await this.network.remove(signal);
      await this.lxcfs.leave(signal);
      await this.cgroups.removeParent(signal);
    });
    // The sliver may have been the last copy of an old image. An image that cannot be removed costs disk space, but must not prevent the
    // end of a sliver.
    await this.images
      .retire(signal)
      .catch((error) => this.options.onProgress(`cannot delete old images: ${messageOf(error)}`));
  }

  /** Removes everything that belongs to slivers, images included. Throws MachineError while there are slivers. */
  async dismantle(signal: AbortSignal): Promise<void> {
    const there = await this.folders.list();
    if (there.length > 0) throw new MachineError(`${there.join(", ")} must be ended first`);
    await this.leave(signal);
    // An own pool is removed as a whole, because a damaged one may be unable to remove single images.
    if (this.pool.own) await this.pool.leave(signal);
    await this.images.remove(signal);
    await this.caches.removeAll(signal);
    await this.pool.leave(signal);
    this.#prepared = undefined;
    await restoreSettings(join(this.options.folder, "raised"));
    await removeOwn(this.options.folder);
  }

  #once(work: () => Promise<void>): Promise<void> {
    this.#prepared ??= work().catch((error) => {
      this.#prepared = undefined;
      throw error;
    });
    return this.#prepared;
  }

  async #prepare(signal: AbortSignal): Promise<void> {
    for (const [program, name] of Object.entries(NEEDED_PROGRAMS))
      await run(["which", program], { signal }).catch((cause) => {
        throw new MachineError(`slivers need ${program}; apt-get install ${name}`, { cause });
      });
    // LXC requires that the sliver's root user can pass through this folder. Secret files are protected in the folders below.
    await mkdir(this.options.folder, { recursive: true });
    await chmod(this.options.folder, 0o711);
    await this.folders.prepare();
    const { length } = await this.folders.list();
    await keepNetwork(this.options.folder, this.options.network, length);
    await raiseSettings(join(this.options.folder, "raised"));
    this.tasks = Math.floor((await tasksOfMachine()) * SLIVERS_PART);
    await this.pool.prepare(signal);
    await this.images.tidy(signal);
    await this.caches.prepare(new Set(await this.folders.list()), signal);
    await writeAtomic(this.seccomp, seccompPolicy(false));
    await writeAtomic(`${this.seccomp}.nesting`, seccompPolicy(true));
    const cgroups = await Cgroups.detect(this.options.clock);
    // Nothing is made before this has ended, so a group without a folder and without a process is not one that a sliver is about to use.
    await cgroups.sweep(new Set([...(await this.folders.list()), ...(await this.subvolumes.list())]), signal);
    this.cgroups = cgroups;
  }
}
