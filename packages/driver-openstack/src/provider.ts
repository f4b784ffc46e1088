import {
  Calls,
  type CreateOrder,
  type DriverContext,
  type Evidence,
  type ExternalId,
  type InventoryItem,
  type LabelConfig,
  type Machine,
  memoryEvidence,
  type Offers,
  type ProbeResult,
  type Provider,
  type Resource,
  type Resources,
  type Step,
  type StepContext,
  sameNode,
  type Tag,
  tagOf,
} from "@nodeyard/driver";
import { messageOf } from "@nodeyard/runtime";
import { limitsOf, machineType, needOf, networkNeed } from "./amounts.ts";
import { Compute, type Server } from "./api/compute.ts";
import { Images } from "./api/image.ts";
import { Networking } from "./api/network.ts";
import { BlockStorage } from "./api/volume.ts";
import { Service, type ServiceName } from "./client/index.ts";
import type { OpenstackLabelOwn, OpenstackPoolOwn, OpenstackProviderConfig } from "./config.ts";
import type { Lease } from "./credentials.ts";
import { mapError } from "./errors.ts";
import { GlanceStore } from "./images/store.ts";
import type { OpenFile } from "./images/stream.ts";
import { resourcesOf } from "./leaks/resources.ts";
import { Lookups } from "./lookups/lookups.ts";
import { createMachine, reachOf, type Workshop } from "./machines/create.ts";
import { FloatingIps } from "./machines/floating-ips.ts";
import { removeMachine } from "./machines/remove.ts";
import { ServerWatch } from "./machines/server-watch.ts";
import { idOf, Servers } from "./machines/servers.ts";

const CONSOLE_LINES = 200;

/** One provider of one cloud: everything it knows is in the cloud. */
export class OpenstackProvider implements Provider {
  readonly offers: Offers;
  readonly #config: OpenstackProviderConfig;
  readonly #lease: Lease;
  readonly #calls: Calls;
  readonly #evidence: Evidence;
  readonly #nova: Compute;
  readonly #neutron: Networking;
  readonly #cinder: BlockStorage;
  readonly #glance: Images;
  readonly #lookups: Lookups;
  readonly #watch: ServerWatch;
  readonly #shop: Workshop;

  constructor(
    config: OpenstackProviderConfig,
    context: DriverContext,
    parts: { readonly lease: Lease; readonly ipv6: boolean; readonly openFile: OpenFile },
  ) {
    const { clock, log } = context;
    const { lease, ipv6, openFile } = parts;
    const { session, cloud } = lease;
    const service = (name: ServiceName) => new Service(name, session, cloud.place, clock);
    const project = async (signal: AbortSignal) => (await session.token(signal)).projectId;
    this.#config = config;
    this.#lease = lease;
    this.#calls = new Calls(config.name, mapError);
    this.#evidence = context.evidence ?? memoryEvidence();
    this.#nova = new Compute(service("compute"));
    this.#neutron = new Networking(service("network"), project);
    this.#cinder = new BlockStorage(service("block-storage"));
    this.#glance = new Images(service("image"), project);
    const [nova, neutron, glance, calls] = [this.#nova, this.#neutron, this.#glance, this.#calls];
    this.#lookups = new Lookups(clock, { compute: nova, networking: neutron, images: glance });
    this.#watch = new ServerWatch({
      clock,
      list: (signal, since) => nova.servers(signal, since),
      onFailure: (error) =>
        log.warn({ provider: config.name, error: messageOf(error) }, "servers cannot be listed; tried again"),
    });
    this.#shop = {
      config,
      cloud,
      log,
      ipv6,
      nova,
      lookups: this.#lookups,
      servers: new Servers({
        nova,
        watch: this.#watch,
        clock,
        evidence: this.#evidence,
        closed: calls.closed,
      }),
      floatingIps: new FloatingIps(clock, neutron),
    };
    this.offers = {
      types: { of: (label) => machineType(label as LabelConfig<OpenstackLabelOwn>) },
      zones: { list: (_pool, signal) => calls.run("zones", signal, (own) => this.#lookups.zones(own)) },
      console: {
        read: (tag, own) =>
          calls.run("console", own.signal, (signal) => this.#console(tag, own.externalId, signal)),
      },
      images: new GlanceStore({
        glance,
        cloud,
        clock,
        open: openFile,
        calls,
        uploadMs: config.own.imageUploadTimeoutMs,
      }),
    };
  }

  create(order: CreateOrder, context: StepContext): AsyncGenerator<Step, Machine, void> {
    return this.#calls.steps("create", context, (own) => createMachine(this.#shop, order, own));
  }

  remove(tag: Tag, context: StepContext): AsyncGenerator<Step, void, void> {
    return this.#calls.steps("remove", context, (own) => removeMachine(this.#shop, tag, own));
  }

  find(tag: Tag, signal: AbortSignal): Promise<ExternalId | undefined> {
    return this.#calls.run("find", signal, async (own) => {
      for (const server of (await this.#watch.all(own, true)).values())
        if (sameNode(tagOf(server.metadata), tag)) return server.id;
      return undefined;
    });
  }

  list(signal: AbortSignal): Promise<readonly Resource[]> {
    return this.#calls.run("list", signal, async (own) => {
      // Servers last: what belongs to one that is made meanwhile then finds it.
      const [ports, floatingIps, volumes, images] = await Promise.all([
        this.#neutron.ports(own),
        this.#neutron.floatingIps(own),
        this.#cinder.volumes(own),
        this.#glance.own({ nodepool_provider_name: this.#config.name }, own),
      ]);
      const servers = [...(await this.#watch.whole(own)).values()];
      const amounts = await this.#amountsOf(servers, own);
      const all = { servers, ports, floatingIps, volumes, images };
      return resourcesOf(all, { evidence: this.#evidence, amounts, ports: this.#config.own.portCleanup });
    });
  }

  removeResource({ type, id, tag }: Resource, signal: AbortSignal): Promise<void> {
    return this.#calls.run(`remove leaked ${type}`, signal, async (own) => {
      const name = idOf(id);
      if (name === undefined) return;
      if (type === "port") return this.#neutron.deletePort(name, own);
      if (type === "floatingip") return this.#neutron.deleteFloatingIp(name, own);
      if (type === "volume") return this.#cinder.delete(name, own);
      if (type === "image") return this.#glance.delete(name, own);
      if (tag !== null && this.#lease.cloud.floatingIps) await this.#shop.floatingIps.removeOf(tag, own);
      await this.#nova.delete(name, own);
      await this.#shop.servers.gone(name, this.#config.name, own);
    });
  }

  quota(signal: AbortSignal): Promise<Resources> {
    return this.#calls.run("quota", signal, async (own) => {
      // Where the file says so of every pool, the cloud is not asked.
      if (this.#config.pools.every(({ ignoreProviderQuota }) => ignoreProviderQuota)) return {};
      const [compute, volume, network] = await Promise.all([
        this.#nova.limits(own),
        this.#cinder.limits(own),
        this.#neutron.quota(own),
      ]);
      return limitsOf({ compute, volume, network });
    });
  }

  need(label: LabelConfig, signal: AbortSignal): Promise<Resources> {
    return this.#calls.run(`label ${label.name}`, signal, async (own) => {
      const typed = label as LabelConfig<OpenstackLabelOwn>;
      const { cloudImage, networks } = typed.own;
      if (cloudImage !== null) await this.#lookups.cloudImage(cloudImage, own);
      const names = await this.#lookups.networkNames(networks, own);
      const reach = this.#mayFloat(label) ? await reachOf(this.#shop, own) : null;
      return needOf(await this.#lookups.flavor(typed, own), typed, networkNeed(names, reach));
    });
  }

  inventory(): readonly InventoryItem[] {
    return [];
  }

  async probe(): Promise<ProbeResult> {
    return { alive: false, why: "the openstack driver has no inventory" };
  }

  async close(): Promise<void> {
    this.#calls.close();
    this.#watch.close();
    this.#lookups.close();
    this.#shop.floatingIps.close();
    await this.#lease.release();
  }

  #mayFloat(label: LabelConfig): boolean {
    const pool = this.#config.pools.find(({ labels }) => labels.get(label.name) === label);
    return (
      this.#lease.cloud.floatingIps && (pool?.own as OpenstackPoolOwn | undefined)?.autoFloatingIp === true
    );
  }

  async #console(tag: Tag, externalId: ExternalId | null, signal: AbortSignal): Promise<string | null> {
    const server = await this.#shop.servers.existing(tag, externalId, signal);
    return server === undefined ? null : this.#nova.console(server.id, CONSOLE_LINES, signal);
  }

  /** Inline since microversion 2.47; before, and for flavors that are gone, as far as they are known. */
  async #amountsOf(servers: readonly Server[], signal: AbortSignal): Promise<(server: Server) => Resources> {
    const sizes = new Map<string, Resources>();
    for (const { flavor } of servers) {
      if (flavor.vcpus !== undefined || flavor.id === undefined || sizes.has(flavor.id)) continue;
      const known = await this.#lookups.flavorById(flavor.id, signal);
      if (known !== undefined) sizes.set(flavor.id, { cores: known.vcpus, ram: known.ram });
    }
    return ({ flavor }) => ({
      instances: 1,
      ...(sizes.get(flavor.id ?? "") ?? { cores: flavor.vcpus ?? 0, ram: flavor.ram ?? 0 }),
    });
  }
}
