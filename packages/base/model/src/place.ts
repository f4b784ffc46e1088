import { isObject } from "./fields.ts";
import type { NodeRecord } from "./node.ts";

/** Where the machine of a node is, as its driver named the place when the record was made; undefined: the record does not say. */
export function placeOf({
  driverData,
  region,
}: Pick<NodeRecord, "driverData" | "region">): Readonly<Record<string, string>> | undefined {
  const own = isObject(driverData) && isObject(driverData.nodeyard) ? driverData.nodeyard.place : undefined;
  if (isObject(own))
    return Object.fromEntries(
      Object.entries(own).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
    );
  // Records of Nodepool have this field alone.
  return region === null ? undefined : { region };
}
