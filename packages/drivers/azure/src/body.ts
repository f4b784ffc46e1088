import { type Log, labelTags, type Metadata } from "@nodeyard/driver";
import type { AzureOrder } from "./config.ts";

/** Resolved settings of a launch. */
export interface Resolved {
  readonly location: string;
  /** Id. */
  readonly subnet: string;
  readonly imageReference: object;
  /** A password that nobody learns, where the image asks for one. */
  readonly password: string | null;
}

/** Body of the one request that makes machine, interface, addresses and disk. All of them go with the machine. */
export function vmBody(order: AzureOrder, resolved: Resolved, log: Pick<Log, "warn">): object {
  const { own } = order.label;
  const tags = labelTags(order, log);
  const { location, imageReference } = resolved;
  return {
    ...{ location, tags },
    ...(order.az !== null && { zones: [order.az] }),
    properties: {
      hardwareProfile: { vmSize: own.size },
      ...(own.spot && {
        priority: "Spot",
        evictionPolicy: "Delete",
        // -1: evicted only where Azure needs the room.
        billingProfile: { maxPrice: own.maxPrice ?? -1 },
      }),
      osProfile: osProfile(order, resolved.password),
      ...(own.userData !== null && { userData: base64(own.userData) }),
      storageProfile: {
        imageReference,
        osDisk: {
          ...{ createOption: "FromImage", deleteOption: "Delete" },
          ...(own.volumeSize !== null && { diskSizeGB: own.volumeSize }),
        },
      },
      networkProfile: {
        networkApiVersion: "2022-11-01",
        networkInterfaceConfigurations: [
          {
            name: `${order.hostname}-nic`,
            tags,
            properties: {
              primary: true,
              deleteOption: "Delete",
              ipConfigurations: configsOf(order, resolved, tags),
            },
          },
        ],
      },
    },
  };
}

/** With a key, passwords are of no use. */
function osProfile({ hostname, label }: AzureOrder, generated: string | null): object {
  const { own, connection } = label;
  const adminPassword = own.password ?? generated;
  const path = `/home/${connection.username}/.ssh/authorized_keys`;
  return {
    computerName: hostname,
    adminUsername: connection.username,
    ...(adminPassword !== null && { adminPassword }),
    ...(own.key !== null && {
      linuxConfiguration: {
        disablePasswordAuthentication: true,
        ssh: { publicKeys: [{ path, keyData: own.key }] },
      },
    }),
    ...(own.customData !== null && { customData: base64(own.customData) }),
  };
}

/** One configuration for each version of IP; that of IPv4 is the primary one where there are both, as Azure demands. */
function configsOf({ hostname, pool }: AzureOrder, { subnet }: Resolved, tags: Metadata): readonly object[] {
  const { ipv4, ipv6, publicIpv4, publicIpv6 } = pool.own;
  const versions = [
    ...(ipv4 ? [{ version: "IPv4", short: "v4", isPublic: publicIpv4 }] : []),
    ...(ipv6 ? [{ version: "IPv6", short: "v6", isPublic: publicIpv6 }] : []),
  ];
  return versions.map(({ version, short, isPublic }, at) => ({
    name: `${hostname}-${short}-config`,
    properties: {
      ...{ primary: at === 0, privateIPAddressVersion: version, subnet: { id: subnet } },
      ...(isPublic && {
        publicIPAddressConfiguration: {
          ...{ name: `${hostname}-${short}-ip`, tags },
          sku: { name: "Standard" },
          properties: {
            ...{ deleteOption: "Delete", publicIPAllocationMethod: "Static" },
            publicIPAddressVersion: version,
          },
        },
      }),
    },
  }));
}

function base64(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}
