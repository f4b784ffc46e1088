import type { FailureRecord } from "@nodeyard/model";
import type { Tally } from "./failure-rule.ts";

/** What is known of the launches of a label or an offering, here and in the record that launchers share. */
export interface Failures {
  readonly tally: Tally;
  /** Of an offering that is closed. Its `until` is by the steady clock here. */
  readonly pause?: FailureRecord["pause"];
  /** The request that tries the offering, handled by this or another launcher. */
  readonly prober?: string | undefined;
}

/** Why nothing is launched of an offering, of a label in all places, or at a provider without quota. */
export interface Closed {
  readonly code: "offering.failing" | "offering.budget" | "capacity.refused";
  /** Steady milliseconds from which on one request may try a launch. */
  readonly until: number;
  /** Failures or refusals in a row. */
  readonly failures: number;
  /** The request that tries in this launcher, until its handler ends. */
  trying: string | undefined;
  /** The request that tries according to the shared record, of this or another launcher. */
  readonly prober: string | undefined;
  /** Launches have failed so often (`isHopeless`) that requests are declined instead of made to wait. */
  readonly hopeless: boolean;
  /** Tree time, milliseconds, of the first of the failures. */
  readonly since: number;
  /** Kind and text of the last error. */
  readonly kind: string;
  readonly error: string;
}

/** What the scheduler knows of failures: which gates are closed, and the failures that count against each offering and label. */
export interface Gates {
  /** By offeringKey, labelKey or quotaKey; open gates have no entry. */
  readonly closed: Map<string, Closed>;
  /** By offeringKey or labelKey. */
  readonly failures: Map<string, Failures>;
}
