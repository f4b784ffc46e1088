import type { Instance, InstanceTypeInfo } from "@aws-sdk/client-ec2";
import { add, type Resources } from "@nodeyard/driver";
import type { AwsLabelOwn } from "../config.ts";
import { hostCode, instanceCode, volumeCodes } from "./codes.ts";

/**
 * Amounts of quotas that resources use. `cores` counts cores, as in Nodepool, although the drivers of other clouds count threads. The quota
 * codes of instances count vCPUs.
 */

/** A running instance of a type. */
function instanceAmounts(info: InstanceTypeInfo, spot: boolean): Resources {
  const code = instanceCode(info.InstanceType ?? "", spot);
  const { DefaultVCpus = 0, DefaultCores = DefaultVCpus } = info.VCpuInfo ?? {};
  const ram = info.MemoryInfo?.SizeInMiB ?? 0;
  return { instances: 1, cores: DefaultCores, ram, ...(code !== undefined && { [code]: DefaultVCpus }) };
}

/** A dedicated host together with its only instance, which uses no quota besides. */
export function hostAmounts(type: string): Resources {
  const code = hostCode(type);
  return { instances: 1, ...(code !== undefined && { [code]: 1 }) };
}

/** A volume's storage in GiB and its IOPS, by quota code. Empty for a type without a code, and for what is absent: the AMI decides then. */
export function volumeAmounts(
  type: string | null | undefined,
  size: number | null | undefined,
  speed: number | null | undefined,
): Resources {
  const { storage, iops } = volumeCodes(type ?? "");
  return {
    ...(storage !== undefined && size != null && { [storage]: size }),
    ...(iops !== undefined && speed != null && { [iops]: speed }),
  };
}

/**
 * One node of a label. `info`: its instance type; null for a fleet, whose type is known only after the launch. The root volume
 * counts as far as the label sets it.
 */
export function labelAmounts(label: AwsLabelOwn, info: InstanceTypeInfo | null): Resources {
  const machine =
    info === null
      ? { instances: 1 }
      : label.dedicatedHost
        ? hostAmounts(info.InstanceType ?? "")
        : instanceAmounts(info, label.spot);
  return add(machine, volumeAmounts(label.volumeType, label.volumeSize, label.iops));
}

/** Quota codes that launches of a label may use. */
export function labelCodes(label: AwsLabelOwn): readonly string[] {
  const types = label.fleet?.instanceTypes ?? (label.instanceType === null ? [] : [label.instanceType]);
  const { storage, iops } = volumeCodes(label.volumeType ?? "");
  const codes = types.map((type) => (label.dedicatedHost ? hostCode(type) : instanceCode(type, label.spot)));
  return [...codes, storage, iops].filter((code) => code !== undefined);
}

/**
 * A listed instance without its volumes and its host. `info` undefined: its type is not known, so it counts as one instance only, as one on a
 * host does.
 */
export function listedAmounts(instance: Instance, info: InstanceTypeInfo | undefined): Resources {
  if (info === undefined || instance.Placement?.HostId !== undefined) return { instances: 1 };
  return instanceAmounts(info, instance.InstanceLifecycle === "spot");
}
