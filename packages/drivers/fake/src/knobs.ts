import { INTEGER, Is, Key, mapOf, type Reader, toNumber, type Values } from "@nodeyard/driver";
import { z } from "zod";

/** Milliseconds. Each call takes a time in this range, drawn from the cloud's seed. Both 0: no timer is set. */
export interface Latency {
  readonly minMs: number;
  readonly maxMs: number;
}

/** Error of the validator and of the loader alike. */
const TIME = "must be milliseconds, or a list of the least and the most of them: [20, 80]";

/** Reads one number or two; undefined for anything else. */
function latencyOf(value: unknown): Latency | undefined {
  const both = Array.isArray(value) ? value : [value, value];
  const [minMs, maxMs] = both.map(toNumber);
  if (both.length !== 2 || minMs === undefined || maxMs === undefined) return undefined;
  return minMs >= 0 && maxMs >= minMs ? { minMs, maxMs } : undefined;
}

/** A key whose value is a time, or a range of times. */
const time = (description: string) =>
  Key.field(
    description,
    { default: 0, unit: "ms" },
    z
      .custom((value) => latencyOf(value) !== undefined, { error: TIME })
      .meta({ type: ["number", "array"], items: { type: "number" } }),
    (at, key): Latency => {
      const latency = latencyOf(at.raw[key] ?? 0);
      if (latency === undefined) at.error(key, TIME);
      return latency ?? { minMs: 0, maxMs: 0 };
    },
  );

/** A key whose value is a probability; the validator checks its range. */
const share = (what: string) =>
  Key.field(
    `Share of ${what} that fail.`,
    { default: 0 },
    z
      .custom((value) => (toNumber(value) ?? -1) >= 0 && (toNumber(value) ?? 2) <= 1, {
        error: "must be a share from 0 to 1",
      })
      .meta({ type: "number" }),
    (at, key) => at.number(key, 0),
  );

/** A number of faults; Infinity: always. */
const count = (what: string) =>
  Key.integer(`How many from the start: ${what}. -1: always.`, { default: 0 }).map((times) =>
    times < 0 ? Number.POSITIVE_INFINITY : times,
  );

/** How the cloud behaves; every knob has a default. Without `fake:` nothing fails and nothing takes time. */
const knobTable = {
  seed: Key.integer("The same seed gives the same cloud.", { default: 1 }),
  // The quota of Nodepool's fake cloud.
  quota: Key.inner(
    Key.section({
      instances: Key.integer("Machines; -1: no limit.", { default: 20 }),
      cores: Key.integer("Cores; -1: no limit.", { default: 100 }),
      ram: Key.integer("Memory; -1: no limit.", { default: 1_000_000, unit: "MiB" }),
    }),
    "What the credential may use.",
  ).map((quota): Partial<typeof quota> => limits(quota)),
  "availability-zones": Key.texts("Zones of the cloud.", {
    default: ["az1", "az2"],
    all: Is.sized(1),
    like: Is.NOT_EMPTY,
  }),
  // A full zone answers 503, as a cloud without free hosts does; the quota answers 403.
  capacity: Key.field(
    "Machines that there is room for, by zone, or by flavor of labels with offerings.",
    { like: Is.FROM_0 },
    mapOf(INTEGER),
    (at, key): Readonly<Record<string, number>> => amounts(at.inner(key)),
  ),
  latency: Key.inner(
    Key.section({
      create: time("From the call to the answer."),
      boot: time("From the answer to a machine that is up."),
      delete: time("Of a delete."),
      read: time("Of looking and listing."),
    }),
    "How long calls take.",
  ),
  errors: Key.inner(
    Key.section({
      create: share("creates"),
      delete: share("deletes"),
      find: share("look-ups"),
      list: share("listings"),
    }),
    "Failures by chance.",
  ),
  // For tests that need one certain failure; `errors` are for long runs.
  faults: Key.inner(
    Key.section({
      "create-fails": count("creates that fail, nothing made"),
      "create-fails-with-external-id": count("creates that fail though the machine was made"),
      "never-active": count("machines that never come up"),
      "ends-in-error": count("machines that end in ERROR"),
      "delete-fails": count("deletes that fail"),
      refused: count("calls that are refused as those of an unknown credential"),
      "delete-leaves-record": count("deletes after which the machine stays listed as DELETED"),
    }),
    "Failures by count.",
  ),
  "consistency-delay": Key.number("For how long listings may show the state before a change.", {
    default: 0,
    unit: "ms",
    like: Is.FROM_0,
  }).as("consistencyDelayMs"),
};

/** Behaviour of the fake cloud: quota, zones, latencies in milliseconds, and faults. */
export interface FakeKnobs extends Values<typeof knobTable> {
  /** Whether a repeated create with the same tag makes a second machine, as in clouds without idempotency tokens. */
  readonly repeatsCreates: boolean;
}
/** Shares of calls that fail, from 0 to 1, by call. */
export type ErrorRates = FakeKnobs["errors"];
/** Numbers of calls that fail from now on; each failure counts down. Infinity: always. */
export type FaultCounts = FakeKnobs["faults"];

/** The optional `fake:` mapping of a provider. */
export const fakeSection = Key.section({
  // `repeatsCreates` has no key: only tests set it.
  knobs: Key.group(knobTable).map((knobs): FakeKnobs => ({ ...knobs, repeatsCreates: false })),
  images: Key.inner(
    Key.section({
      folder: Key.text("Folder that keeps them.", { needed: true, like: Is.NOT_EMPTY }),
      formats: Key.texts("Formats taken, the preferred one first.", { default: ["qcow2"] }).map((formats) =>
        formats.length > 0 ? formats : ["qcow2"],
      ),
    }),
    "Uploads are real copies in a folder; absent: the cloud takes no images.",
    { default: null },
  ),
  journal: Key.text("File that keeps the cloud beyond the process and shares it between processes."),
  loopback: Key.flag(
    "Whether each machine has an address of its own in 127.0.0.0/8, where a server of this machine may answer, and host keys are read.",
    { default: false },
  ),
});

/** No delays and no faults: the behaviour without `fake:`. */
export const INSTANT: FakeKnobs = fakeSection.defaults().knobs;

/** Leaves out negative limits, which mean no limit. */
function limits<Q extends Readonly<Record<string, number>>>(quota: Q): Partial<Q> {
  return Object.fromEntries(Object.entries(quota).filter(([, value]) => value >= 0)) as Partial<Q>;
}

function amounts(from: Reader): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.keys(from.raw).map((name) => [name, from.number(name, Number.POSITIVE_INFINITY)]),
  );
}
