import { type FakeCloud, INSTANT } from "@nodeyard/driver-fake";
import type { Clock, Random } from "@nodeyard/runtime";
import type { Fault } from "./faults.ts";
import { between } from "./streams.ts";

type Knobs = FakeCloud["knobs"];

/** A cloud on most days: calls take their time, some fail, listings are a little late. */
export function normalCloud(seed: number, quota: Knobs["quota"]): Knobs {
  const latency = {
    create: { minMs: 10, maxMs: 300 },
    boot: { minMs: 0, maxMs: 2_000 },
    delete: { minMs: 5, maxMs: 500 },
    read: { minMs: 1, maxMs: 100 },
  };
  const errors = { create: 0.1, delete: 0.1, find: 0.05, list: 0.05 };
  return { ...INSTANT, seed, quota, latency, errors, consistencyDelayMs: 500 };
}

type Spell = (knobs: Knobs, cloud: FakeCloud) => Knobs;

const HALF = { create: 0.5, delete: 0.5, find: 0.5, list: 0.5 };

/** Faults that last for some time. */
const SPELLS = {
  "cloud brown-out": (knobs) => ({ ...knobs, errors: HALF }),
  "cloud makes nothing": (knobs) => ({ ...knobs, errors: { ...knobs.errors, create: 1 } }),
  "cloud quota": (knobs, cloud) => ({ ...knobs, quota: { instances: cloud.inspect().length } }),
  "cloud capacity": (knobs) => ({ ...knobs, capacity: { az1: 0, az2: 0 } }),
  "zone without room": (knobs, cloud) => ({
    ...knobs,
    capacity: { [cloud.inspect().length % 2 === 0 ? "az1" : "az2"]: 0 },
  }),
  "type without room": (knobs, cloud) => ({
    ...knobs,
    capacity: cloud.inspect().length % 2 === 0 ? { spot: 0 } : { spot: 0, fixed: 0 },
  }),
  "cloud slow": (knobs) => ({
    ...knobs,
    latency: { ...knobs.latency, read: { minMs: 1_000, maxMs: 20_000 } },
  }),
  "cloud lag": (knobs) => ({ ...knobs, consistencyDelayMs: 5_000 }),
} satisfies Partial<Record<Fault, Spell>>;

/** Faults of the next machine or call. */
const MISHAPS = {
  "machine never up": "neverActive",
  "machine in error": "endsInError",
  "cloud reply lost": "createFailsWithExternalId",
  "delete fails": "deleteFails",
  "delete leaves a record": "deleteLeavesRecord",
} as const satisfies Partial<Record<Fault, keyof FakeCloud["faults"]>>;

export type CloudFault = keyof typeof SPELLS | keyof typeof MISHAPS;
export const CLOUD_FAULTS = [...Object.keys(SPELLS), ...Object.keys(MISHAPS)] as CloudFault[];

/** The faults of one cloud. */
export class CloudFaults {
  readonly #cloud: FakeCloud;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #fair: Knobs;
  #over = false;

  constructor(cloud: FakeCloud, clock: Clock, random: Random) {
    this.#cloud = cloud;
    this.#clock = clock;
    this.#random = random;
    this.#fair = cloud.knobs;
  }

  strike(fault: CloudFault): void {
    if (fault in MISHAPS) {
      this.#cloud.faults[MISHAPS[fault as keyof typeof MISHAPS]] += 1 + Math.floor(this.#random.float() * 3);
      return;
    }
    this.#set(SPELLS[fault as keyof typeof SPELLS](this.#fair, this.#cloud));
    this.#clock.setTimer(between(this.#random, 3_000, 30_000), () => {
      if (!this.#over) this.#set(this.#fair);
    });
  }

  /** Deletes nothing, whatever the faults, until `deleteAgain`. */
  deleteNothing(): void {
    this.#cloud.faults.deleteFails = Number.POSITIVE_INFINITY;
  }

  deleteAgain(): void {
    this.#cloud.faults.deleteFails = 0;
  }

  /**
   * From now on it answers, unless it deletes nothing: how soon a leak goes, and that a request ends, is promised for a cloud that
   * does. Its own clock never jumps, in faults neither, since it is another machine's.
   */
  clear(): void {
    this.#over = true;
    const { faults, errors } = INSTANT;
    const { deleteFails } = this.#cloud.faults;
    const lasting = deleteFails === Number.POSITIVE_INFINITY ? { deleteFails } : {};
    this.#cloud.adjust({ ...this.#fair, errors, faults: { ...faults, ...lasting } });
  }

  /** Faults that are still to come stay. */
  #set(knobs: Knobs): void {
    const { faults } = this.#cloud;
    this.#cloud.adjust({ ...knobs, faults: { ...faults } });
  }
}
