import {
  type Cloud,
  type CloudHost,
  type CloudPart,
  cloudDriver,
  type Driver,
  type DriverContext,
  DriverError,
  defined,
  failureBy,
  type LabelConfig,
  type MachineTable,
  machineName,
  type OpenFile,
  type Rest,
  tagOf,
  unlessRefused,
} from "@nodeyard/driver";
import { addressesOf } from "./addresses.ts";
import { type IbmLabelOwn, type IbmOrder, type IbmProviderConfig, ibmvpcConfig } from "./config.ts";
import { ERRORS, mapError, NOT_YET } from "./errors.ts";
import { Ibm } from "./ibm.ts";
import { imagesOf } from "./images.ts";
import { lookupsOf, type Site } from "./lookups.ts";
import { type Instance, Names, type Volume } from "./names.ts";

/** Lists show a new machine after this at the latest, milliseconds. */
const LISTED_MS = 30_000;
/** A stopped machine keeps its disk and addresses. */
const RESTS: Readonly<Record<string, Rest>> = { stopping: "suspending", stopped: "suspended" };
/** States in which a machine will not run again by itself. A stopped one is paid for. */
const ENDED = /^(deleting|failed|stopped|stopping)$/;
/** A spot machine that IBM takes back is deleted, as a stopped one would cost its disk. */
const SPOT = { availability: { class: "spot" }, availability_policy: { preemption: "delete" } };

/** Makes the driver for a host. Providers with one credential and region share connections and the rate limit. */
export function createIbmDriver({ around, connect, openFile }: CloudHost): Driver<IbmProviderConfig> {
  const parts = { name: "ibmvpc", config: ibmvpcConfig, mapError };
  return cloudDriver<IbmProviderConfig, Ibm, Instance>(parts, (config, context) => {
    const { region, credentialsFile: file, intervalMs } = config.own;
    return {
      key: JSON.stringify([region, file]),
      intervalMs,
      account: () => new Ibm({ ...context, ...connect(), around, file, region }),
      cloud: (ibm) => ibmCloud(config, context, ibm, openFile),
    };
  });
}

/** A provider of a VPC. */
function ibmCloud(
  config: IbmProviderConfig,
  { clock, installation, purpose = "serve" }: DriverContext,
  ibm: Ibm,
  openFile: OpenFile,
): Cloud<Instance, undefined, MachineTable<Instance>> {
  const { own, pools, name } = config;
  const names = new Names(installation, name, own.systems.keys());
  const lookups = lookupsOf({ ibm, clock, config });
  const site = { config, ibm, clock, names, lookups };
  const addresses = addressesOf(site);
  const images = imagesOf(site, openFile);
  const act = (type: "stop" | "start") => (id: string, signal: AbortSignal) =>
    ibm.call("POST", `/instances/${encodeURIComponent(id)}/actions`, signal, { body: { type } });
  return {
    /** A record of Nodepool's has the name of its machine. */
    machines: {
      watch: { settledMs: LISTED_MS, list: (signal) => ibm.list<Instance>("instances", signal) },
      idOf: ({ id }) => id,
      idIn: (id) => (typeof id === "string" && /^[\w.-]+$/.test(id) ? id : undefined),
      metadataOf: (instance) => names.metadataOf(instance),
      isUp: ({ status }) => status === "running",
      hasEnded: ({ status }) => ENDED.test(status),
      failure: ({ name, status, status_reasons: [reason = {}] = [] }, place) =>
        failureBy(ERRORS, `${place}: instance ${name} went to ${status}`, reason),
      isLeaving: ({ status }) => status === "deleting",
      read: (id, signal) =>
        /^np\d{10}$/.test(id)
          ? ibm.named<Instance>("instances", id, signal)
          : ibm.one<Instance>("GET", "instances", id, signal),
      // One that is being made can be deleted later only; the wait for its end asks again.
      delete: (id, signal) => unlessRefused(ibm.one<void>("DELETE", "instances", id, signal), NOT_YET),
    },
    suspends: { suspend: act("stop"), resume: act("start"), restOf: ({ status }) => RESTS[status] },
    makeMs: config.launchTimeoutMs,
    before: (order: IbmOrder, found, _, { signal }) => addresses.claimed(order, found !== undefined, signal),
    async make(order: IbmOrder, _, signal) {
      const body = await bodyOf(site, order, signal);
      return async (until) => {
        const made = await ibm.make<Instance>("instances", body, until);
        if (made !== undefined) return made.id;
        // The volume of an attempt before has the name, too, while it is being deleted.
        const volume = await ibm.named<Volume>("volumes", body.name, until);
        if (volume?.volume_attachments?.length === 0)
          throw new DriverError("transient", `volume ${body.name} of an earlier machine is still there`);
        // The node's own machine, by an earlier call whose answer was lost.
        return undefined;
      };
    },
    expose: (order: IbmOrder, machine, signal) => addresses.attached(order, machine, signal),
    describe: (_, { name: hostname, zone, primary_network_interface: inside }, publicIpv4) => ({
      ...{ hostname, cloud: "IBM", region: config.own.region, az: zone.name, publicIpv4 },
      privateIpv4: inside?.primary_ip?.address ?? null,
    }),
    first: (tag, _, context) => addresses.freed(tag, context),
    ...{ limiter: ibm.limiter, ...defined({ images: images.store }) },
    place: () => ({ ...(ibm.account && { account: ibm.account }), region: own.region }),
    parts: { floatingip: addresses.part, volume: volumesOf(ibm, names), ...images.parts },
    partsOf: ({ boot_volume_attachment: boot }) => [boot?.volume?.id],
    amounts: ({ vcpu, memory }) => ({
      ...{ instances: 1, cores: vcpu?.count ?? 0, ram: (memory ?? 0) * 1_024 },
    }),
    // IBM tells no quota, so that the file does.
    quota: async () => own.quota,
    need: ({ own: label }: LabelConfig<IbmLabelOwn>, signal) => lookups.need(label, signal),
    zones: async (pool, signal) => [...(await lookups.network(pool.own, signal)).byZone.keys()].sort(),
    /** Credential, VPC and subnets; to serve, also the resource groups. */
    async check(signal) {
      await Promise.all(pools.map((pool) => lookups.network(pool.own, signal)));
      if (purpose === "serve")
        await Promise.all(pools.map((pool) => lookups.group(names.group(pool.name), signal)));
    },
    close: () => lookups.known.close(),
  };
}

async function bodyOf({ lookups, names }: Site, order: IbmOrder, signal: AbortSignal) {
  const { own } = order.label;
  const [{ vpc, zone, subnet }, keys, group, image] = await Promise.all([
    lookups.place(order, signal),
    lookups.keys(own.keys, signal),
    lookups.group(names.group(order.pool.name), signal),
    lookups.image(order, signal),
  ]);
  const name = machineName(order.tag);
  return {
    ...{ name, keys, image, resource_group: group, vpc: { id: vpc }, zone: { name: zone } },
    profile: { name: own.profile },
    primary_network_interface: { name: "eth0", subnet: { id: subnet } },
    boot_volume_attachment: {
      delete_volume_on_instance_delete: true,
      volume: { name, profile: { name: "general-purpose" } },
    },
    ...(own.userData !== null && { user_data: own.userData }),
    ...(own.spot && SPOT),
  };
}

/** Boot volumes, which go with their machine unless somebody changed that. */
function volumesOf(ibm: Ibm, names: Names): CloudPart {
  return {
    list: async (signal) =>
      (await ibm.list<Volume>("volumes", signal)).map((volume) => {
        const on = (volume.volume_attachments ?? []).map(({ instance }) => instance?.id);
        return { id: volume.id, on, tag: on.length === 0 ? tagOf(names.metadataOf(volume)) : null };
      }),
    delete: (id, signal) => ibm.one<void>("DELETE", "volumes", id, signal),
  };
}
