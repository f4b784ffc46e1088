import { createHash } from "node:crypto";
import type { LabelConfig, PoolConfig } from "@nodeyard/driver";

/**
 * Digest of what a node is launched by: a node that was launched by something else is not what a launch would give now. Limits and other
 * labels of the pool are not among it.
 */
export function settingsOf(
  { name, nodeAttributes, useInternalIp, availabilityZones, own }: PoolConfig,
  { reuse: _, consoleLog: __, ...label }: LabelConfig,
): string {
  const plain = (_: string, value: unknown) =>
    value instanceof Map || value instanceof Set ? [...value] : value;
  const text = JSON.stringify([name, nodeAttributes, useInternalIp, availabilityZones, own, label], plain);
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
