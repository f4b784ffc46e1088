import {
  DriverError,
  type MachineTable,
  type MachineWork,
  machineName,
  noImage,
  type Resources,
  wasRefused,
} from "@nodeyard/driver";
import type { Addresses } from "./addresses.ts";
import type { IbmOrder } from "./config.ts";
import { failureOf, IN_USE, NOT_YET, ofOrder } from "./errors.ts";
import type { Site } from "./lookups.ts";
import type { Instance, Volume } from "./names.ts";

/** Lists show a new machine after this at the latest, milliseconds. */
const LISTED_MS = 30_000;
/** States in which a machine will not run again by itself. A stopped one is paid for. */
const ENDED = /^(deleting|failed|stopped|stopping)$/;
/** A spot machine that IBM takes back is deleted, as a stopped one would cost its disk. */
const SPOT = { availability: { class: "spot" }, availability_policy: { preemption: "delete" } };

/** Launch and removal. */
export function machineWork(
  site: Site,
  addresses: Addresses,
): MachineWork<Instance, undefined, MachineTable<Instance>> {
  const { ibm, config } = site;
  return {
    machines: machinesOf(site),
    makeMs: config.launchTimeoutMs,
    before: (order: IbmOrder, found, _, { signal }) => addresses.claimed(order, found !== undefined, signal),
    async make(order: IbmOrder, _, signal) {
      const body = await bodyOf(site, order, signal);
      return async (until) => {
        try {
          return (await ibm.call<Instance>("POST", "/instances", until, { body })).id;
        } catch (error) {
          if (!wasRefused(error, IN_USE)) throw ofOrder(error);
          // The volume of an attempt before has the name, too, while it is being deleted.
          const volume = await ibm.named<Volume>("volumes", body.name, until);
          if (volume?.volume_attachments?.length === 0)
            throw new DriverError("transient", `volume ${body.name} of an earlier machine is still there`);
          // The node's own machine, by an earlier call whose answer was lost.
          return undefined;
        }
      };
    },
    expose: (order: IbmOrder, machine, signal) => addresses.attached(order, machine, signal),
    describe: (_, { name: hostname, zone, primary_network_interface: inside }, publicIpv4) => ({
      ...{ hostname, cloud: "IBM", region: config.own.region, az: zone.name, publicIpv4 },
      privateIpv4: inside?.primary_ip?.address ?? null,
    }),
    first: (tag, _, context) => addresses.freed(tag, context),
  };
}

/** What a machine uses: as a profile says it, and each machine again. */
export function amountsOf({ vcpu, memory }: Instance): Resources {
  return { instances: 1, cores: vcpu?.count ?? 0, ram: (memory ?? 0) * 1_024 };
}

/** The machines of nodes. A record of Nodepool's has the name of its machine. */
function machinesOf({ ibm, names }: Site): MachineTable<Instance> {
  const pathOf = (id: string) => `/instances/${encodeURIComponent(id)}`;
  return {
    watch: { settledMs: LISTED_MS, list: (signal) => ibm.list<Instance>("instances", signal) },
    idOf: ({ id }) => id,
    idIn: (id) => (typeof id === "string" && /^[\w.-]+$/.test(id) ? id : undefined),
    metadataOf: (instance) => names.metadataOf(instance),
    isUp: ({ status }) => status === "running",
    hasEnded: ({ status }) => ENDED.test(status),
    failure: ({ name, status, status_reasons }, place) =>
      failureOf(`${place}: instance ${name}`, status, status_reasons),
    isLeaving: ({ status }) => status === "deleting",
    read: (id, signal) =>
      /^np\d{10}$/.test(id)
        ? ibm.named<Instance>("instances", id, signal)
        : ibm.read<Instance>("instance", pathOf(id), signal),
    async delete(id, signal) {
      try {
        await ibm.delete("instance", pathOf(id), signal);
      } catch (error) {
        // One that is being made can be deleted later only; the wait for its end asks again.
        if (!wasRefused(error, NOT_YET)) throw error;
      }
    },
  };
}

async function bodyOf({ lookups, names }: Site, order: IbmOrder, signal: AbortSignal) {
  const { pool, label, imageExternalId } = order;
  const { own } = label;
  const source = typeof imageExternalId === "string" ? { id: imageExternalId } : own.source;
  if (source === null) throw noImage(label);
  const [{ vpc, zone, subnet }, keys, group, image] = await Promise.all([
    lookups.place(order, signal),
    lookups.keys(own.keys, signal),
    lookups.group(names.group(pool.name), signal),
    lookups.image(source, signal),
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
