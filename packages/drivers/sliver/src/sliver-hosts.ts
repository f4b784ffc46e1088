import {
  type DriverContext,
  DriverError,
  exceeded,
  type Log,
  messageOf,
  type Resources,
} from "@nodeyard/driver";
import {
  type NodeReport,
  SliverFencedError,
  SliverOwnedError,
  SliverUnreachableError,
  type SliverVolume,
} from "@nodeyard/sliver-protocol";
import { capacityOf, freeShare, limitsFor, together } from "./amounts.ts";
import { cachesFor } from "./caches.ts";
import type { Place } from "./names.ts";
import { Placing } from "./placing.ts";
import type { SliverHost } from "./sliver-host.ts";

type HostsContext = Pick<DriverContext, "log" | "impaired">;

export interface Seen {
  readonly host: SliverHost;
  readonly report: NodeReport;
}

/** What a new sliver is to have. */
export interface Wish {
  readonly name: string;
  readonly need: Resources;
  /** Its caches. */
  readonly volumes: readonly SliverVolume[];
}

/** The machine of a sliver. Call `placed` when the machine has taken or refused its document. */
export interface Placed {
  readonly host: SliverHost;
  /** Of a sliver that is there already. */
  readonly generation?: number;
  placed(): void;
}

/**
 * The machines of a provider. It remembers only slivers whose placing is in progress; everything else is asked. Where an answer decides
 * that something does not exist (`find`, `reports`), every machine must answer; where one more machine is only better (`choose`,
 * `capacity`), those that answer are enough.
 */
export class SliverHosts {
  readonly all: readonly SliverHost[];
  readonly #log: Log;
  /** As of DriverContext. */
  readonly #impaired: NonNullable<DriverContext["impaired"]>;
  readonly #placing = new Placing();

  constructor(hosts: readonly SliverHost[], { log, impaired = () => {} }: HostsContext) {
    this.all = hosts;
    this.#log = log;
    this.#impaired = impaired;
  }

  /** Resolves with the machines that can be used. Rejects when there is none, or when one is not the machine that the file names. */
  open(signal: AbortSignal): Promise<readonly Seen[]> {
    return this.#answering((host) => host.open(signal), signal);
  }

  /** Throws DriverError for a machine that was removed from the configuration, because its slivers may still exist. */
  get(name: string): SliverHost {
    const host = this.all.find((one) => one.name === name);
    if (host !== undefined) return host;
    throw new DriverError(
      "configuration",
      `machine ${name} has the sliver and is no longer configured; add it again until its slivers are gone`,
    );
  }

  /** Reports of every machine. Rejects with SliverUnreachableError when one of them does not answer. */
  async reports(signal: AbortSignal): Promise<readonly Seen[]> {
    return Promise.all(this.all.map(async (host) => ({ host, report: await host.status(signal) })));
  }

  /** Finds the sliver of that name in the machines' documents. */
  async find(name: string, signal: AbortSignal): Promise<Place | undefined> {
    for (const { host, report } of await this.reports(signal)) {
      const found = complete(report).slivers.find((one) => one.name === name);
      if (found !== undefined) return { machine: host.name, name, generation: found.generation };
    }
    return undefined;
  }

  /** Reports of the machines that can be used; at least one. */
  seen(signal: AbortSignal): Promise<readonly Seen[]> {
    return this.#answering((host) => host.usable(signal), signal);
  }

  /** The sum of what the usable machines can guarantee. */
  async capacity(signal: AbortSignal): Promise<Resources> {
    const seen = await this.seen(signal);
    return together(seen.map(({ report }) => capacityOf(report)));
  }

  /** Rejects with kind "configuration" when not even an empty machine has that much. When no machine answers, nothing is known. */
  async judge(need: Resources, signal: AbortSignal): Promise<void> {
    const seen = await this.seen(signal);
    const lacks = seen.map(({ report }) => exceeded(limitsFor(capacityOf(report), need), {}, need));
    // A machine that does not answer may be the one that has it.
    if (seen.length < this.all.length || lacks.includes(undefined)) return;
    throw new DriverError("configuration", `no machine has the ${lacks[0]} that one sliver is guaranteed`);
  }

  /**
   * Chooses the machine that has the sliver already; else, of those with room, the one with most of its caches, and of these the one with the
   * most free capacity. The sliver counts there until `placed` is
   * called. Throws "quota" when it fits on none of those that answer. A machine that does not answer is not waited for: a sliver is written
   * into a document only after its id was saved, and with an id nothing is chosen.
   */
  async choose({ name, need, volumes }: Wish, signal: AbortSignal): Promise<Placed> {
    // Before the machines are asked: what is placed while they answer is in none of the reports.
    const look = this.#placing.begin();
    try {
      let begun: { readonly host: SliverHost; readonly generation: number } | undefined;
      const seen = await this.#answering(
        (host) =>
          host.usable(signal, (report) => {
            const there = complete(report).slivers.find((one) => one.name === name);
            if (there !== undefined) begun = { host, generation: there.generation };
          }),
        signal,
      );
      if (begun !== undefined) return { ...begun, ...this.place(begun.host, name, need) };
      let best: { readonly host: SliverHost; readonly share: number; readonly caches: number } | undefined;
      for (const { host, report } of seen) {
        const share = freeShare(capacityOf(report), this.#placing.used(report, look), need);
        if (share === undefined) continue;
        const caches = cachesFor(volumes, report);
        const isBetter = best === undefined || (caches - best.caches || share - best.share) > 0;
        if (isBetter) best = { host, share, caches };
      }
      if (best === undefined)
        throw new DriverError("quota", `none of ${seen.length} machines has room for one more sliver`);
      return this.place(best.host, name, need);
    } finally {
      this.#placing.end(look);
    }
  }

  /** Counts a sliver on a machine that an earlier call has chosen. */
  place(host: SliverHost, name: string, need: Resources): Placed {
    return { host, placed: this.#placing.add(host.name, name, need) };
  }

  /** Asks all machines. One that cannot be reached, or of another writer, is left out. Any other error is for an operator to correct. */
  async #answering(ask: (host: SliverHost) => Promise<NodeReport>, signal: AbortSignal): Promise<Seen[]> {
    const seen: Seen[] = [];
    const failures: unknown[] = [];
    const one = async (host: SliverHost) => {
      try {
        seen.push({ host, report: await ask(host) });
        this.#impaired(`machine ${host.name}`, null);
      } catch (error) {
        const isTaken = error instanceof SliverOwnedError || error instanceof SliverFencedError;
        if (signal.aborted || !(isTaken || error instanceof SliverUnreachableError)) throw error;
        failures[isTaken ? "unshift" : "push"](error);
        const facts = { machine: host.name, error: messageOf(error) };
        this.#impaired(`machine ${host.name}`, facts.error);
        if (isTaken) this.#log.error(facts, "the machine is another writer's; the others serve");
        else this.#log.warn(facts, "the machine does not answer");
      }
    };
    await Promise.all(this.all.map(one));
    if (seen.length === 0) throw failures[0];
    // Sorted, so that the machine that answers first is not preferred.
    return seen.sort((a, b) => (a.host.name < b.host.name ? -1 : 1));
  }
}

/** Throws when the machine has lost its store: then a sliver that the report does not list may exist. */
export function complete(report: NodeReport): NodeReport {
  if (!report.safeMode || report.unlisted.length === 0) return report;
  throw new DriverError(
    "configuration",
    `machine ${report.node} lost its store and has ${report.unlisted.length} unknown slivers; end them there, or restore its store`,
  );
}
