import type { Rspec } from "@nodeyard/sliver-protocol";
import type { Limits } from "./limits.ts";

/**
 * What a sliver has sent in its day, which begins when it first is seen and lasts as long as one (docs/contract/slivers.md,
 * "Daily traffic").
 */
export interface Traffic {
  /** Whose day it is: the next user of a name begins a day of its own. 0 where documents have no generations. */
  readonly generation: number;
  /** Seconds since the Unix epoch. */
  readonly began: number;
  /** Bytes, up to when the counter of its cable stood at `counter`. */
  readonly used: number;
  /** Each start makes a new cable, whose counter is 0. */
  readonly cable: number;
  readonly counter: number;
}

/** Seconds. */
export const DAY = 86_400;
/** Part of the budget that has to be sent before it is written down: a store is not to be written for each packet. */
const STEP = 0.01;

/** Bytes that a sliver's interface, identified by its number, has sent since it exists. */
export interface Sent {
  readonly cable: number;
  readonly bytes: number;
}

/** The day as it stands now; the same object when a new sum need not be remembered yet. */
export function countTraffic(
  before: Traffic | undefined,
  generation: number,
  { cable, bytes }: Sent,
  { netDay }: Pick<Rspec, "netDay">,
  now: number,
): Traffic {
  const fresh = { generation, began: now, used: 0, cable, counter: bytes };
  if (before === undefined || before.generation !== generation || isOver(before, now)) return fresh;
  const more = sentSince(before, { cable, bytes });
  const same = before.cable === cable && bytes >= before.counter;
  if (same && (more === 0 || more < STEP * 1024 * netDay)) return before;
  return { ...before, used: before.used + more, cable, counter: bytes };
}

/** Also when the clock was set back before its beginning: no sliver pays for two days. */
function isOver({ began }: Traffic, now: number): boolean {
  return now >= began + DAY || now < began;
}

function sentSince(before: Traffic, { cable, bytes }: Sent): number {
  return before.cable === cable && bytes >= before.counter ? bytes - before.counter : bytes;
}

/**
 * All days of a node. A name keeps its day while it lasts, whether or not it has a sliver, so that destroying and
 * creating again does not begin a new one. The same map when nothing need be remembered.
 */
export function countAll(
  before: ReadonlyMap<string, Traffic>,
  found: readonly {
    readonly name: string;
    readonly generation: number;
    readonly sent: Sent;
    readonly rspec: Rspec;
  }[],
  now: number,
): ReadonlyMap<string, Traffic> {
  const next = new Map([...before].filter(([, traffic]) => !isOver(traffic, now)));
  for (const { name, generation, sent, rspec } of found)
    next.set(name, countTraffic(before.get(name), generation, sent, rspec, now));
  const same = next.size === before.size && [...next].every(([name, one]) => before.get(name) === one);
  return same ? before : next;
}

/**
 * Rates of a sliver that has sent its threshold: what is left of its budget lasts for what is left of its day, and its
 * guarantee stays. Rounded down to two digits, so that the kernel is called only when something changed.
 */
export function dailyRates(
  net: Limits["net"],
  { netDay, netDayThreshold }: Pick<Rspec, "netDay" | "netDayThreshold">,
  traffic: Traffic,
  sent: Sent | undefined,
  now: number,
): Limits["net"] {
  const used = traffic.used + (sent === undefined ? 0 : sentSince(traffic, sent));
  if (netDay === 0 || isOver(traffic, now) || used < 1024 * Math.min(netDay, netDayThreshold)) return net;
  const left = Math.max(0, 1024 * netDay - used);
  const ceil = twoDigits((8 * left) / Math.max(1, traffic.began + DAY - now));
  return { ...net, ceil: Math.min(net.ceil, Math.max(net.rate, ceil)) };
}

function twoDigits(value: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, value))) - 1);
  return Math.floor(value / unit) * unit;
}
