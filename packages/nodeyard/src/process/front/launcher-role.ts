import type { Readiness } from "../../api/index.ts";
import type { Config } from "../../config/index.ts";
import { Election } from "../../coordination/index.ts";
import {
  backlogGauges,
  type Gauge,
  gaugeOf,
  gaugeSamples,
  imageGauges,
  limitGauges,
  Population,
  type StatsdSample,
} from "../../metrics/index.ts";
import { connection } from "./connection.ts";
import type { Role, RoleParts } from "./role.ts";

/** Where launchers of both kinds settle who tells of what all of them see (docs/contract/operations.md, "Figures of the whole"). */
const STATS = "/nodepool/elections/stats";

/** What of a running launcher is looked at. */
export interface LookedAt {
  readonly view: Role["known"]["view"];
  readonly serving: boolean;
  readonly journalLost: number;
  readonly config: Config;
}

/** A launcher's figures: what it sees of the tree, its own limits, and how it fares. */
export class LauncherRole implements Role {
  readonly known: Role["known"];
  readonly #parts: RoleParts;
  readonly #launcher: LookedAt;
  readonly #population: Population;
  readonly #election: Election | undefined;

  /** With `elected` it stands for election among those that tell a statsd server of what all see. */
  constructor(
    parts: RoleParts,
    launcher: LookedAt,
    { onChange, elected }: { readonly onChange: () => void; readonly elected: boolean },
  ) {
    this.#parts = parts;
    this.#launcher = launcher;
    const { machine, tree, log } = parts;
    const { clock, random, hostname, pid } = machine;
    this.known = { view: launcher.view, handles: { tree, clock, random } };
    this.#population = new Population(launcher.view, onChange);
    const place = { parent: STATS, data: Buffer.from(`${hostname}-${pid}`) };
    if (elected) this.#election = new Election({ tree, clock, random, log }, place, onChange);
    this.#election?.start();
  }

  readiness(): Readiness {
    const { ready, why } = connection(this.#parts);
    if (!ready) return { ready, why };
    if (this.#launcher.serving) return { ready, why: "" };
    return { ready: false, why: "the tree is being read, or the pools are not registered yet" };
  }

  get leading(): boolean {
    return this.#election?.leading === true;
  }

  config(): Config {
    return this.#launcher.config;
  }

  gauges(): readonly Gauge[] {
    const { view, journalLost } = this.#launcher;
    return [
      ...this.#population.gauges(),
      ...imageGauges(view),
      ...this.#own(),
      gaugeOf("journal_lost", journalLost),
    ];
  }

  samples(): readonly StatsdSample[] {
    return gaugeSamples(this.#own(), this.#parts.machine.hostname);
  }

  /** What all launchers see alike. */
  shared(): readonly StatsdSample[] {
    return gaugeSamples(this.#population.gauges(), this.#parts.machine.hostname);
  }

  async close(): Promise<void> {
    this.#population.close();
    await this.#election?.close();
  }

  #own(): readonly Gauge[] {
    const { providers, tenantLimits } = this.#launcher.config;
    const maxServers = new Map(
      providers.map(({ name, pools }) => [
        name,
        pools.map(({ limits }) => limits.instances ?? Number.POSITIVE_INFINITY),
      ]),
    );
    const { tree } = this.#parts;
    return [
      ...limitGauges({ maxServers, tenants: tenantLimits }),
      gaugeOf("tree_calls", tree.underWay().length),
      ...backlogGauges(this.#launcher.view),
    ];
  }
}
