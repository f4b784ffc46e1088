import { NodeyardError } from "@nodeyard/runtime";

/** Where trials of new builds are kept, one record per image; an image that has never had one has none. */
export const CANARIES = "/nodeyard/canaries";

/** What launches reported of a build. */
export interface BootTally {
  readonly boots: number;
  /** Launches whose machine did not answer. */
  readonly failed: number;
  /** Of the natural logarithms of the boots' seconds, their sum and that of their squares: what mean and spread are of. */
  readonly logs: number;
  readonly squares: number;
}

/** A new build of an image that serves a share of launches until it is promoted or rolled back. */
export interface Canary {
  /** Id of the build on trial; null: none is. */
  readonly candidate: string | null;
  /** Tree time at which its trial began, milliseconds. */
  readonly since: number;
  /** Of launches, 0 to 1. */
  readonly share: number;
  /** Of the build on trial, and of all others that are launched meanwhile. */
  readonly tallies: { readonly candidate: BootTally; readonly stable: BootTally };
  /** Builds that nothing is launched of any more. */
  readonly rejected: readonly string[];
  /** How the last trial ended. */
  readonly last: CanaryEnd | null;
}

export interface CanaryEnd {
  readonly build: string;
  readonly verdict: "promoted" | "rolled-back" | "dropped";
  readonly why: string;
  /** Tree time, milliseconds. */
  readonly at: number;
}

export class CanaryError extends NodeyardError {}

export const noBoots: BootTally = { boots: 0, failed: 0, logs: 0, squares: 0 };

const VERSION = 1;

export function canaryPath(image: string): string {
  return `${CANARIES}/${image}`;
}

/** The image whose record is at `path`; undefined for any other path. */
export function canaryImage(path: string): string | undefined {
  const name = path.startsWith(`${CANARIES}/`) ? path.slice(CANARIES.length + 1) : "";
  return name === "" || name.includes("/") ? undefined : name;
}

export function encodeCanary(canary: Canary): Uint8Array {
  return Buffer.from(JSON.stringify({ v: VERSION, ...canary }));
}

/** Throws CanaryError for a record that is none of a version we read. */
export function decodeCanary(image: string, data: Uint8Array): Canary {
  try {
    const { v, ...canary } = JSON.parse(Buffer.from(data).toString()) as { v?: unknown } & Canary;
    if (v !== VERSION) throw new Error(`it has version ${JSON.stringify(v)}, this Nodeyard reads ${VERSION}`);
    const { candidate, share, since, tallies, rejected } = canary;
    const numbers = [share, since, ...tallyOf(tallies.candidate), ...tallyOf(tallies.stable)];
    const sound =
      (candidate === null || typeof candidate === "string") &&
      numbers.every((number) => typeof number === "number" && Number.isFinite(number)) &&
      rejected.every((build) => typeof build === "string");
    if (!sound) throw new Error("it lacks a field or has one of a wrong type");
    return canary;
  } catch (error) {
    throw new CanaryError(
      "canary.bad_record",
      `the trial of image ${image} cannot be read: ${(error as Error).message}; delete ${canaryPath(image)} and the newest build is launched`,
      { cause: error },
    );
  }
}

/** With one more launch; `ms`: how long its boot took, undefined for one that failed. */
export function counted(tally: BootTally, ms: number | undefined): BootTally {
  if (ms === undefined) return { ...tally, failed: tally.failed + 1 };
  const log = Math.log(Math.max(1, ms) / 1000);
  return {
    ...tally,
    boots: tally.boots + 1,
    logs: tally.logs + log,
    squares: tally.squares + log * log,
  };
}

function tallyOf({ boots, failed, logs, squares }: BootTally): readonly unknown[] {
  return [boots, failed, logs, squares];
}
