import { createHash } from "node:crypto";
import type { ExternalId, Tag } from "@nodeyard/driver";

/** The writer's name. All launchers with this driver and the same keys use it, and each changes only its own slivers. */
export const WRITER = "driver-sliver";

/**
 * The name of a sliver follows from its tag, so that a tag never has two slivers on a machine. Names have at most 31 characters: the node
 * id in readable form, installation and provider as a digest. The pool is left out, because it may be renamed while its nodes exist.
 */
export function sliverName({ installation, provider, nodeId }: Tag): string {
  const owner = createHash("sha256")
    .update(JSON.stringify([installation, provider]))
    .digest("hex");
  return `n${nodeId}_${owner.slice(0, 16)}`;
}

/** The node of a sliver by its name alone; null: it is none of the owner's. Without an owner names of all are believed, those of slots included. */
export function nodeNamed(
  name: string,
  owner: Pick<Tag, "installation" | "provider"> | undefined,
): string | null {
  const nodeId = /^n(\d{10})(?:_|$)/.exec(name)?.[1];
  if (nodeId === undefined) return null;
  return owner === undefined || sliverName({ ...owner, pool: "", nodeId }) === name ? nodeId : null;
}

/** The machine and name of a sliver. `generation` distinguishes slivers that had the same name. */
export interface Place {
  readonly machine: string;
  readonly name: string;
  readonly generation: number;
}

/** The id in node records. A machine's name has no "/". */
export function externalId({ machine, name, generation }: Place): string {
  return `${machine}/${name}/${generation}`;
}

/** Undefined for an id that this driver did not issue. */
export function placeOf(id: ExternalId | null): Place | undefined {
  const match = typeof id === "string" ? /^([^/]+)\/([a-z][a-z0-9_]{0,30})\/(\d{1,15})$/.exec(id) : null;
  return match === null ? undefined : { machine: match[1]!, name: match[2]!, generation: Number(match[3]) };
}
