import { exceeded, type ImageTag, type Resources, type Tag } from "@nodeyard/driver";
import { type Clock, type Random, seededRandom } from "@nodeyard/runtime";
import { type FakeKnobs, type FaultCounts, INSTANT, type Latency } from "../knobs.ts";
import { CloudError } from "./errors.ts";
import { type FakeImage, type ImageEvent, Images } from "./images.ts";
import { decodeEvent, type Journal } from "./journal.ts";
import { type CloudEvent, type FakeServer, type Fate, Servers, type Status } from "./servers.ts";

/** The handles of a fake cloud. Processes that share a journal see the same cloud. */
export interface CloudOptions {
  readonly clock: Clock;
  /** Makes machine ids. It must differ between processes that share a journal. */
  readonly random: Random;
  readonly knobs?: FakeKnobs;
  readonly journal?: Journal;
}

/** A request for a machine. `az` null: the cloud chooses a zone with room. */
export interface NewServer {
  readonly name: string;
  readonly tag: Tag | null;
  readonly az: string | null;
  readonly type?: string | undefined;
  readonly resources: Resources;
  readonly networks: readonly string[];
  readonly imageProperties: Readonly<Record<string, string>>;
}

export interface NewImage {
  readonly name: string;
  readonly tag: ImageTag | null;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * A cloud in memory. As in real clouds, a request that was sent takes effect whether or not its caller still waits. Randomness
 * comes from the knobs' seed, time from the clock. With the instant knobs no timer is set and a call takes one microtask.
 */
export class FakeCloud {
  /** Remaining faults; tests may set them at any time. */
  readonly faults: Mutable<FaultCounts>;
  readonly #clock: Clock;
  readonly #random: Random;
  /** Draws latencies, faults and zones, from the seed alone: the same calls in the same order fail in the same way. */
  readonly #chance: Random;
  readonly #journal: Journal | undefined;
  /** The state, which changes only by events (`#apply`): its own, and with a journal those of other processes too. */
  readonly #servers = new Servers();
  readonly #images = new Images();
  #knobs: FakeKnobs;
  /** Number of events that this process recorded. Every 1,000th drops what no list can show. */
  #changes = 0;

  constructor(options: CloudOptions) {
    this.#clock = options.clock;
    this.#random = options.random;
    this.#knobs = options.knobs ?? INSTANT;
    this.#chance = seededRandom(this.#knobs.seed);
    this.#journal = options.journal;
    this.faults = { ...this.#knobs.faults };
  }

  get knobs(): FakeKnobs {
    return this.#knobs;
  }

  /** Changes the knobs for existing machines too, as after a change of the configuration. The fault counts restart. */
  adjust(knobs: FakeKnobs): void {
    this.#knobs = knobs;
    Object.assign(this.faults, knobs.faults);
  }

  /** Creates a machine, or returns the tag's: the tag serves as idempotency token, unless the knobs say that the cloud supports none. */
  create(order: NewServer, signal: AbortSignal): Promise<FakeServer> {
    return this.#call("create", signal, () => this.#create(order));
  }

  /** Rejects with 404 for a machine that does not exist. */
  delete(id: string, signal: AbortSignal): Promise<void> {
    return this.#call("delete", signal, () => this.#delete(id));
  }

  /** Puts a machine aside. Rejects with 404 for one that does not exist, with 409 for one that is not up. */
  suspend(id: string, signal: AbortSignal): Promise<void> {
    return this.#call("create", signal, () => this.#change(id, "ACTIVE", { op: "suspend", id }));
  }

  /** Lets it go on, in a tenth of the time that its boot took. */
  wake(id: string, signal: AbortSignal): Promise<void> {
    return this.#call("create", signal, () => {
      const upAt = this.#clock.now() + (this.#servers.get(id)?.bootMs ?? 0) / 10;
      this.#change(id, "SUSPENDED", { op: "wake", id, upAt });
    });
  }

  #change(id: string, from: Status, event: CloudEvent): void {
    const server = this.#servers.get(id);
    if (server === undefined) throw new CloudError(404, `there is no server ${id}`);
    const status = this.status(server);
    if (status !== from) throw new CloudError(409, `server ${id} is ${status}`);
    this.#record(event);
  }

  /** A machine by its id, without lag; undefined when there is none. */
  get(id: string, signal: AbortSignal): Promise<FakeServer | undefined> {
    return this.#call("find", signal, () => this.#servers.get(id));
  }

  /** The machine with the tag, once listings show it. */
  findByTag(tag: Tag, signal: AbortSignal): Promise<FakeServer | undefined> {
    return this.#call("find", signal, () => {
      const server = this.#servers.ofTag(tag);
      const visible = server !== undefined && this.#clock.now() >= server.createdAt + server.lagMs;
      return visible ? server : undefined;
    });
  }

  /** Machines and images in one call, with the lag of listings. Machines with status DELETED are included. */
  listAll(
    signal: AbortSignal,
  ): Promise<{ readonly servers: readonly FakeServer[]; readonly images: readonly FakeImage[] }> {
    return this.#call("list", signal, () => {
      const now = this.#clock.now();
      this.#servers.forget(now);
      return { servers: this.#servers.listed(now), images: this.#images.listed(now) };
    });
  }

  /** Creates an image without data, or returns the one that the tag already has. */
  createImage(order: NewImage, signal: AbortSignal): Promise<FakeImage> {
    return this.#call("create", signal, () => {
      const existing = order.tag === null ? undefined : this.#images.ofTag(order.tag);
      if (existing !== undefined) return existing;
      const createdAt = this.#clock.now();
      const id = this.#random.uuid();
      const image = { ...order, id, size: 0, sha256: "", whole: false, createdAt, lagMs: this.#lag() };
      this.#record({ op: "image", at: createdAt, image });
      // Another process may have written to the journal first; then its image is the tag's image.
      return order.tag === null ? image : (this.#images.ofTag(order.tag) ?? image);
    });
  }

  /** Uploads the complete data of an image. Rejects with 404 for an image that does not exist. */
  fillImage(
    id: string,
    data: { readonly size: number; readonly sha256: string },
    signal: AbortSignal,
  ): Promise<void> {
    return this.#call("create", signal, () => {
      this.#needImage(id);
      this.#record({ op: "image-data", id, ...data });
    });
  }

  /** Rejects with 404 for an image that does not exist. */
  deleteImage(id: string, signal: AbortSignal): Promise<void> {
    return this.#call("delete", signal, () => {
      this.#needImage(id);
      this.#record({ op: "image-delete", at: this.#clock.now(), id });
    });
  }

  getImage(id: string, signal: AbortSignal): Promise<FakeImage | undefined> {
    return this.#call("find", signal, () => this.#images.get(id));
  }

  /** The state of a machine now. It follows from its record and the time, so no timer is needed while it boots. */
  status(server: FakeServer): Status {
    return this.#servers.status(server, this.#clock.now());
  }

  /** Removes the tag of a machine, as a person may remove metadata: for tests. */
  loseTag(id: string): void {
    this.#catchUp();
    this.#servers.loseTag(id);
  }

  /** All live machines, without lag, for checks by tests. */
  inspect(): readonly FakeServer[] {
    this.#catchUp();
    return this.#servers.live();
  }

  /** All images, without lag, for checks by tests. */
  inspectImages(): readonly FakeImage[] {
    this.#catchUp();
    return this.#images.live();
  }

  #needImage(id: string): void {
    if (this.#images.get(id) === undefined) throw new CloudError(404, `there is no image ${id}`);
  }

  #create(order: NewServer): FakeServer {
    const { repeatsCreates } = this.#knobs;
    const existing = order.tag === null || repeatsCreates ? undefined : this.#servers.ofTag(order.tag);
    if (existing !== undefined) return existing;
    if (order.imageProperties.SHOULD_FAIL?.toLowerCase() === "true") {
      throw new CloudError(500, "the image says SHOULD_FAIL");
    }
    if (this.#due("createFails")) throw new CloudError(500, "scripted: create fails");
    const az = this.#place(order);
    const now = this.#clock.now();
    const server: FakeServer = {
      id: this.#random.uuid(),
      name: order.name,
      tag: order.tag,
      az,
      type: order.type,
      resources: order.resources,
      networks: order.networks,
      createdAt: now,
      bootMs: this.#draw(this.#knobs.latency.boot),
      fate: this.#fate(),
      lagMs: this.#lag(),
    };
    this.#record({ op: "create", at: now, server, ...(repeatsCreates && { again: true }) });
    // After the record: the machine exists although the caller gets an error.
    if (this.#due("createFailsWithExternalId"))
      throw new CloudError(500, `scripted: no reply for ${server.id}`);
    // Another process may have written to the journal first; then its machine is the tag's machine.
    return order.tag === null || repeatsCreates ? server : (this.#servers.ofTag(order.tag) ?? server);
  }

  #delete(id: string): void {
    if (this.#servers.get(id) === undefined) throw new CloudError(404, `there is no server ${id}`);
    if (this.#due("deleteFails")) throw new CloudError(500, "scripted: delete fails");
    const keepsRecord = this.#due("deleteLeavesRecord");
    this.#record({ op: "delete", at: this.#clock.now(), id, keepsRecord });
  }

  /** Chooses the zone of a new machine. Throws when the quota, the zone or its capacity does not allow the machine. */
  #place(order: NewServer): string {
    const { quota, availabilityZones, capacity } = this.#knobs;
    const over = exceeded(quota as Resources, this.#servers.used, order.resources);
    if (over !== undefined) throw new CloudError(403, `Quota exceeded for ${over}`);
    if (order.az !== null && !availabilityZones.includes(order.az)) {
      throw new CloudError(400, `there is no availability zone ${JSON.stringify(order.az)}`);
    }
    const zones = order.az === null ? availabilityZones : [order.az];
    const room = (zone: string) => (capacity[zone] ?? Number.POSITIVE_INFINITY) > this.#servers.inZone(zone);
    const free = zones.filter(room);
    if (free.length === 0) throw new CloudError(503, `no room in ${zones.join(", ")}`);
    const { type } = order;
    const most = type === undefined ? undefined : capacity[type];
    if (most !== undefined && this.#servers.live().filter((server) => server.type === type).length >= most)
      throw new CloudError(503, `no room for ${type}`);
    return free[Math.floor(this.#chance.float() * free.length)]!;
  }

  #fate(): Fate {
    if (this.#due("neverActive")) return "never";
    return this.#due("endsInError") ? "error" : "active";
  }

  /** Whether the next call of this kind fails; counts the fault down. */
  #due(fault: keyof FaultCounts): boolean {
    if (this.faults[fault] <= 0) return false;
    this.faults[fault]--;
    return true;
  }

  #lag(): number {
    const most = this.#knobs.consistencyDelayMs;
    return most === 0 ? 0 : Math.floor(this.#chance.float() * most);
  }

  #draw({ minMs, maxMs }: Latency): number {
    return maxMs <= 0 ? 0 : minMs + Math.floor(this.#chance.float() * (maxMs - minMs + 1));
  }

  /** Runs a request. It takes effect after its latency, even when its caller has gone. */
  async #call<T>(name: keyof FakeKnobs["errors"], signal: AbortSignal, effect: () => T): Promise<T> {
    signal.throwIfAborted();
    const { latency, errors } = this.#knobs;
    const ms = this.#draw(name === "create" || name === "delete" ? latency[name] : latency.read);
    const fails = errors[name] > 0 && this.#chance.float() < errors[name];
    // Half of the failures are lost replies: the request has taken effect.
    const lost = fails && this.#chance.float() < 0.5;
    const run = () => {
      if (this.#due("refused")) throw new CloudError(401, `scripted: ${name} is refused`);
      if (fails && !lost) throw new CloudError(500, `scripted: ${name} failed`);
      this.#catchUp();
      const value = effect();
      if (lost) throw new CloudError(500, `scripted: the reply of ${name} was lost`);
      return value;
    };
    return ms === 0 ? run() : this.#later(ms, signal, run);
  }

  /** Runs a request after its latency. The caller's abort rejects at once, and the request takes effect all the same. */
  #later<T>(ms: number, signal: AbortSignal, run: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const onAbort = () => reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#clock.setTimer(ms, () => {
        signal.removeEventListener("abort", onAbort);
        try {
          resolve(run());
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  /** Makes a change. With a journal it is written first and then read back, behind what other processes wrote before it. */
  #record(event: CloudEvent | ImageEvent): void {
    if (this.#journal === undefined) {
      this.#apply(event);
    } else {
      this.#journal.append(JSON.stringify(event));
      this.#catchUp();
    }
    if (++this.#changes % 1_000 === 0) this.#servers.forget(this.#clock.now());
  }

  #catchUp(): void {
    for (const line of this.#journal?.unread() ?? []) {
      const event = decodeEvent(line);
      if (event !== undefined) this.#apply(event);
    }
  }

  #apply(event: CloudEvent | ImageEvent): void {
    if (!event.op.startsWith("image")) this.#servers.apply(event as CloudEvent);
    else this.#images.apply(event as ImageEvent);
  }
}
