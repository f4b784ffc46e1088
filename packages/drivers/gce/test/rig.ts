import type { Wire } from "@nodeyard/driver";
import { keepSecret } from "@nodeyard/runtime";
import { CloudRig, loadContext, wireTo } from "../../../../testing/cloud-rig.ts";
import { GceCloud, type GceSettings } from "../../../../testing/gce/index.ts";
import { createGceDriver, type GceProviderConfig, gceConfig } from "../src/index.ts";

export { INSTALLATION } from "../../../../testing/cloud-rig.ts";
export const TOKEN = "ya29.token-of-the-double-of-google";

/** A provider of the file, compiled by the driver; `labels` are over a label `small` of e2-standard-4. */
export function compile(
  labels: Readonly<Record<string, object>> = { small: {} },
  { pool = {}, provider = {} }: { readonly pool?: object; readonly provider?: object } = {},
): GceProviderConfig {
  const raw = {
    ...{
      name: "gcp-west",
      driver: "gce",
      project: "ci-project-1",
      region: "us-central1",
      zone: "us-central1-a",
    },
    rate: 0,
    "cloud-images": [
      {
        name: "debian",
        "image-project": "debian-cloud",
        "image-family": "debian-12",
        username: "ci",
        key: "ssh-ed25519 AAAA",
      },
    ],
    ...provider,
    pools: [
      {
        name: "main",
        labels: Object.entries(labels).map(([name, label]) => ({
          ...{ name, "instance-type": "e2-standard-4" },
          ...("diskimage" in label ? {} : { "cloud-image": "debian" }),
          ...label,
        })),
        ...pool,
      },
    ],
  };
  return gceConfig.load(raw, loadContext(Object.keys(labels)))!;
}

/** The driver at a double of Google Cloud in this process. */
export class GceRig extends CloudRig<GceProviderConfig> {
  readonly cloud = new GceCloud(this.clock);

  constructor(settings: Partial<GceSettings> = {}) {
    super();
    this.cloud.set(settings);
    keepSecret(TOKEN);
  }

  override driver(through = (wire: Wire) => wire) {
    const { clock, cloud } = this;
    return createGceDriver({
      connect: () => through(wireTo(cloud)),
      logIn: async () => ({ text: TOKEN, end: clock.now() + 3_600_000 }),
      openFile: (path) => this.openFile(path),
    });
  }

  override async stop(): Promise<void> {
    await super.stop();
    // Nothing that the driver sent, and nothing that the double answered, was other than Google's documents say.
    if (this.cloud.violations.length > 0) throw new Error(this.cloud.violations.join("\n"));
  }
}
