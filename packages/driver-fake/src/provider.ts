import {
  Calls,
  type CreateOrder,
  DriverError,
  type ExternalId,
  type InventoryItem,
  type LabelConfig,
  type Machine,
  type Offers,
  type ProbeResult,
  type Provider,
  type Resource,
  type Resources,
  type Step,
  type StepContext,
  type Tag,
} from "@nodeyard/driver";
import { type Clock, sleep } from "@nodeyard/runtime";
import { mapError } from "./cloud/errors.ts";
import type { FakeCloud } from "./cloud/fake-cloud.ts";
import { type FakeServer, tagKey } from "./cloud/servers.ts";
import type { FakeLabelOwn, FakePoolOwn, FakeProviderConfig } from "./config.ts";
import type { Shelf } from "./images/shelf.ts";
import { FakeImageStore } from "./images/store.ts";
import { consoleOf, describeMachine } from "./machine.ts";

const CALL_MS = 60_000;
const POLL_MS = 100;
/** Of images, where the configuration says nothing. */
const FORMATS = ["qcow2", "raw"];

/** One fake provider: everything it knows is in the cloud. */
export class FakeProvider implements Provider {
  readonly offers: Offers;
  readonly #cloud: FakeCloud;
  readonly #config: FakeProviderConfig;
  readonly #clock: Clock;
  readonly #calls: Calls;
  readonly #shelf: Shelf;
  readonly #images: FakeImageStore;

  constructor(cloud: FakeCloud, config: FakeProviderConfig, clock: Clock, shelf: Shelf) {
    this.#cloud = cloud;
    this.#config = config;
    this.#clock = clock;
    this.#shelf = shelf;
    this.#calls = new Calls(config.name, mapError);
    const formats = config.own.images?.formats ?? FORMATS;
    this.#images = new FakeImageStore(shelf, formats, clock, this.#calls);
    this.offers = {
      zones: {
        list: (_pool, signal) =>
          this.#calls.run("zones", signal, async () => [...cloud.knobs.availabilityZones].sort()),
      },
      console: {
        read: async (tag, context) => {
          const server = await this.#existing(tag, context);
          return server === undefined ? null : consoleOf(server, cloud.status(server));
        },
      },
      images: this.#images,
    };
  }

  async *create(order: CreateOrder, context: StepContext): AsyncGenerator<Step, Machine, void> {
    yield { step: "find", deadlineMs: CALL_MS };
    let server = await this.#existing(order.tag, context);
    if (server !== undefined && this.#cloud.status(server) === "ERROR") {
      yield { step: "discard", deadlineMs: CALL_MS };
      await this.#delete(server.id, context.signal);
      server = undefined;
    }
    if (server === undefined) {
      yield { step: "server", deadlineMs: CALL_MS };
      server = await this.#calls.run("create", context.signal, (signal) =>
        this.#cloud.create(newServer(order), signal),
      );
    }
    const { id } = server;
    const saved = context.externalId === id ? {} : { save: { externalId: id } };
    yield { step: "wait", deadlineMs: this.#config.launchTimeoutMs, ...saved };
    return describeMachine(await this.#active(id, context.signal), order, this.#config.own.cloud);
  }

  async *remove(tag: Tag, context: StepContext): AsyncGenerator<Step, void, void> {
    yield { step: "find", deadlineMs: CALL_MS };
    let server = await this.#existing(tag, context);
    const lag = this.#cloud.knobs.consistencyDelayMs;
    if (server === undefined && lag > 0) {
      // What was made a moment ago may not be listed yet; after this long it is.
      yield { step: "settle", deadlineMs: lag + CALL_MS };
      await sleep(this.#clock, lag, context.signal);
      server = await this.#existing(tag, context);
    }
    if (server === undefined) return;
    yield { step: "delete", deadlineMs: CALL_MS };
    await this.#delete(server.id, context.signal);
  }

  async find(tag: Tag, signal: AbortSignal): Promise<ExternalId | undefined> {
    const server = await this.#calls.run("find", signal, (own) => this.#cloud.findByTag(tag, own));
    return server?.id;
  }

  async list(signal: AbortSignal): Promise<readonly Resource[]> {
    const { servers, images: inMemory } = await this.#calls.run("list", signal, (own) =>
      this.#cloud.listAll(own),
    );
    const machines = servers
      .filter((server) => this.#cloud.status(server) !== "DELETED")
      .map(({ id, tag, resources }) => ({ type: "instance", id, tag, resources }));
    const images = this.#shelf.inCloud
      ? inMemory
      : await this.#calls.run("list", signal, (own) => this.#shelf.list(own));
    const rest = images.map(({ id, tag: imageTag }) => {
      return { type: "image", id, tag: null, imageTag, resources: {} };
    });
    return [...machines, ...rest];
  }

  async removeResource(resource: Resource, signal: AbortSignal): Promise<void> {
    const { id, type } = resource;
    if (typeof id !== "string") return;
    if (type === "image") await this.#images.delete(id, signal);
    else await this.#delete(id, signal);
  }

  async quota(signal: AbortSignal): Promise<Resources> {
    return this.#calls.run("quota", signal, async () => this.#cloud.knobs.quota as Resources);
  }

  async need(label: LabelConfig, signal: AbortSignal): Promise<Resources> {
    return this.#calls.run("need", signal, async () => needOf(label as LabelConfig<FakeLabelOwn>));
  }

  inventory(): readonly InventoryItem[] {
    return [];
  }

  async probe(): Promise<ProbeResult> {
    return { alive: false, why: "the fake driver has no inventory" };
  }

  async close(): Promise<void> {
    this.#calls.close();
  }

  /** The machine of the tag: by the stored id where that is really its own, else by the tag. */
  async #existing(tag: Tag, context: StepContext): Promise<FakeServer | undefined> {
    const id = idOf(context.externalId);
    const byId =
      id === undefined
        ? undefined
        : await this.#calls.run("get", context.signal, (signal) => this.#cloud.get(id, signal));
    const ours = byId?.tag && tagKey(byId.tag) === tagKey(tag) && this.#cloud.status(byId) !== "DELETED";
    if (ours) return byId;
    return this.#calls.run("find", context.signal, (signal) => this.#cloud.findByTag(tag, signal));
  }

  async #active(id: string, signal: AbortSignal): Promise<FakeServer> {
    for (;;) {
      const server = await this.#calls.run("get", signal, (own) => this.#cloud.get(id, own));
      if (server === undefined) throw new DriverError("not-found", `server ${id} is gone`);
      const status = this.#cloud.status(server);
      if (status === "ACTIVE") return server;
      if (status !== "BUILD") throw new DriverError("transient", `server ${id} went to ${status}`);
      await this.#calls.run("wait", signal, (own) => sleep(this.#clock, POLL_MS, own));
    }
  }

  /** Gone already is as good. */
  async #delete(id: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#calls.run("delete", signal, (own) => this.#cloud.delete(id, own));
    } catch (error) {
      if (!(error instanceof DriverError && error.kind === "not-found")) throw error;
    }
  }
}

function newServer(order: CreateOrder) {
  const label = order.label as LabelConfig<FakeLabelOwn>;
  return {
    name: order.hostname,
    tag: order.tag,
    az: order.az,
    resources: needOf(label),
    networks: (order.pool.own as FakePoolOwn).networks,
    imageProperties: label.own.imageProperties,
  };
}

function needOf(label: LabelConfig<FakeLabelOwn>): Resources {
  return { instances: 1, cores: label.own.cores, ram: label.own.ram };
}

/** Today's ids are strings; an object with an `id` is the shape of an older version. */
function idOf(externalId: ExternalId | null): string | undefined {
  if (externalId === null || typeof externalId === "string") return externalId ?? undefined;
  return typeof externalId.id === "string" ? externalId.id : undefined;
}
