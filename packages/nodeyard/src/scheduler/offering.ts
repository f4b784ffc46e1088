/** What machines are bought by: where, and of which kind. Labels of one type share their luck. */
export interface Offering {
  readonly provider: string;
  /** Null: the provider has no zones, or chooses by itself. */
  readonly az: string | null;
  /** The driver's word for flavour and market, else the label's name. */
  readonly type: string;
}

/** One text per offering, and its name in the tree. */
export function offeringKey({ provider, az, type }: Offering): string {
  return [provider, az ?? "", type].map(encodeURIComponent).join("|");
}

/** A label in all its places: it has a budget of its own. No offering has this key. */
export function labelKey(label: string): string {
  return `label|${encodeURIComponent(label)}`;
}

/** An offering, or a label in all places, that failed too often: nothing is launched of it for a while. */
export interface OfferingFact {
  readonly why: "failures" | "budget";
  /** Steady milliseconds, from which one request may try. */
  readonly until: number;
  /** The request that tries now, of whatever launcher. */
  readonly prober: string | null;
  /** Waiting has not helped: requests are declined at once. */
  readonly hopeless: boolean;
  /** Tree time, milliseconds, at which it failed first. */
  readonly since: number;
  readonly failures: number;
  /** Kind and text of the last error. */
  readonly kind: string;
  readonly error: string;
}

/** Whether one request may try what is closed. The scheduler plans by it, and each launch is let in by it: they must never disagree. */
export function mayTry({ until }: Pick<OfferingFact, "until">, steady: number): boolean {
  return until <= steady;
}

/** What the scheduler keeps of offerings that fail. */
export interface Offerings {
  readonly closed: Map<string, { readonly fact: OfferingFact; due: boolean }>;
  /** Our own request that tries an offering, until its handler ends. */
  readonly trying: Map<string, string>;
}
