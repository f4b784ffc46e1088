import type { Resource, Rspec } from "@nodeyard/sliver-protocol";
import type { Policy } from "../core/policy.ts";

/** One resource as a wire profile names and measures it. */
export interface WireResource {
  readonly wire: string;
  readonly resource: Resource;
  /** Ours per one of theirs. */
  readonly scale: number;
}

export interface WireProfile {
  readonly name: "r0" | "v2";
  readonly policy: Policy;
  readonly resources: readonly WireResource[];
  readonly methods: readonly string[];
}

/** XML-RPC has no larger integer; the old manager failed where a sum was. */
export const MAX_WIRE_INT = 2_147_483_647;

export function toWire(profile: WireProfile, rspec: Rspec): Record<string, number> {
  return Object.fromEntries(
    profile.resources.map(({ wire, resource, scale }) => [
      wire,
      Math.min(MAX_WIRE_INT, Math.floor(rspec[resource] / scale)),
    ]),
  );
}
