import { defined } from "@nodeyard/runtime";
import type { SliverUsage, VolumeReport } from "@nodeyard/sliver-protocol";
import type { Observed } from "../../../core/plan.ts";
import { isSpare } from "../../../core/spares.ts";
import { withRate } from "../../cgroups/usage.ts";
import type { Volume } from "../../storage/caches.ts";
import { exists } from "../../storage/edge/pool.ts";
import { type Names, readMarkName } from "../names.ts";
import { CONFIG_FILE } from "./launch.ts";
import type { SliverMachine } from "./machine.ts";
import type { Mark } from "./sliver-folders.ts";

function volumeReport({ name, path, size, key, commit, from, why }: Volume): VolumeReport {
  return { name, path, size, commit, ...defined({ key, from, why }) };
}

/** Age at which a sliver's usage is read again, milliseconds. */
const USAGE_AGE = 30_000;

/**
 * Finds slivers by what they have on the machine: a folder, a subvolume or control groups. Any of the three is enough, because a crash
 * during making or removing may leave only one. Changes nothing, and needs no state of the manager.
 */
export class Inspection {
  readonly #machine: SliverMachine;
  readonly #names: (index: number) => Names;
  /** By mark. Measured again when it is older than USAGE_AGE, monotonic milliseconds. */
  readonly #usages = new Map<string, { readonly at: number; readonly usage: SliverUsage }>();
  /** Bytes that each sliver uses, by mark. One question for all, asked again when it is older than USAGE_AGE. */
  #disks: { readonly at: number; readonly used: ReadonlyMap<string, number> } | undefined;

  constructor(machine: SliverMachine, names: (index: number) => Names) {
    this.#machine = machine;
    this.#names = names;
  }

  /** As of BackEnd's `inspect`; the machine must be prepared. */
  async all(signal: AbortSignal): Promise<readonly Observed[]> {
    const { folders, subvolumes, cgroups, network, pool } = this.#machine;
    const found = new Set([
      ...(await folders.list()),
      ...(await subvolumes.list()),
      ...(await cgroups.list()),
    ]);
    const marks = [...found].filter((name) => readMarkName(name) !== undefined);
    if (marks.length === 0) return [];
    const read = new Map<string, Mark | undefined>();
    for (const name of marks) read.set(name, await folders.read(name));
    const budget = [...read.values()].some((mark) => (mark?.applied?.effective.netDay ?? 0) > 0);
    const [guarded, sent, disks] = await Promise.all([
      network.guarded(signal),
      // Programs cost more than all files of a look: none is started for what nobody asks.
      budget ? network.sent(signal) : new Map<number, number>(),
      pool.counts(signal).then((right) => (right ? this.#usedDisks(signal) : new Map<string, number>())),
    ]);
    const all: Observed[] = [];
    for (const name of marks) {
      const ref = readMarkName(name)!;
      const mark = read.get(name);
      const phase = await this.phase(name, mark);
      // A reload of the host's rules may remove those of slivers. Then nothing counts as applied, so that the manager configures again.
      const intact = phase !== "running" || guarded.has(this.#names(ref.index).chain);
      // Counters of a cable; a new cable begins at 0, which `cable` lets the caller notice.
      const bytes = sent.get(ref.index);
      const cable = phase === "running" ? await network.cable(this.#names(ref.index)) : undefined;
      all.push({
        ...ref,
        name: mark?.name ?? "",
        generation: mark?.generation ?? 0,
        phase,
        ...defined({ devices: mark?.devices, volumes: mark?.volumes?.map(volumeReport) }),
        ...(mark?.image?.tried === true ? { triedVersion: mark.image.digest } : {}),
        ...(mark?.applied === undefined || !intact ? {} : { applied: mark.applied }),
        ...(await this.#counted(name, mark, phase, disks.get(name))),
        ...(isSpare(mark?.name ?? "") && (await this.#isOutdated(mark!, signal)) ? { outdated: true } : {}),
        ...(bytes === undefined || cable === undefined ? {} : { sent: { cable, bytes } }),
      });
    }
    return all.sort((a, b) => a.index - b.index || a.incarnation - b.incarnation);
  }

  /** "running" by its processes and not by a file: a sliver that ended by itself leaves its files. */
  async phase(name: string, mark: Mark | undefined): Promise<Observed["phase"]> {
    if (mark?.made !== true) return "broken";
    if (await this.#machine.cgroups.populated(name, "payload")) return "running";
    return (await exists(this.#machine.folders.path(name, CONFIG_FILE))) ? "stopped" : "created";
  }

  /** Called when a sliver's groups go. */
  forget(name: string): void {
    this.#usages.delete(name);
  }

  /** Kills are reported at once. Other usage may be a few seconds old, because syncs follow each other quickly while much is changing. */
  async #counted(
    name: string,
    mark: Mark | undefined,
    phase: Observed["phase"],
    disk: number | undefined,
  ): Promise<Pick<Observed, "memoryKills" | "usage">> {
    const { cgroups, options } = this.#machine;
    const kills = await cgroups.memoryKills(name);
    const memoryKills =
      kills === undefined && mark === undefined ? undefined : (kills ?? 0) + (mark?.memoryKills ?? 0);
    if (phase !== "running") this.#usages.delete(name);
    const counted = defined({ memoryKills });
    if (phase !== "running") return counted;
    let last = this.#usages.get(name);
    const now = options.clock.monotonic();
    if (last === undefined || now - last.at > USAGE_AGE) {
      last = { at: now, usage: withRate(await cgroups.usage(name), last?.usage, now - (last?.at ?? now)) };
      this.#usages.set(name, last);
    }
    return { ...counted, usage: disk === undefined ? last.usage : { ...last.usage, disk } };
  }

  /** `df` inside shows the pool: btrfs reports the limit of a subvolume nowhere. An unknown amount must not hold up anything else. */
  async #usedDisks(signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
    const now = this.#machine.options.clock.monotonic();
    if (this.#disks === undefined || now - this.#disks.at > USAGE_AGE) {
      const used = await this.#machine.subvolumes.used(signal).catch(() => new Map<string, number>());
      signal.throwIfAborted();
      this.#disks = { at: now, used };
    }
    return this.#disks.used;
  }

  /** A spare whose image has a newer version would give its client the old one. */
  async #isOutdated({ image }: Mark, signal: AbortSignal): Promise<boolean> {
    return image !== undefined && !(await this.#machine.images.serves(image, signal));
  }
}
