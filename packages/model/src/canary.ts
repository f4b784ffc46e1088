import { type Field, isObject, number, odd, optional, strict, text, type ValuesOf, words } from "./fields.ts";
import { ownRecord } from "./own-record.ts";

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

/** How a trial ended. */
export interface CanaryEnd {
  readonly build: string;
  readonly verdict: "promoted" | "rolled-back" | "dropped";
  readonly why: string;
  /** Tree time, milliseconds. */
  readonly at: number;
}

/** Nothing reported yet. */
export const noBoots: BootTally = { boots: 0, failed: 0, logs: 0, squares: 0 };

const isTally = (value: unknown): value is BootTally =>
  isObject(value) && Object.keys(noBoots).every((key) => number(value[key], () => {}) !== odd);
const tallies: Field<{ readonly candidate: BootTally; readonly stable: BootTally }>["read"] = (value) =>
  isObject(value) && isTally(value.candidate) && isTally(value.stable)
    ? { candidate: value.candidate, stable: value.stable }
    : odd;

const fields = {
  /** Id of the build on trial; null: none is. */
  candidate: strict("candidate", text),
  /** Tree time at which its trial began, milliseconds. */
  since: strict("since", number),
  /** Of launches, 0 to 1. */
  share: strict("share", number),
  /** Of the build on trial, and of all others that are launched meanwhile. */
  tallies: strict("tallies", tallies),
  /** Builds that nothing is launched of any more. */
  rejected: strict("rejected", words),
  /** How the last trial ended. */
  last: optional<CanaryEnd | null>("last", null, (value) => (isObject(value) ? (value as never) : null)),
};
const remedy = (image: string) => `; delete ${canaryPath(image)} and the newest build is launched`;
const kind = ownRecord("trial of image", fields, remedy);

/** A new build of an image that serves a share of launches until it is promoted or rolled back. */
export type Canary = ValuesOf<typeof fields>;

/** Where the trials of an image are. */
export function canaryPath(image: string): string {
  return `${CANARIES}/${image}`;
}

/** The image whose record is at `path`; undefined for any other path. */
export function canaryImage(path: string): string | undefined {
  const name = path.startsWith(`${CANARIES}/`) ? path.slice(CANARIES.length + 1) : "";
  return name === "" || name.includes("/") ? undefined : name;
}

/** `stored`: the record as it was read, of one that is changed. What a later release wrote into it stays, byte for byte. */
export function encodeCanary(canary: Canary, stored?: Uint8Array): Uint8Array {
  return kind.encode(canary, stored);
}

/** @throws RecordError for a record that is not one of a version that this release reads */
export function decodeCanary(image: string, data: Uint8Array): Canary {
  return kind.decode(image, data);
}

/** With one more launch; `ms`: how long its boot took, undefined for one that failed. */
export function withBoot(tally: BootTally, ms: number | undefined): BootTally {
  if (ms === undefined) return { ...tally, failed: tally.failed + 1 };
  const log = Math.log(Math.max(1, ms) / 1000);
  return {
    ...tally,
    boots: tally.boots + 1,
    logs: tally.logs + log,
    squares: tally.squares + log * log,
  };
}
