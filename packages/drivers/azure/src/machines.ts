import {
  DriverError,
  defined,
  type Evidence,
  type ExternalId,
  type Log,
  type MachineTable,
  type MachineWork,
  machineName,
  noImage,
  orThrow,
} from "@nodeyard/driver";
import { type AddressedVm, type AzureAccount, isUp } from "./account.ts";
import { vmBody } from "./body.ts";
import type { AzureOrder, AzureProviderConfig } from "./config.ts";
import { failureOf } from "./errors.ts";
import { type AzureResource, keyOf } from "./resources.ts";

/** Milliseconds that a create goes on after its caller gave up, with its wait at the rate limit. */
const CREATE_MS = 900_000;

/** Handles of a provider. */
export interface Parts {
  readonly config: AzureProviderConfig;
  readonly account: AzureAccount;
  readonly log: Log;
  /** Tags of disks, which Azure makes without any. */
  readonly evidence: Evidence;
  /** A password that nobody can guess. */
  readonly password: () => string;
}

/** The machines of nodes. Their ids are names: records of Nodepool have those, too. */
function machinesOf(account: AzureAccount): MachineTable<AddressedVm> {
  const pathOf = (name: string) => account.path("virtualMachines", name);
  return {
    ...{ watch: account.watch, createMs: CREATE_MS, what: "machine", idIn: nameIn },
    idOf: ({ name }) => keyOf(name),
    metadataOf: ({ tags = {} }) => tags,
    isUp: (vm) => isUp(vm) && vm.addresses !== undefined,
    // Such a machine stays, and costs.
    hasFailed: ({ properties }) => /^(Failed|Canceled)$/.test(properties.provisioningState ?? ""),
    async failure({ name }, place, signal) {
      const seen = await account.get<AzureResource>(pathOf(name), signal, { $expand: "instanceView" });
      const failed = /^ProvisioningState\/failed\/(\w+)/i;
      const status = seen?.properties.instanceView?.statuses?.find(({ code = "" }) => failed.test(code));
      const [, code = ""] = failed.exec(status?.code ?? "") ?? [];
      return failureOf(`${place}: machine ${name} failed`, {
        code,
        ...defined({ message: status?.message }),
      });
    },
    delete: (name, signal) => account.delete(pathOf(name), signal),
    isLeaving: ({ properties }) => properties.provisioningState === "Deleting",
    async read(name, signal) {
      const vm = await account.get<AzureResource>(pathOf(name), signal);
      return vm && { ...vm, addresses: undefined };
    },
  };
}

/** Launch and removal. One request makes a machine with all its parts, and one deletes them. */
export function machineWork(parts: Parts): MachineWork<AddressedVm, undefined, MachineTable<AddressedVm>> {
  const { account, config, log, evidence } = parts;
  return {
    machines: machinesOf(account),
    makeMs: config.launchTimeoutMs,
    async make(order: AzureOrder, _, signal) {
      const name = machineName(order.tag);
      const body = vmBody(order, await resolved(parts, order, signal), log);
      return async (until) => {
        await account.make(account.path("virtualMachines", name), body, until);
        return name;
      };
    },
    describe({ tag, hostname }, { addresses, properties, location: region, zones: [az = ""] = [] }) {
      const disk = properties.storageProfile?.osDisk?.managedDisk?.id;
      if (disk !== undefined) evidence.record("disk", keyOf(disk), tag);
      return { hostname, cloud: "Azure", ...defined({ region }), az, ...addresses };
    },
  };
}

/** The name in a record, of Nodepool's too; undefined for an unknown form. */
export function nameIn(externalId: ExternalId | null): string | undefined {
  return typeof externalId === "string" && externalId !== "" ? keyOf(externalId) : undefined;
}

/** What the request needs to know of the subscription. Rejects with `unsupported` for a zone that never has the size. */
async function resolved({ account, config, password }: Parts, order: AzureOrder, signal: AbortSignal) {
  const { own } = order.label;
  const { zones } = await account.sizes.of(own.size, signal);
  if (order.az !== null && !zones.includes(order.az))
    throw new DriverError(
      "unsupported",
      `${config.own.location} has no machines of size ${own.size} in zone ${order.az} for this subscription`,
    );
  return {
    location: config.own.location,
    subnet: subnetId(account, config),
    imageReference: await imageOf(account, order, signal),
    password: own.generatePassword ? password() : null,
  };
}

/** `imageReference` of a label: the upload, else what its configuration names. */
async function imageOf(account: AzureAccount, { label, imageExternalId }: AzureOrder, signal: AbortSignal) {
  const { source } = label.own;
  const uploaded = nameIn(imageExternalId);
  if (uploaded !== undefined) return { id: account.root + account.path("images", uploaded) };
  if (source === null) throw noImage(label);
  if (!("filter" in source)) return source;
  const id = await account.imageOf(source.filter, signal);
  return { id: orThrow(id, `label ${label.name} has no image here: none fits image-filter`) };
}

/** Throws when none is configured. */
export function subnetId({ root }: AzureAccount, { own, name }: AzureProviderConfig): string {
  if (own.subnet === null)
    throw new DriverError("configuration", `provider ${name} has no network; add network or subnet-id`);
  if (typeof own.subnet === "string") return own.subnet;
  const { group, network, name: subnet } = own.subnet;
  return `${root}/resourceGroups/${group}/providers/Microsoft.Network/virtualNetworks/${network}/subnets/${subnet}`;
}
