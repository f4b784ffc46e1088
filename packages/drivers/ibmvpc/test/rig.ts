import type { Wire } from "@nodeyard/driver";
import { CloudRig, loadContext, wireTo } from "../../../../testing/cloud-rig.ts";
import { API_KEY, IbmCloud, type IbmSettings, REGION } from "../../../../testing/ibmvpc/index.ts";
import { createIbmDriver, type IbmProviderConfig, ibmvpcConfig } from "../src/index.ts";

export { INSTALLATION } from "../../../../testing/cloud-rig.ts";
export const STORAGE = {
  ...{ "instance-name": "Cloud Object Storage-r6", "bucket-name": "ci-images" },
  endpoint: "https://s3.us-south.cloud-object-storage.appdomain.cloud",
};
const FILE = "/ibm.env";

/** A provider of the file, compiled by the driver; `labels` are over a label `small` of bx2-2x8. */
export function compile(
  labels: Readonly<Record<string, object>> = { small: {} },
  { pool = {}, provider = {} }: { readonly pool?: object; readonly provider?: object } = {},
): IbmProviderConfig {
  const raw = {
    ...{
      name: "ibm-south",
      driver: "ibmvpc",
      vpc: "nodepool",
      region: REGION,
      rate: 0,
      "credentials-file": FILE,
    },
    "cloud-images": [
      { name: "debian", username: "ci", keys: ["testuser"], "image-name": "ibm-debian-13-1-minimal-amd64-1" },
    ],
    ...provider,
    pools: [
      {
        ...{ name: "main", "max-servers": 1_000, zone: "us-south-1", subnet: "sn-nodepool", ...pool },
        labels: Object.entries(labels).map(([name, label]) => ({
          ...{ name, profile: "bx2-2x8" },
          ...("diskimage" in label ? {} : { "cloud-image": "debian" }),
          ...label,
        })),
      },
    ],
  };
  return ibmvpcConfig.load(raw, loadContext(Object.keys(labels)))!;
}

/** The driver at a double of IBM Cloud in this process. */
export class IbmRig extends CloudRig<IbmProviderConfig> {
  readonly cloud = new IbmCloud(this.clock);
  /** Variables, and files of credentials by path. */
  readonly env: Record<string, string> = {};
  readonly texts = new Map([[FILE, `VPC_AUTH_TYPE=iam\nVPC_APIKEY=${API_KEY}\n`]]);

  constructor(settings: Partial<IbmSettings> = {}) {
    super();
    this.cloud.set(settings);
  }

  override driver(through = (wire: Wire) => wire) {
    const { cloud, env, texts } = this;
    return createIbmDriver({
      around: { env, read: (path) => texts.get(path) },
      connect: () => through(wireTo(cloud)),
      openFile: (path) => this.openFile(path),
    });
  }

  override async stop(): Promise<void> {
    await super.stop();
    // Nothing that the driver sent, and nothing that the double answered, was other than IBM's SDK says.
    if (this.cloud.violations.length > 0) throw new Error([...new Set(this.cloud.violations)].join("\n"));
  }
}
