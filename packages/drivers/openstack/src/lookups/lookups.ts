import { DriverError, type LabelConfig, SharedValue, SharedValues } from "@nodeyard/driver";
import type { Clock } from "@nodeyard/runtime";
import type { Compute, Flavor } from "../api/compute.ts";
import type { Image, Images } from "../api/image.ts";
import type { Network, Networking } from "../api/network.ts";
import type { OpenstackLabelOwn } from "../config.ts";
import { chooseFlavor, chooseImage, chooseNetwork } from "./choose.ts";

/**
 * How long facts of the cloud that seldom change are kept, milliseconds. After a refused create they may be outdated: call
 * `forget`. Until STALE_MS an older value is returned while a new one is loaded.
 */
const FRESH_MS = 60_000;
const STALE_MS = 240_000;

/**
 * Ids of the cloud for names of the configuration. Lists are cached and shared by concurrent callers. Methods reject with kind
 * "configuration" for a name that the cloud does not have, and with the client's errors.
 */
export class Lookups {
  readonly #clock: Clock;
  readonly #images: Images;
  readonly #flavors: SharedValue<readonly Flavor[]>;
  readonly #zones: SharedValue<readonly string[]>;
  readonly #networks: SharedValue<readonly Network[]>;
  readonly #imagesByName: SharedValues<readonly Image[]>;

  constructor(clock: Clock, apis: { compute: Compute; networking: Networking; images: Images }) {
    this.#clock = clock;
    this.#images = apis.images;
    this.#imagesByName = new SharedValues(clock);
    this.#flavors = this.#shared("list of flavors", (signal) => apis.compute.flavors(signal));
    this.#zones = this.#shared("list of zones", (signal) => apis.compute.zones(signal));
    this.#networks = this.#shared("list of networks", (signal) => apis.networking.networks(signal));
  }

  /** The flavor of a label. Rejects with `configuration` when none fits. */
  async flavor(label: LabelConfig<OpenstackLabelOwn>, signal: AbortSignal): Promise<Flavor> {
    return this.#choice(this.#flavors, (all) => chooseFlavor(all, label.own), `label ${label.name}`, signal);
  }

  /** A flavor by its id, for servers whose listing does not contain it. */
  async flavorById(id: string, signal: AbortSignal): Promise<Flavor | undefined> {
    return (await this.#flavors.get(signal)).find((flavor) => flavor.id === id);
  }

  /** Zones that accept servers, sorted. */
  zones(signal: AbortSignal): Promise<readonly string[]> {
    return this.#zones.get(signal);
  }

  networks(signal: AbortSignal): Promise<readonly Network[]> {
    return this.#networks.get(signal);
  }

  /** Ids of networks by name or id. */
  async networkIds(names: readonly string[], signal: AbortSignal): Promise<readonly string[]> {
    return (await this.#chosen(names, signal)).map(({ id }) => id);
  }

  /** Names of networks by name or id. */
  async networkNames(names: readonly string[], signal: AbortSignal): Promise<readonly string[]> {
    return (await this.#chosen(names, signal)).map(({ name }) => name);
  }

  /** The image id of a label's cloud image. Only names are looked up. */
  async cloudImage(
    image: NonNullable<OpenstackLabelOwn["cloudImage"]>,
    signal: AbortSignal,
  ): Promise<string> {
    if ("id" in image) return image.id;
    const { name } = image;
    const how = { load: (own: AbortSignal) => this.#find(name, own), freshMs: FRESH_MS, staleMs: STALE_MS };
    const found = await this.#imagesByName.get(`images called ${name}`, how, signal);
    return orMissing(chooseImage(found, name), `cloud image ${name}`).id;
  }

  /** Discards what is known, because it may be outdated. */
  forget(): void {
    for (const shared of this.#all) shared.invalidate();
  }

  /** Ends loads in progress; their callers get an error. */
  close(): void {
    for (const shared of this.#all) shared.close();
  }

  get #all() {
    return [this.#flavors, this.#zones, this.#networks, this.#imagesByName];
  }

  /** The networks in the order of `names`, which is that of the server's interfaces. */
  async #chosen(names: readonly string[], signal: AbortSignal): Promise<readonly Network[]> {
    if (names.length === 0) return [];
    const choose = (name: string) =>
      this.#choice(this.#networks, (all) => chooseNetwork(all, name), `network ${name}`, signal);
    const chosen: Network[] = [];
    for (const name of names) chosen.push(await choose(name));
    return chosen;
  }

  /**
   * What `choose` takes of a list. An empty list is not believed, since a cloud without flavors or networks serves nobody: it is read once
   * more, and if it is empty again the fault is the cloud's. Rejects with `configuration` for what another list does not have.
   */
  async #choice<T, C>(
    list: SharedValue<readonly T[]>,
    choose: (all: readonly T[]) => C | string,
    place: string,
    signal: AbortSignal,
  ): Promise<C> {
    let all = await list.get(signal);
    if (all.length === 0) {
      list.invalidate();
      all = await list.get(signal);
    }
    if (all.length > 0) return orMissing(choose(all), place);
    list.invalidate();
    throw new DriverError("transient", `${place}: the cloud's list is empty`);
  }

  /** Active images of a name, otherwise the image whose id it is. Only texts that can be an id are looked up as one. */
  async #find(name: string, signal: AbortSignal): Promise<readonly Image[]> {
    const byName = await this.#images.list({ name, status: "active" }, signal);
    if (byName.length > 0 || !/^[0-9a-f-]{32,36}$/i.test(name)) return byName;
    const byId = await this.#images.get(name, signal);
    return byId === undefined ? [] : [byId];
  }

  #shared<T>(what: string, load: (signal: AbortSignal) => Promise<T>): SharedValue<T> {
    return new SharedValue({ clock: this.#clock, load, what, freshMs: FRESH_MS, staleMs: STALE_MS });
  }
}

/** The choice, or an error of kind "configuration" with the reason that a `choose` function gave. */
function orMissing<T>(choice: T | string, place: string): T {
  if (typeof choice === "string") throw new DriverError("configuration", `${place}: ${choice}`);
  return choice;
}
