import { DriverError, messageOf } from "@nodeyard/driver";
import { mapError } from "@nodeyard/driver-sliver/parts";
import { type NodeReport, SliverUnreachableError } from "@nodeyard/sliver-protocol";
import type { Places } from "./places.ts";

/** A backing node that is a sliver host. */
export interface BackingHost {
  /** Node id in the tree. */
  readonly id: string;
  readonly host: string;
  readonly port: number;
  readonly hostKeys: readonly string[];
  /** Epoch of its present use as backing node: the same for every launcher, and higher than in any earlier use. */
  readonly epoch: number;
  /** How its slots lend to each other; absent: they do not. */
  readonly lending?: Places;
}

/** Throws unless the machine belongs to this provider. A higher epoch alone is not enough: the slivers of another party would be ended. */
export function mayTake(
  at: BackingHost,
  { node, writer, slivers, safeMode, unlisted }: NodeReport,
  self: { readonly installation: string; readonly writer: string },
): void {
  const foreign = slivers.filter(({ tags }) => tags.installation !== self.installation);
  if (writer !== undefined && writer !== self.writer && slivers.length > 0)
    throw new DriverError(
      "configuration",
      `backing node ${at.id} (${at.host}): ${writer} has ${slivers.length} slivers on it; end those first, or take the machine out of one of the two`,
    );
  if (foreign.length > 0)
    throw new DriverError(
      "configuration",
      `backing node ${at.id} (${at.host}): sliver ${foreign[0]!.name} on it is not of this installation; end it first`,
    );
  if (safeMode && unlisted.length > 0)
    throw new DriverError(
      "configuration",
      `backing node ${at.id} (${at.host}): ${node} lost its store and still has ${unlisted.length} slivers; restore its store, or end them with: sliverd --dismantle`,
    );
}

/** A slot is freed only when nothing of its last sliver is left, so a sliver that does not fit now will never fit: a configuration error. */
export function capacityError({ id, host }: BackingHost, error: unknown): unknown {
  if (!(error instanceof DriverError) || error.kind !== "quota") return error;
  return new DriverError(
    "configuration",
    `backing node ${id} (${host}) has no room for so many slots: ${error.message}; lower the label's max-parallel-jobs or guarantees`,
    { cause: error },
  );
}

/** Adds the remedy to errors that an operator must correct. */
export function explained({ id, host }: BackingHost, error: unknown): DriverError {
  const place = `backing node ${id} (${host})`;
  if (error instanceof DriverError) return error;
  if (
    error instanceof SliverUnreachableError &&
    /Permission denied|sliver-forward|no host key/.test(error.message)
  )
    return new DriverError(
      "configuration",
      `${place} is not a sliver host of this installation; to make it one: nodeyard sliverd install ${host} (${messageOf(error)})`,
      { cause: error },
    );
  return mapError(error, place);
}
