import { createHash } from "node:crypto";
import type { ExternalId, Tag } from "@nodeyard/driver";

/** Who writes: all launchers with this driver and the machine's key share it, each changing its own slivers only. */
export const WRITER = "driver-sliver";

/**
 * A sliver's name follows from its tag, so that one tag never has two on a machine. Names have 31 characters: the node
 * readable, the rest of the tag as a digest. The pool is left out: it may be renamed while its nodes are there.
 */
export function sliverName({ installation, provider, nodeId }: Tag): string {
  const owner = createHash("sha256")
    .update(JSON.stringify([installation, provider]))
    .digest("hex");
  return `n${nodeId}_${owner.slice(0, 16)}`;
}

/** Where a sliver is; `generation` tells two apart that had one name. */
export interface Place {
  readonly machine: string;
  readonly name: string;
  readonly generation: number;
}

export function externalId({ machine, name, generation }: Place): string {
  return `${machine}/${name}/${generation}`;
}

/** Undefined for what this driver never gave out. */
export function placeOf(id: ExternalId | null): Place | undefined {
  const match = typeof id === "string" ? /^([^/]+)\/([a-z][a-z0-9_]{0,30})\/(\d{1,15})$/.exec(id) : null;
  return match === null ? undefined : { machine: match[1]!, name: match[2]!, generation: Number(match[3]) };
}
