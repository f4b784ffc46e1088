import { defined } from "@nodeyard/runtime";
import type { CacheReport, ImageTrial } from "@nodeyard/sliver-protocol";
import type { Observed, SliverConfig } from "../../../core/plan.ts";
import {
  ImageError,
  MachineError,
  PoolFullError,
  StoppingError,
  WrongIncarnationError,
} from "../../../errors.ts";
import type { BackEnd, CacheChange, Configured, SliverRef } from "../../contract.ts";
import { together } from "../../edge/files.ts";
import { exists } from "../../storage/edge/pool.ts";
import { LOGIN_ID, MACHINE_LOCK, markName, type Names, namesOf, readMarkName } from "../names.ts";
import { prefixOf } from "../options.ts";
import { Inspection } from "./inspection.ts";
import { CONFIG_FILE, keepKills, launch, limitsOf } from "./launch.ts";
import { demandFitMachine, type SliverMachine } from "./machine.ts";
import { fitEngines, fitImageRoot, makeAccountRoot, makeSecrets, writeSettings } from "./root-files.ts";
import type { Mark } from "./sliver-folders.ts";

/** How long LXC's own process may take to end by itself, milliseconds. */
const MONITOR_LIMIT = 2_000;

/**
 * Slivers as LXC containers, each with its own ids, namespaces, control groups, cable and subvolume. The root of a `container` is a
 * copy of an image. The root of an `account` consists of the host's programs, read-only, and an empty tree. Each kind finds and ends
 * slivers of the other.
 *
 * The mark, a file in the sliver's folder, is written before anything else is made and removed after everything else is gone. So
 * whatever a crash leaves behind belongs to a mark, which `inspect` shows and `destroy` removes. Operations of one incarnation never
 * overlap (the executor's promise); what slivers share (the pool, the rules, the images) guards itself.
 */
export class LxcBackEnd implements BackEnd {
  readonly name: "account" | "container";
  readonly lockFolder = MACHINE_LOCK;
  /** The parts of the machine, which prepare themselves at the first operation. */
  readonly #machine: SliverMachine;
  readonly #inspection: Inspection;

  constructor(name: "account" | "container", machine: SliverMachine) {
    this.name = name;
    this.#machine = machine;
    this.#inspection = new Inspection(machine, (index) => this.#names(index));
  }

  /** Computed from the index and the options alone, so it is also right for a sliver that was never made. */
  account(index: number): { user: string; uid: number; address: string; published?: number } {
    return this.#names(index);
  }

  socketFolder(ref: SliverRef): string {
    return this.#machine.folders.socket(markName(ref));
  }

  /** In KiB, as disk limits are; the pool counts bytes. */
  async poolSize(): Promise<number> {
    return Math.floor((await this.#machine.pool.capacity()) / 1024);
  }

  remains(): readonly string[] {
    const { pool } = this.#machine;
    const stuck = [...pool.groups.stuck].map(
      ([id, why]) => `quota group 0/${id} of a removed subvolume: ${why}`,
    );
    return pool.miscounts
      ? [`disk limits in ${pool.folder} do not hold: btrfs counts again`, ...stuck]
      : stuck;
  }

  counting(): boolean {
    return this.#machine.pool.miscounts;
  }

  trials(): readonly ImageTrial[] {
    return this.#machine.images.names.trials?.report() ?? [];
  }

  caches(): readonly CacheReport[] {
    return this.#machine.caches.list();
  }

  async changeCache(id: string, change: CacheChange, signal: AbortSignal): Promise<void> {
    const { caches } = await this.#ready(signal);
    await caches.change(id, change, signal);
  }

  async inspect(signal: AbortSignal): Promise<readonly Observed[]> {
    await this.#ready(signal);
    return await this.#inspection.all(signal);
  }

  async create(config: SliverConfig, signal: AbortSignal): Promise<void> {
    const { folders, subvolumes, network, lxcfs, pool, caches } = await this.#ready(signal);
    await demandFitMachine();
    if (!(await pool.counts(signal)))
      throw new MachineError(
        `disk limits in ${pool.folder} do not hold until btrfs has counted again (btrfs quota rescan -s ${pool.folder}), so no sliver is made`,
      );
    const name = markName(config);
    // Made already by an earlier call whose answer was lost.
    if (!(await this.#begin(config))) return;
    const names = this.#names(config.index);
    // Half of a root, from an interrupted call.
    await subvolumes.remove(name, signal);
    // The end of the last sliver removes what all share. From here on such a removal finds this folder and removes nothing.
    await this.#machine.noRemoval();
    // Cable, rules and lxcfs take as long as the root, so they are made at the same time; the start finds them.
    let image: Mark["image"];
    let volumes: Mark["volumes"];
    await together(
      caches.copy(name, config.volumes ?? [], LOGIN_ID, signal).then((made) => (volumes = made)),
      this.#makeRoot(name, names, config, signal).then((made) => (image = made)),
      makeSecrets(folders.path(name, "etc"), names),
      network.prepare(names, config, signal),
      lxcfs.binds(signal),
    );
    signal.throwIfAborted();
    const made = { made: true, ...defined({ image }), ...(config.volumes === undefined ? {} : { volumes }) };
    await folders.draft(name, { ...(await this.#mark(config)), ...made });
  }

  async configure(config: SliverConfig, signal: AbortSignal): Promise<Configured> {
    const { folders, cgroups, network } = await this.#ready(signal);
    const name = markName(config);
    const names = this.#names(config.index);
    // Throws when the sliver was not created, or is being removed.
    const mark = await this.#mark(config);
    const { writes, unenforced } = await limitsOf(this.#machine, config);
    const runs = (await this.#inspection.phase(name, mark)) === "running";
    if (runs) await this.#machine.noRemoval();
    // Root inside can remove its end, and the machine's goes with it. Then it has no network, but what others lent it goes back.
    const wired = runs && (await network.cable(names)) !== undefined;
    await together(
      this.#limitDisk(name, mark, config.effective.disk, signal),
      writeSettings(folders.path(name, "etc"), mark.root, names, config),
      ...(runs ? [cgroups.apply(name, writes), network.admit(names, config, signal)] : []),
      ...(wired ? [network.shape(names, config, signal)] : []),
    );
    const { digest, effective, generation } = config;
    const { held: wasHeld = false, ...rest } = mark;
    const held = config.held === true;
    // Noted before it is done, so that it is undone also after a crash. A sliver that an operator has suspended stays so.
    if (held && !wasHeld) await folders.write(name, { ...mark, held });
    if (runs && (held || wasHeld)) await cgroups.freeze(name, held);
    // A spare has become a sliver of a document.
    const given = { name: config.name, generation, disk: effective.disk, applied: { digest, effective } };
    const says = (name: string) => config.volumes?.find((one) => one.name === name)?.commit ?? "never";
    const volumes = rest.volumes?.map((one) => ({ ...one, commit: says(one.name) }));
    await folders.write(name, { ...rest, ...(held ? { held } : {}), ...given, ...defined({ volumes }) });
    const cut =
      runs && !wired ? [`network: ${names.user} removed its interface; its next start makes it again`] : [];
    return { unenforced: [...unenforced, ...cut, ...(await network.lacks6())] };
  }

  async start(config: SliverConfig, signal: AbortSignal): Promise<void> {
    const machine = await this.#ready(signal);
    await demandFitMachine();
    const name = markName(config);
    const mark = await this.#mark(config);
    if (mark.applied === undefined) await this.#limitDisk(name, mark, config.effective.disk, signal);
    const { image } = mark;
    // Only the first start of a copy says something about its image: later ones run what its owner has changed.
    const counted = image !== undefined && !(await exists(machine.folders.path(name, CONFIG_FILE)));
    const began = machine.options.clock.monotonic();
    try {
      await launch(machine, name, this.#names(config.index), config, mark.root, signal);
    } catch (error) {
      const stops = signal.reason instanceof StoppingError;
      // Nothing of its owner's is in it yet, so it is made again, of a version that is proven.
      if (counted && !stops && (await machine.images.names.count(image, config.incarnation, undefined)))
        await machine.folders.draft(name, { ...(await this.#mark(config)), made: false });
      throw error;
    }
    if (counted)
      await machine.images.names.count(image, config.incarnation, machine.options.clock.monotonic() - began);
  }

  async stop(ref: SliverRef, signal: AbortSignal): Promise<void> {
    await this.#ready(signal);
    await this.#mark(ref);
    // The root and the mark stay; `start` makes groups and cable again.
    await this.#end(ref, signal);
  }

  async destroy(ref: SliverRef, signal: AbortSignal): Promise<void> {
    const machine = await this.#ready(signal);
    const { folders, subvolumes, cgroups, caches } = machine;
    const name = markName(ref);
    const traces = [await folders.list(), await subvolumes.list(), await cgroups.list()];
    if (traces.some((names) => names.includes(name))) {
      // First processes are ended, whatever a file does, then files removed. The mark is removed last, so that an interrupted removal is
      // found and continued.
      // On v1 the count goes with the group of its processes.
      const kills = (await cgroups.memoryKills(name)) ?? 0;
      await this.#end(ref, signal);
      const mark = await folders.read(name);
      if (mark?.volumes !== undefined) {
        const ended = { starts: mark.starts, memoryKills: mark.memoryKills + kills };
        await caches.leave(name, mark.name, mark.volumes, ended, signal);
      }
      await subvolumes.remove(name, signal);
      await folders.remove(name);
    }
    // Undoes what all slivers share when this was the last one.
    await machine.leave(signal);
  }

  /** Reads a file, so it also answers while the sliver is stopped or broken. */
  async console(ref: SliverRef): Promise<string | null> {
    return await this.#machine.folders.readConsole(markName(ref));
  }

  async snapshot(ref: SliverRef, image: string, signal: AbortSignal): Promise<void> {
    const { subvolumes, images } = await this.#ready(signal);
    const mark = await this.#mark(ref);
    if (mark.root !== "container" || !mark.made)
      throw new MachineError(
        `${mark.name} is no copy of an image, so none can be made of it; slivers of back end container are`,
      );
    const { user } = this.#names(ref.index);
    await images.snapshot(image, subvolumes.path(markName(ref)), { user, disk: mark.disk }, signal);
  }

  async forgetSnapshot(image: string, signal: AbortSignal): Promise<void> {
    const { images } = await this.#ready(signal);
    await images.forget(image, signal);
  }

  /** The machine, which the first operation prepares. When that failed, the next operation tries it again. */
  async #ready(signal: AbortSignal): Promise<SliverMachine> {
    await this.#machine.prepare(signal);
    signal.throwIfAborted();
    return this.#machine;
  }

  /** User, ids, address and rules of an index. */
  #names(index: number): Names {
    const { network, inbound } = this.#machine.options;
    return namesOf(index, network, inbound?.firstPort, prefixOf(this.#machine.options));
  }

  /** Throws WrongIncarnationError when the machine does not have this incarnation. */
  async #mark(ref: SliverRef): Promise<Mark> {
    const mark = await this.#machine.folders.read(markName(ref));
    if (mark === undefined)
      throw new WrongIncarnationError(`there is no incarnation ${ref.incarnation} at index ${ref.index}`);
    return mark;
  }

  /** Writes the mark before anything is made, so that a crash leaves nothing unmarked. False when the sliver is made already. */
  async #begin(config: SliverConfig): Promise<boolean> {
    const { folders, subvolumes, cgroups } = this.#machine;
    const own = markName(config);
    const there = [...(await folders.list()), ...(await subvolumes.list()), ...(await cgroups.list())];
    const other = there.find((name) => name !== own && readMarkName(name)?.index === config.index);
    if (other !== undefined)
      throw new WrongIncarnationError(`index ${config.index} still holds ${other}, which must go first`);
    const mark = await folders.read(own);
    if (mark?.made === true) return false;
    const { name, generation, effective, devices, volumes } = config;
    await this.#reserve(own, {
      v: 1,
      name,
      generation,
      root: this.name,
      disk: effective.disk,
      ...(devices === undefined ? {} : { devices: [...devices] }),
      ...(volumes === undefined ? {} : { volumes: [...volumes] }),
      starts: 0,
      memoryKills: 0,
      made: false,
    });
    return true;
  }

  /**
   * Makes the subvolume and what a sliver adds to it. Resolves to the image that it is a copy of; undefined for an account. When a new
   * version of an image proves to be bad, the root is made again, of the version before.
   */
  async #makeRoot(
    name: string,
    names: Names,
    config: SliverConfig,
    signal: AbortSignal,
  ): Promise<Mark["image"]> {
    const { subvolumes, images, options } = this.#machine;
    const wanted = config.image ?? options.defaultImage;
    const copied =
      this.name === "account" ? undefined : await images.forSliver(wanted, config.incarnation, signal);
    const root = subvolumes.path(name);
    try {
      await subvolumes.make(name, copied?.path, config.effective.disk, signal);
      if (copied === undefined) await makeAccountRoot(root, names);
      else await fitImageRoot(root, names, await images.roots.accounts(copied.path));
      if (config.nesting === true) await fitEngines(root);
      return copied?.made;
    } catch (error) {
      const isBad = error instanceof ImageError && copied !== undefined;
      if (!isBad || !(await images.names.count(copied.made, config.incarnation, undefined))) throw error;
    }
    await subvolumes.remove(name, signal);
    return await this.#makeRoot(name, names, config, signal);
  }

  /** Sets the disk limit in KiB. The applied configuration is discarded first, because it may not be true from now on. */
  async #limitDisk(name: string, mark: Mark, disk: number, signal: AbortSignal): Promise<void> {
    if (mark.applied?.effective.disk === disk && mark.disk === disk) return;
    const { applied, ...rest } = mark;
    // The sum of limits must always fit in the pool (rule 9): the reserved amount grows before the limit does, and shrinks after it.
    if (applied !== undefined || disk > mark.disk)
      await this.#reserve(name, { ...rest, disk: Math.max(disk, mark.disk) });
    await this.#machine.subvolumes.limit(name, disk, signal);
  }

  /** Writes a mark if its disk limit fits in the pool together with all others. */
  #reserve(name: string, mark: Mark): Promise<void> {
    const { folders, pool } = this.#machine;
    return this.#machine.exclusive.run(async () => {
      let sum = roomOf(mark);
      for (const other of await folders.list()) if (other !== name) sum += roomOf(await folders.read(other));
      const { size } = await pool.space();
      if (sum * 1024 > size)
        throw new PoolFullError(
          `${mark.name} with ${roomOf(mark)} KiB makes ${sum} KiB of disk for slivers; the pool has ${Math.floor(size / 1024)} KiB`,
        );
      await (mark.made ? folders.write(name, mark) : folders.draft(name, mark));
    });
  }

  /** Ends the processes, then removes what is bound to them: groups, cable, rules. */
  async #end({ index, incarnation }: SliverRef, signal: AbortSignal): Promise<void> {
    const { cgroups, network } = this.#machine;
    const name = markName({ index, incarnation });
    await cgroups.lift(name);
    // LXC's own process ends after the processes that it started. It is killed only if it does not.
    await cgroups.kill(name, signal, "payload");
    await cgroups.emptied(name, MONITOR_LIMIT, signal);
    await cgroups.kill(name, signal);
    await network.disconnect(this.#names(index), signal);
    this.#inspection.forget(name);
    await keepKills(this.#machine, name);
    await cgroups.remove(name, signal);
  }
}

/** KiB of the pool that a sliver may take, with its copies of caches. */
function roomOf(mark: Mark | undefined): number {
  return (mark?.volumes ?? []).reduce((sum, { size }) => sum + size, mark?.disk ?? 0);
}
