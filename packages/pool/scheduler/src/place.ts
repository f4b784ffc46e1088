import { type Place, placeText, samePlace } from "@nodeyard/driver";
import { type NodeRecord, placeOf } from "@nodeyard/model";

/**
 * Whether a node's machine is where its provider does not look now: another region, account, cluster or folder. What the cloud says
 * there is not said of this machine.
 */
export function isElsewhere(
  record: Pick<NodeRecord, "driverData" | "region">,
  here: Place | undefined,
): boolean {
  const place = placeOf(record);
  return place !== undefined && here !== undefined && !samePlace(place, here);
}

/** The nodes of a provider that are elsewhere: how many, by the text of the place. */
export function elsewhereOf(
  records: Iterable<Pick<NodeRecord, "driverData" | "region">>,
  here: Place | undefined,
): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const record of records) {
    if (!isElsewhere(record, here)) continue;
    const place = placeText(placeOf(record)!);
    found.set(place, (found.get(place) ?? 0) + 1);
  }
  return found;
}
