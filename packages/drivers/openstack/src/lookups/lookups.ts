import { type Clock, DriverError, type LabelConfig, SharedValues } from "@nodeyard/driver";
import { z } from "zod";
import type { Api, Flavor, Image, Network } from "../api/index.ts";
import type { OpenstackLabelOwn } from "../config.ts";
import { chooseFlavor, chooseImage, chooseNetwork } from "./choose.ts";

/**
 * How long facts of the cloud that seldom change are kept, milliseconds. After a refused create they may be outdated: call
 * `forget`. Until staleMs an older value is returned while a new one is loaded.
 */
const SELDOM = { freshMs: 60_000, staleMs: 240_000 };

const ZONES_PATH = "/os-availability-zone";
const ZONES = z.object({
  availabilityZoneInfo: z.array(
    z.object({ zoneName: z.string(), zoneState: z.object({ available: z.boolean() }) }),
  ),
});

/**
 * Ids of the cloud for names of the configuration. Lists are cached and shared by concurrent callers. Methods reject with kind
 * "configuration" for a name that the cloud does not have, and with the client's errors.
 */
export class Lookups {
  readonly #api: Api;
  readonly #known: SharedValues<readonly unknown[]>;

  constructor(clock: Clock, api: Api) {
    this.#api = api;
    this.#known = new SharedValues(clock);
  }

  /** The flavor of a label's servers. */
  flavor({ name, own }: LabelConfig<OpenstackLabelOwn>, signal: AbortSignal): Promise<Flavor> {
    const list = () => this.flavors(signal);
    return this.#choice(list, (all) => chooseFlavor(all, own), `label ${name}`);
  }

  /** All flavors that the project may use. */
  flavors(signal: AbortSignal): Promise<readonly Flavor[]> {
    return this.#list("list of flavors", signal, (own) => this.#api.flavors.list(own));
  }

  /** Names of the zones that accept servers. */
  zones(signal: AbortSignal): Promise<readonly string[]> {
    return this.#list("list of zones", signal, async (own) => {
      const { availabilityZoneInfo: all } = await this.#api.nova.json(ZONES, "GET", ZONES_PATH, own);
      return all.flatMap(({ zoneName, zoneState }) => (zoneState.available ? [zoneName] : [])).sort();
    });
  }

  /** All networks that the project may use, also shared ones of other projects. */
  networks(signal: AbortSignal): Promise<readonly Network[]> {
    return this.#list("list of networks", signal, async (own) => {
      const project = await this.#api.neutron.project(own);
      // An administrator would see all projects.
      return (await this.#api.networks.list(own)).filter(
        ({ project_id: owner, shared, "router:external": outer }) =>
          shared || outer || project === null || owner === undefined || owner === project,
      );
    });
  }

  /** Networks by name or id, in the order of `names`, which is that of the server's interfaces. */
  async networksNamed(names: readonly string[], signal: AbortSignal): Promise<readonly Network[]> {
    const named: Network[] = [];
    const list = () => this.networks(signal);
    for (const name of names)
      named.push(await this.#choice(list, (all) => chooseNetwork(all, name), `network ${name}`));
    return named;
  }

  /** The image id of a label's cloud image. Only names are looked up. */
  async cloudImage(
    image: NonNullable<OpenstackLabelOwn["cloudImage"]>,
    signal: AbortSignal,
  ): Promise<string> {
    if ("id" in image) return image.id;
    const { name } = image;
    const found = await this.#list(`images called ${name}`, signal, (own) => this.#images(name, own));
    return orMissing(chooseImage(found, name), `cloud image ${name}`).id;
  }

  /** Discards what is known, because it may be outdated. */
  forget(): void {
    this.#known.invalidate();
  }

  /** Ends loads in progress; their callers get an error. */
  close(): void {
    this.#known.close();
  }

  #list<T>(what: string, signal: AbortSignal, load: (signal: AbortSignal) => Promise<readonly T[]>) {
    return this.#known.get(what, { load, ...SELDOM }, signal) as Promise<readonly T[]>;
  }

  /**
   * What `choose` takes of a list. An empty list is not believed, since a cloud without flavors or networks serves nobody: it is read once
   * more, and if it is empty again the fault is the cloud's. Rejects with `configuration` for what another list does not have.
   */
  async #choice<T, C>(
    list: () => Promise<readonly T[]>,
    choose: (all: readonly T[]) => C | string,
    place: string,
  ): Promise<C> {
    for (let tries = 0; tries < 2; tries++) {
      const all = await list();
      if (all.length > 0) return orMissing(choose(all), place);
      this.forget();
    }
    throw new DriverError("transient", `${place}: the cloud's list is empty`);
  }

  /** Active images of a name, otherwise the image whose id it is. Only texts that can be an id are looked up as one. */
  async #images(name: string, signal: AbortSignal): Promise<readonly Image[]> {
    const { images } = this.#api;
    const byName = await images.list(signal, { query: { name, status: "active" } });
    if (byName.length > 0 || !/^[0-9a-f-]{32,36}$/i.test(name)) return byName;
    const byId = await images.get(name, signal);
    return byId === undefined ? [] : [byId];
  }
}

/** The choice, or an error of kind "configuration" with the reason that a `choose` function gave. */
function orMissing<T>(choice: T | string, place: string): T {
  if (typeof choice === "string") throw new DriverError("configuration", `${place}: ${choice}`);
  return choice;
}
