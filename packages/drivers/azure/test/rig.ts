import type { CreateOrder, Wire } from "@nodeyard/driver";
import {
  AzureDouble,
  type AzureSettings,
  LOCATION,
  SECRET,
  SUBSCRIPTION,
  TENANT,
} from "../../../../testing/azure/index.ts";
import { CloudRig, loadContext, wireTo } from "../../../../testing/cloud-rig.ts";
import { type AzureProviderConfig, azureConfig, createAzureDriver } from "../src/index.ts";

export { INSTALLATION } from "../../../../testing/cloud-rig.ts";
/** The address of a double that is asked in this process. */
export const HERE = "https://azure.example";
const KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGFz nodes";

/** A file as `az ad sp create-for-rbac --sdk-auth` writes it. */
export const AUTH = {
  ...{ clientId: "client-1", clientSecret: SECRET, subscriptionId: SUBSCRIPTION, tenantId: TENANT },
  ...{ activeDirectoryEndpointUrl: HERE, resourceManagerEndpointUrl: `${HERE}/` },
};

/** A provider of the file, compiled by the driver; `labels` are over a label `small`. */
export function compile(
  labels: Readonly<Record<string, object>> = { small: {} },
  { pool = {}, provider = {} }: { readonly pool?: object; readonly provider?: object } = {},
): AzureProviderConfig {
  const raw = {
    ...{ name: "azure-west", driver: "azure", location: LOCATION, rate: 0, network: "nodes" },
    ...{ "resource-group": "nodes", "resource-group-location": LOCATION, "auth-path": "/auth.json" },
    "cloud-images": [
      {
        ...{ name: "debian", username: "debian", key: KEY },
        "image-reference": { publisher: "Debian", offer: "debian-12", sku: "12-gen2", version: "latest" },
      },
    ],
    ...provider,
    pools: [
      {
        ...{ name: "main", "max-servers": 1000, ...pool },
        labels: Object.entries(labels).map(([name, label]) => ({
          ...{ name, "hardware-profile": { "vm-size": "Standard_D2s_v5" } },
          ...("diskimage" in label ? {} : { "cloud-image": "debian" }),
          ...label,
        })),
      },
    ],
  };
  return azureConfig.load(raw, loadContext(Object.keys(labels)))!;
}

/** A fixed VHD of so many MiB, of which only the first and a page in the middle of the fifth have data. */
export function vhd(mib: number): Buffer {
  const data = Buffer.alloc((mib << 20) + 512);
  data.fill("data", 0, 1 << 20);
  data.fill("more", (4 << 20) + 4096, (4 << 20) + 5120);
  data.write("conectix", mib << 20);
  return data;
}

/** The driver at a double of Azure in this process. */
export class AzureRig extends CloudRig<AzureProviderConfig> {
  readonly azure: AzureDouble;
  /** Variables, and what else the driver reads, by path. */
  readonly env: Record<string, string> = {};
  readonly texts = new Map([["/auth.json", JSON.stringify(AUTH)]]);

  constructor(settings: Partial<AzureSettings> = {}) {
    super();
    this.azure = new AzureDouble(this.clock, settings);
  }

  override driver(through = (wire: Wire) => wire) {
    return createAzureDriver({
      around: { env: this.env, read: (path) => this.texts.get(path) },
      connect: () => through(wireTo(this.azure)),
      password: () => "aA1".padEnd(64, "x"),
      openFile: (path) => this.openFile(path),
    });
  }

  /** An order of a label of the first pool. */
  orderOf(config: AzureProviderConfig, label: string, node: number, more: Partial<CreateOrder> = {}) {
    const nodeId = String(node).padStart(10, "0");
    return this.order(config, nodeId, { label: config.pools[0]!.labels.get(label)!, ...more });
  }
}
