import type { Rspec } from "@nodeyard/sliver-protocol";
import type { Limits } from "./limits.ts";
import type { Traffic } from "./record.ts";

/** Seconds. */
export const DAY = 86_400;
/** The sum is stored again after this share of the budget, so that the store is not written for each packet. */
const STEP = 0.01;

/** Bytes that a sliver's interface has sent since it was made, and the number of the interface. */
export interface Sent {
  readonly cable: number;
  readonly bytes: number;
}

/** The present day. Returns the same object when the new sum need not be stored yet. */
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

/** Whether the day has ended; also when the clock was set back before its beginning, so that no sliver pays for two days. */
function isOver({ began }: Traffic, now: number): boolean {
  return now >= began + DAY || now < began;
}

/** Bytes since the last look. A new cable, or a counter that went back, began at 0. */
function sentSince(before: Traffic, { cable, bytes }: Sent): number {
  return before.cable === cable && bytes >= before.counter ? bytes - before.counter : bytes;
}

/**
 * The days of all names. A name keeps its day whether or not it has a sliver, so that destroying and creating a sliver does not start a new
 * day. Returns the same map when nothing must be stored.
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
 * Rates of a sliver that has reached its threshold: the rest of its budget is spread over the rest of its day, and its guarantee stays.
 * Rounded down to two digits, so that the kernel is called less often.
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

/** 12 345 678 becomes 12 000 000. */
function twoDigits(value: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, value))) - 1);
  return Math.floor(value / unit) * unit;
}
