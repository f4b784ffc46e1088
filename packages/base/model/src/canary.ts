import { type Field, isObject, number, odd, optional, strict, text, type ValuesOf, words } from "./fields.ts";
import { ownRecord } from "./own-record.ts";

/** Folder of the trials of new builds, one record per image. An image that never had a trial has no record. */
export const CANARIES = "/nodeyard/canaries";

/** Results of the launches from a build. */
export interface BootTally {
  readonly boots: number;
  /** Launches whose machine did not become reachable. */
  readonly failed: number;
  /** Sum of the natural logarithms of the boot times in seconds, and sum of their squares: mean and variance follow from them. */
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

const isTally = (value: unknown): value is BootTally =>
  isObject(value) &&
  ["boots", "failed", "logs", "squares"].every((key) => number(value[key], () => {}) !== odd);
const tallies: Field<{ readonly candidate: BootTally; readonly stable: BootTally }>["read"] = (value) =>
  isObject(value) && isTally(value.candidate) && isTally(value.stable)
    ? { candidate: value.candidate, stable: value.stable }
    : odd;

const fields = {
  /** Id of the build on trial; null when there is none. */
  candidate: strict("candidate", text),
  /** Tree time at which the trial began, in milliseconds. */
  since: strict("since", number),
  /** Share of launches that use the build on trial, 0 to 1. */
  share: strict("share", number),
  /** Results of the build on trial, and of all other builds launched in the same time. */
  tallies: strict("tallies", tallies),
  /** Ids of the builds from which nothing is launched any more. */
  rejected: strict("rejected", words),
  /** How the last trial ended. */
  last: optional<CanaryEnd | null>("last", null, (value) => (isObject(value) ? (value as never) : null)),
};
const remedy = (image: string) => `; delete ${canaryPath(image)} and the newest build is launched`;
const kind = ownRecord("trial of image", fields, remedy);

/** The trial of a new build: it serves a share of the launches until it is promoted or rolled back. */
export type Canary = ValuesOf<typeof fields>;

/** Path of the trials of an image. */
export function canaryPath(image: string): string {
  return `${CANARIES}/${image}`;
}

/** The image whose record is at `path`; undefined for any other path. */
export function canaryImage(path: string): string | undefined {
  const name = path.startsWith(`${CANARIES}/`) ? path.slice(CANARIES.length + 1) : "";
  return name === "" || name.includes("/") ? undefined : name;
}

/** `stored`: the record as read, when it is changed. Fields that a later release wrote stay byte for byte. */
export function encodeCanary(canary: Canary, stored?: Uint8Array): Uint8Array {
  return kind.encode(canary, stored);
}

/** @throws RecordError for a record of another version or with invalid fields */
export function decodeCanary(image: string, data: Uint8Array): Canary {
  return kind.decode(image, data);
}
