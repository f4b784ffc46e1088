import { isObject, number, odd, oneOf, optional, type ValuesOf, word } from "./fields.ts";
import { ownRecord } from "./own-record.ts";

/** Where each launcher and builder reports how the things that it looks after stand: an ephemeral record by member. */
export const STANDINGS = "/nodeyard/standings";

/** What a standing can be of. */
export const standingKinds = [
  "provider",
  "host",
  "label",
  "image",
  "launcher",
  "builder",
  "sliver-machine",
] as const;
/** Of a standing. */
export type StandingKind = (typeof standingKinds)[number];

/**
 * All states, the worst first. `failing`: nothing of it can be used. `degraded`: a part of it cannot, or what is used is not what is configured.
 * `unknown`: it has not been tried yet.
 */
export const standingStates = ["failing", "degraded", "unknown", "good"] as const;
/** How well a thing does its work. */
export type StandingState = (typeof standingStates)[number];

/** A pool that is served, with what its nodes have in common: by this, mixed sets are put together. */
export interface PoolOffer {
  readonly provider: string;
  readonly name: string;
  readonly labels: readonly string[];
  /** `hosts`: machines that exist, of which there are no more. `slots`: parts of nodes of the labels `backing`. `machines`: launched ones. */
  readonly kind: "hosts" | "slots" | "machines";
  readonly backing: readonly string[];
  /** Of which each node has one; empty: unknown, or none. */
  readonly zones: readonly string[];
  /** Its `node-attributes` that are texts or numbers. */
  readonly attributes: Readonly<Record<string, string>>;
}

/** One thing as one member sees it. */
export interface StandingFact {
  readonly kind: StandingKind;
  /** Unique in its kind; of a host or a sliver machine `<provider>/<key>`. */
  readonly name: string;
  readonly state: StandingState;
  /** Why, for programs; its text is in operations/standings.ts. Codes are never renamed. */
  readonly code: string;
  /** Of the state, tree milliseconds. */
  readonly since: number | null;
  /** The first line of the error of the far end; null: there is none. */
  readonly cause: string | null;
  /** When it is tried again, tree milliseconds; null: only an event changes it. */
  readonly nextTry: number | null;
  /** Of a host, of a sliver machine, and of a label where that is about one provider. */
  readonly provider?: string | undefined;
  /** Those that a provider offers, or that a host has. */
  readonly labels?: readonly string[] | undefined;
  /** Of a provider that is open. */
  readonly pools?: readonly PoolOffer[] | undefined;
}

/** One fact; what `more` leaves out is null. A `since` of null is set by the reporter. */
export function standingFact(
  kind: StandingKind,
  name: string,
  state: StandingState,
  code: string,
  more: Partial<StandingFact> = {},
): StandingFact {
  return { kind, name, state, code, since: null, cause: null, nextTry: null, ...more };
}

/** What a member reports, whole at each change. */
export interface StandingReport {
  readonly hostname: string;
  readonly facts: readonly StandingFact[];
  /** Good things that did not fit into the record. */
  readonly leftOut: number;
}

/** Only what is read as it was meant counts: a later release may report what this one does not know. */
const facts = (value: unknown): readonly StandingFact[] | typeof odd =>
  Array.isArray(value) ? value.filter(isFact) : odd;
const kindOf = oneOf(...standingKinds);
const stateOf = oneOf(...standingStates);
const isText = (value: unknown) => typeof value === "string";
const isMoment = (value: unknown) => value === null || Number.isFinite(value);

function isFact(value: unknown): value is StandingFact {
  if (!isObject(value)) return false;
  const { kind, name, state, code, since, cause, nextTry, provider, labels, pools } = value;
  return (
    kindOf(kind, () => {}) !== odd &&
    stateOf(state, () => {}) !== odd &&
    isText(name) &&
    isText(code) &&
    isMoment(since) &&
    (cause === null || isText(cause)) &&
    isMoment(nextTry) &&
    (provider === undefined || isText(provider)) &&
    (labels === undefined || isTexts(labels)) &&
    (pools === undefined || (Array.isArray(pools) && pools.every(isOffer)))
  );
}

const isTexts = (value: unknown) => Array.isArray(value) && value.every(isText);

function isOffer(value: unknown): value is PoolOffer {
  if (!isObject(value)) return false;
  const { provider, name, labels, kind, backing, zones, attributes } = value;
  return (
    [provider, name, kind].every(isText) &&
    [labels, backing, zones].every(isTexts) &&
    isObject(attributes) &&
    Object.values(attributes).every(isText)
  );
}

const fields = {
  hostname: optional("hostname", "", word),
  facts: optional<readonly StandingFact[]>("facts", [], facts),
  leftOut: optional("left_out", 0, number),
};
const record = ownRecord<ValuesOf<typeof fields>>("standings of", fields);

/** Where a member reports; `member` is its name below `/nodeyard/members`. */
export function standingPath(member: string): string {
  return `${STANDINGS}/${member}`;
}

/** Of a report, bytes: a znode holds a mebibyte at best. */
const MOST_BYTES = 256 * 1024;

/** At most `most` bytes: what is good is left out first, from the end, and counted. */
export function encodeStandings({ hostname, facts: all }: StandingReport, most = MOST_BYTES): Uint8Array {
  const sorted = all.toSorted((a, b) => severity(a.state) - severity(b.state));
  let kept = sorted.length;
  for (;;) {
    const data = record.encode({ hostname, facts: sorted.slice(0, kept), leftOut: sorted.length - kept });
    if (data.length <= most || kept === 0) return data;
    kept = Math.min(kept - 1, Math.floor((kept * most) / data.length));
  }
}

/** A report; one that cannot be read says nothing. Never throws. */
export function decodeStandings(data: Uint8Array): StandingReport {
  return record.readable(data);
}

/** 0 is the worst. */
export function severity(state: StandingState): number {
  return standingStates.indexOf(state);
}

/** The first line of an error, without what a terminal would obey; at most 500 characters. */
export function firstLine(text: string): string {
  const line = text.split("\n").find((one) => one.trim() !== "") ?? "";
  return line.trim().slice(0, 500);
}
