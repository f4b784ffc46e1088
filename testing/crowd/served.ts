import { expect } from "vitest";
import type { CrowdFigures } from "./crowd.ts";

/** Machines at once, and calls for each machine of a launch and for each node of a removal. */
export interface CrowdBounds {
  readonly requests: number;
  readonly most: number;
  readonly launch?: number;
  readonly removal?: number;
}

/** All requests were served, no node had two machines, nothing is left, the cloud's limit was kept, and calls were not repeated in vain. */
export function assertServed(
  { ended, doubled, left, mostAtOnce, each }: CrowdFigures,
  { requests, most, launch = 1.2, removal = 1.2 }: CrowdBounds,
): void {
  expect({ ended, doubled, left }).toEqual({ ended: { used: requests }, doubled: [], left: [] });
  expect(mostAtOnce).toBeLessThanOrEqual(most);
  expect(each.launch).toBeLessThanOrEqual(launch);
  expect(each.removal).toBeLessThanOrEqual(removal);
}
