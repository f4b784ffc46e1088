import { filledTemplates, type LabelConfig, type Log, machineMetadata } from "@nodeyard/driver";
import { compareVersions } from "../client/index.ts";
import type { OpenstackLabelOwn, OpenstackOrder } from "../config.ts";

/** Ids of the cloud for the names of a label. */
export interface Resolved {
  readonly flavorId: string;
  readonly imageId: string;
  /** Empty: the cloud chooses. */
  readonly networkIds: readonly string[];
  /** Null: the oldest version. */
  readonly microversion: string | null;
}

/** From this microversion on nova requires `networks` and supports "auto". */
const AUTO_NETWORKS = "2.37";

/**
 * The body of `POST /servers` (docs/contract/drivers.md, "OpenStack: creating a server"). Absent settings are left out, so that
 * the cloud's own defaults apply. A template that fails is logged.
 */
export function serverBody(order: OpenstackOrder, resolved: Resolved, log: Pick<Log, "warn">): object {
  const label = order.label;
  const { securityGroups } = order.pool.own;
  const { keyName, configDrive, userData, volumeSize } = label.own;
  const { flavorId, networkIds, microversion, imageId } = resolved;
  // "auto": nova takes the project's network, or has one made (Compute API, "Create Server", `networks`).
  const isAuto = microversion !== null && compareVersions(microversion, AUTO_NETWORKS) >= 0;
  const networks = networkIds.length > 0 ? networkIds.map((uuid) => ({ uuid })) : "auto";
  return {
    name: order.hostname,
    flavorRef: flavorId,
    ...(volumeSize === null ? { imageRef: imageId } : bootVolume(imageId, volumeSize)),
    ...{ min_count: 1, max_count: 1, metadata: metadataOf(order, label, log) },
    ...(order.az !== null && { availability_zone: order.az }),
    ...(keyName !== null && { key_name: keyName }),
    ...(configDrive !== null && { config_drive: configDrive }),
    ...(securityGroups.length > 0 && { security_groups: securityGroups.map((name) => ({ name })) }),
    ...(userData !== null && { user_data: Buffer.from(userData).toString("base64") }),
    ...((networkIds.length > 0 || isAuto) && { networks }),
  };
}

/** The disk of a server that boots from a new volume (Compute API, "Create server", block_device_mapping_v2). nova deletes it with the server. */
function bootVolume(uuid: string, size: number): object {
  const volume = {
    ...{ boot_index: "0", source_type: "image", uuid, destination_type: "volume" },
    ...{ volume_size: String(size), delete_on_termination: true },
  };
  return { imageRef: "", block_device_mapping_v2: [volume] };
}

/** The tag comes last, so that no property of a user can overwrite it and make a server look like another node's. */
function metadataOf(order: OpenstackOrder, label: LabelConfig<OpenstackLabelOwn>, log: Pick<Log, "warn">) {
  const { name, image, own } = label;
  const omit = (property: string, why: string) =>
    log.warn({ label: name, property, why }, "a property is left out");
  return {
    groups: [order.tag.provider, image?.name ?? "", name].join(","),
    ...own.instanceProperties,
    ...filledTemplates(own.dynamicProperties, order.request, omit),
    ...machineMetadata(order.tag),
  };
}
