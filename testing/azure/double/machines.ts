import { Refusal } from "./answers.ts";
import { QUOTAS, SIZES, ZONES } from "./settings.ts";
import type { Json, Stored, World } from "./world.ts";

/** Virtual machines, with what the request makes beside them. */

/** `PUT virtualMachines/NAME`. */
export function putVm(world: World, group: string, name: string, body: Json) {
  const present = world.find(group, "virtualMachines", name);
  const properties = (body.properties ?? {}) as Json;
  if (present !== undefined) {
    if (present.properties.provisioningState === "Deleting")
      throw new Refusal(409, "OperationNotAllowed", `VM ${name} is marked for deletion.`);
    present.tags = body.tags ?? present.tags;
    return { status: 200, resource: present, ms: 0, end: () => present };
  }
  const { vmSize } = (properties.hardwareProfile ?? {}) as { vmSize?: string };
  const zone = (body.zones as readonly string[] | undefined)?.[0];
  const market = (properties.priority as "Spot" | undefined) ?? "Regular";
  const size = SIZES[vmSize ?? ""];
  if (size === undefined)
    throw new Refusal(400, "InvalidParameter", `The value ${vmSize} provided for the VM size is not valid.`);
  checkBody(world, group, body);
  if (zone !== undefined && !ZONES.includes(zone))
    throw new Refusal(400, "AvailabilityZoneNotSupported", `The zone(s) '${zone}' is not supported.`);
  refuseQuota(world, String(body.location), vmSize!, market);
  const full = fullest(world, vmSize!, zone, market);
  if (full !== undefined && full.late !== true) throw shortage(market, zone, vmSize!);
  const vm = world.make(group, "virtualMachines", name, {
    ...body,
    properties: { ...withoutSecrets(properties), vmId: world.uuid(), provisioningState: "Creating" },
  });
  partsOf(world, group, vm, properties);
  const { failure, bootMs } = world.settings;
  return {
    ...{ status: 201, resource: vm, ms: bootMs },
    end: () => {
      // It was deleted meanwhile.
      if (vm.properties.provisioningState === "Deleting") return undefined;
      const said = full !== undefined ? shortage(market, zone, vmSize!) : failure && refusalOf(failure);
      vm.properties.provisioningState = said ? "Failed" : "Succeeded";
      if (said) {
        world.failures.set(vm, said);
        throw said;
      }
      return vm;
    },
  };
}

const refusalOf = ({ code, message }: { code: string; message: string }) => new Refusal(409, code, message);

/** `DELETE virtualMachines/NAME`; what says so goes with it. */
export function deleteVm(world: World, group: string, vm: Stored) {
  vm.properties.provisioningState = "Deleting";
  return {
    ms: world.settings.deletionMs,
    end: (at: number) => {
      world.delete(vm, at);
      const owned = [...world.in(group)].filter((one) => one.owner === vm && one.goesWithOwner);
      for (const one of owned) world.delete(one, at);
      return undefined;
    },
  };
}

/**
 * `POST virtualMachines/NAME/deallocate` and `/start` ("States and billing of Azure VMs"). Both may be repeated: a later operation takes the place of
 * one before. A machine that starts needs room; its static addresses are those of before.
 */
export function powerVm(world: World, vm: Stored, action: "deallocate" | "start") {
  const { properties } = vm;
  if (/^(Creating|Deleting)$/.test(properties.provisioningState))
    throw new Refusal(409, "OperationNotAllowed", `VM ${vm.name} is ${properties.provisioningState}.`);
  properties.provisioningState = "Updating";
  const turn = (world.turns.get(vm) ?? 0) + 1;
  world.turns.set(vm, turn);
  const { bootMs, deletionMs } = world.settings;
  return {
    ms: action === "start" ? bootMs : deletionMs,
    end: () => {
      if (world.turns.get(vm) !== turn || properties.provisioningState === "Deleting")
        throw new Refusal(
          409,
          "OperationPreempted",
          "Operation execution has been preempted by a more recent operation.",
        );
      properties.provisioningState = "Succeeded";
      if (action === "deallocate") world.deallocated.add(vm);
      else if (world.deallocated.has(vm)) {
        const size = properties.hardwareProfile.vmSize as string;
        const market = (properties.priority as string | undefined) ?? "Regular";
        if (fullest(world, size, vm.zones?.[0], market) !== undefined)
          throw shortage(market, vm.zones?.[0], size);
        world.deallocated.delete(vm);
      }
      return undefined;
    },
  };
}

/** The state of a machine as `$expand=instanceView` has it. */
export function instanceView(world: World, vm: Stored): Json {
  const failed = world.failures.get(vm);
  const { error } = (failed?.answer.body ?? {}) as { error?: { code: string; message: string } };
  const provisioning = error
    ? {
        code: `ProvisioningState/failed/${error.code}`,
        level: "Error",
        displayStatus: "Provisioning failed",
        message: error.message,
      }
    : {
        code: `ProvisioningState/${String(vm.properties.provisioningState).toLowerCase()}`,
        level: "Info",
        displayStatus: `Provisioning ${String(vm.properties.provisioningState).toLowerCase()}`,
      };
  const state = world.deallocated.has(vm) ? "deallocated" : "running";
  const power = { code: `PowerState/${state}`, level: "Info", displayStatus: `VM ${state}` };
  return {
    statuses: [provisioning, ...(vm.properties.provisioningState === "Succeeded" ? [power] : [])],
  };
}

/** Use of the quotas: by name, of the machines of the whole subscription in a location. */
export function usage(world: World, location: string): Readonly<Record<string, number>> {
  const used: Record<string, number> = { cores: 0, virtualMachines: 0, lowPriorityCores: 0 };
  for (const name of Object.keys(QUOTAS)) used[name] = world.settings.others[name] ?? 0;
  for (const vm of world.all("virtualMachines")) {
    if (vm.location !== location) continue;
    const { hardwareProfile, priority } = vm.properties as {
      hardwareProfile: { vmSize: string };
      priority?: string;
    };
    const { family, vcpus } = SIZES[hardwareProfile.vmSize]!;
    used.virtualMachines! += 1;
    for (const name of priority === "Spot" ? ["lowPriorityCores"] : ["cores", family])
      used[name] = (used[name] ?? 0) + vcpus;
  }
  return used;
}

export function limits(world: World): Readonly<Record<string, number>> {
  return { ...QUOTAS, ...world.settings.quotas };
}

/** What Azure checks before it accepts a machine, as far as a driver can get it wrong. */
function checkBody(world: World, group: string, body: Json): void {
  const invalid = (message: string, code = "InvalidParameter") => new Refusal(400, code, message);
  const { osProfile, networkProfile, storageProfile } = body.properties as Readonly<Record<string, Json>>;
  if (Object.keys(body.tags ?? {}).length > 50)
    throw invalid("A resource can have at most 50 tags.", "TooManyTags");
  if (!osProfile?.adminUsername)
    throw invalid("Required parameter 'osProfile.adminUsername' is missing (null).");
  if (String(osProfile.computerName).length > 64) throw invalid("osProfile.computerName is too long.");
  const { linuxConfiguration } = osProfile as {
    linuxConfiguration?: { disablePasswordAuthentication?: boolean };
  };
  if (!osProfile.adminPassword && linuxConfiguration?.disablePasswordAuthentication !== true)
    throw invalid("Required parameter 'adminPassword' is missing (null).");
  for (const data of [osProfile.customData, (body.properties as Json).userData])
    if (data !== undefined && Buffer.from(String(data), "base64").toString("base64") !== data)
      throw invalid(
        "Custom data in OSProfile must be in Base64 encoding and with a maximum length of 87380 characters.",
      );
  const { imageReference } = (storageProfile ?? {}) as { imageReference?: { id?: string } };
  if (imageReference?.id !== undefined && world.byId(imageReference.id) === undefined)
    throw new Refusal(404, "ImageNotFound", `The Image '${imageReference.id}' cannot be found.`);
  checkNetwork(world, group, networkProfile ?? {});
}

function checkNetwork(world: World, group: string, networkProfile: Json): void {
  const invalid = (message: string, code = "InvalidParameter") => new Refusal(400, code, message);
  const interfaces = (networkProfile.networkInterfaceConfigurations ?? []) as readonly Json[];
  if (interfaces.length > 0 && networkProfile.networkApiVersion === undefined)
    throw invalid("networkApiVersion is required with networkInterfaceConfigurations.");
  for (const { properties } of interfaces) {
    const { ipConfigurations = [] } = properties as { ipConfigurations?: readonly Json[] };
    const of = ipConfigurations.map(({ properties: one }) => one as Json);
    if (of.length > 1 && of.filter(({ primary }) => primary === true).length !== 1)
      throw invalid("Exactly one ipConfiguration must be primary.", "InvalidRequestFormat");
    for (const { subnet, publicIPAddressConfiguration: ip, privateIPAddressVersion = "IPv4" } of of) {
      const { id = "" } = (subnet ?? {}) as { id?: string };
      if (world.byId(id) === undefined)
        throw new Refusal(
          400,
          "InvalidResourceReference",
          `Resource ${id} referenced by ${group} was not found.`,
        );
      const version = (ip as { properties?: Json } | undefined)?.properties?.publicIPAddressVersion ?? "IPv4";
      if (ip !== undefined && version !== privateIPAddressVersion)
        throw invalid("The version of the public address differs from that of its configuration.");
    }
  }
}

function refuseQuota(world: World, location: string, vmSize: string, market: string): void {
  const { family, vcpus } = SIZES[vmSize]!;
  const used = usage(world, location);
  const names = market === "Spot" ? ["lowPriorityCores"] : ["cores", family];
  for (const [name, more] of [
    ...names.map((one) => [one, vcpus] as const),
    ["virtualMachines", 1] as const,
  ]) {
    const limit = limits(world)[name];
    if (limit === undefined || (used[name] ?? 0) + more <= limit) continue;
    throw new Refusal(
      409,
      "OperationNotAllowed",
      `Operation could not be completed as it results in exceeding approved ${name} quota. Additional details - ` +
        `Deployment Model: Resource Manager, Location: ${location}, Current Limit: ${limit}, Current Usage: ${used[name]}, ` +
        `Additional Required: ${more}, (Minimum) New Limit Required: ${(used[name] ?? 0) + more}.`,
    );
  }
}

/** The entry of `capacity` that leaves no room. */
function fullest(world: World, size: string, zone: string | undefined, market: string) {
  return world.settings.capacity.find((entry) => {
    if ((entry.size ?? size) !== size || (entry.market ?? market) !== market) return false;
    if (entry.zone !== undefined && entry.zone !== zone) return false;
    const there = world
      .all("virtualMachines")
      .filter((vm) => !world.deallocated.has(vm))
      .filter(
        ({ zones, properties }) =>
          (entry.size ?? size) === (properties.hardwareProfile as Json).vmSize &&
          (entry.zone === undefined || zones?.[0] === entry.zone) &&
          (entry.market ?? market) === ((properties.priority as string | undefined) ?? "Regular"),
      );
    return there.length >= entry.most;
  });
}

function shortage(market: string, zone: string | undefined, size: string): Refusal {
  if (market === "Spot")
    return new Refusal(
      409,
      "SkuNotAvailable",
      `The requested size ${size} for Spot is currently not available.`,
    );
  return zone === undefined
    ? new Refusal(
        409,
        "AllocationFailed",
        `Allocation failed. We do not have sufficient capacity for ${size}.`,
      )
    : new Refusal(
        409,
        "ZonalAllocationFailed",
        `Allocation failed. We do not have sufficient capacity for the requested VM size in this zone.`,
      );
}

/** Interface, addresses and disk. Azure adds an end to the names, and leaves the disk without tags. */
function partsOf(world: World, group: string, vm: Stored, properties: Json): void {
  const { networkProfile, storageProfile } = properties as Readonly<Record<string, Json>>;
  const place = { location: vm.location };
  const configurations = (networkProfile?.networkInterfaceConfigurations ?? []) as readonly Json[];
  const interfaces = configurations.map((one) => {
    const { deleteOption, primary, ipConfigurations } = one.properties as Json;
    const nic = world.make(group, "networkInterfaces", `${one.name}-${world.suffix()}`, {
      ...place,
      tags: one.tags,
      properties: { provisioningState: "Succeeded", virtualMachine: { id: vm.id } },
    });
    nic.owner = vm;
    nic.goesWithOwner = deleteOption === "Delete";
    nic.properties.ipConfigurations = (ipConfigurations as readonly Json[]).map((config) => {
      const { publicIPAddressConfiguration: wanted, ...rest } = config.properties as Json;
      const id = `${nic.id}/ipConfigurations/${config.name}`;
      const version = String(rest.privateIPAddressVersion ?? "IPv4");
      const ip = wanted && publicIp(world, group, vm, wanted as Json, id);
      return {
        ...{ id, name: config.name },
        properties: {
          ...rest,
          ...{ provisioningState: "Succeeded", privateIPAddress: world.address(version, "private") },
          ...{ privateIPAllocationMethod: "Dynamic", privateIPAddressVersion: version },
          // An interface made with its machine repeats some of its address, which Nodepool's driver reads.
          ...(ip && { publicIPAddress: { name: ip.name, id: ip.id, type: ip.type, properties: said(ip) } }),
        },
      };
    });
    return { id: nic.id, properties: { primary: primary ?? true, deleteOption } };
  });
  const { osDisk, imageReference } = (storageProfile ?? {}) as Readonly<Record<string, Json>>;
  const disk = world.make(group, "disks", `${vm.name}_OsDisk_1_${world.suffix()}`, {
    ...place,
    managedBy: vm.id,
    sku: { name: "Premium_LRS", tier: "Premium" },
    properties: {
      provisioningState: "Succeeded",
      diskState: "Attached",
      diskSizeGB: osDisk?.diskSizeGB ?? 30,
    },
  });
  disk.owner = vm;
  disk.goesWithOwner = osDisk?.deleteOption === "Delete";
  const { networkInterfaceConfigurations: _, networkApiVersion: __, ...network } = networkProfile ?? {};
  vm.properties.networkProfile = { ...network, networkInterfaces: interfaces };
  vm.properties.storageProfile = {
    imageReference,
    osDisk: { ...osDisk, osType: "Linux", name: disk.name, managedDisk: { id: disk.id } },
    dataDisks: [],
  };
}

function publicIp(world: World, group: string, vm: Stored, wanted: Json, configuration: string): Stored {
  const { deleteOption, publicIPAddressVersion = "IPv4", ...rest } = (wanted.properties ?? {}) as Json;
  const ip = world.make(group, "publicIPAddresses", `${wanted.name}-${world.suffix()}`, {
    ...{ location: vm.location, tags: wanted.tags, sku: { tier: "Regional", ...(wanted.sku as Json) } },
    properties: {
      ...rest,
      ...{ provisioningState: "Succeeded", publicIPAddressVersion, ipConfiguration: { id: configuration } },
      ipAddress: world.address(String(publicIPAddressVersion), "public"),
    },
  });
  ip.owner = vm;
  ip.goesWithOwner = deleteOption === "Delete";
  return ip;
}

function said({ properties }: Stored): Json {
  const { publicIPAddressVersion, publicIPAllocationMethod } = properties;
  return { publicIPAddressVersion, publicIPAllocationMethod };
}

/** Azure never shows passwords and custom data again. */
function withoutSecrets(properties: Json): Json {
  const { adminPassword: _, customData: __, ...osProfile } = (properties.osProfile ?? {}) as Json;
  const { userData: ___, ...rest } = properties;
  return { ...rest, osProfile };
}
