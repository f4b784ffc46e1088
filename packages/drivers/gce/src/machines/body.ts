import { machineMetadata, machineName, noImage } from "@nodeyard/driver";
import type { GceLabelOwn, GceOrder } from "../config.ts";
import { diskMarks, labelsOf } from "../tags.ts";

/** The body of `instances.insert`, in a zone of the region. */
export function insertBody(order: GceOrder, region: string, zone: string) {
  const { own, connection } = order.label;
  const pool = order.pool.own;
  const metadata = machineMetadata(order.tag);
  const texts = {
    ...metadata,
    ...(own.key !== null && { "ssh-keys": `${connection.username}:${own.key}` }),
    ...(own.userData !== null && { "user-data": own.userData }),
  };
  return {
    name: machineName(order.tag),
    machineType: `zones/${zone}/machineTypes/${own.instanceType}`,
    labels: labelsOf(metadata),
    metadata: { items: Object.entries(texts).map(([key, value]) => ({ key, value })) },
    disks: [
      {
        boot: true,
        autoDelete: true,
        initializeParams: {
          sourceImage: imageOf(order),
          diskType: `zones/${zone}/diskTypes/${own.volumeType}`,
          diskSizeGb: String(own.volumeSize),
          ...diskMarks(order.tag),
        },
      },
    ],
    networkInterfaces: [
      {
        network: pathOf(pool.network, "global/networks"),
        ...(pool.subnetwork !== null && {
          subnetwork: pathOf(pool.subnetwork, `regions/${region}/subnetworks`),
        }),
        ...(pool.publicIpv4 && { accessConfigs: [{ type: "ONE_TO_ONE_NAT", name: "External NAT" }] }),
      },
    ],
    ...(pool.networkTags.length > 0 && { tags: { items: [...pool.networkTags] } }),
    serviceAccounts: own.serviceAccount === null ? [] : [{ email: own.serviceAccount, scopes: SCOPES }],
    ...schedulingOf(own),
  };
}

const SCOPES = ["https://www.googleapis.com/auth/cloud-platform"];

/** How Google runs and ends the machine. One that it ends is deleted, as a stopped one would cost its disk. */
function schedulingOf({ spot, maxRunMs }: GceLabelOwn) {
  if (!spot && maxRunMs === null) return {};
  return {
    scheduling: {
      provisioningModel: spot ? "SPOT" : "STANDARD",
      instanceTerminationAction: "DELETE",
      ...(spot && { preemptible: true, automaticRestart: false, onHostMaintenance: "TERMINATE" }),
      ...(maxRunMs !== null && { maxRunDuration: { seconds: String(Math.ceil(maxRunMs / 1_000)) } }),
    },
  };
}

/** The uploaded image, else that of the cloud. */
function imageOf({ imageExternalId, label }: GceOrder): string {
  const source = typeof imageExternalId === "string" ? imageExternalId : label.own.sourceImage;
  if (source === null) throw noImage(label);
  return source;
}

function pathOf(name: string, folder: string): string {
  return name.includes("/") ? name : `${folder}/${name}`;
}
