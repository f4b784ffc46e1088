import type { Limits } from "../../core/limits.ts";
import type { Names } from "../lxc/names.ts";
import type { BatchLine } from "./edge/batch.ts";
import { safe } from "./rules.ts";

/** All traffic of slivers to the network passes this device, so that slivers can use rates that others leave idle. */
export const UPLINK_QUEUE = "ny-up";
/** Range of HTB's quantum: bytes that a class may send per round. */
const LEAST_QUANTUM = 1600;
const MOST_QUANTUM = 60_000;
/** Lowest rate in bit/s; below it not even one packet would be sent in reasonable time. */
const LEAST_RATE = 8_000;

/** A filter's priority belongs to one protocol. Those of IPv4 are the indices of slivers. */
const PRIO6 = 16_384;

const THERE = /File exists|Exclusivity flag on/;
/**
 * Error messages for missing objects, which differ between versions of iproute2 and the kernel. "doesn't exists" is about a new device
 * without a queue.
 */
export const GONE =
  /No such file|No such process|Cannot find|does not exist|doesn't exist|not found|No such device|Invalid handle|Invalid argument/i;

/**
 * Makes a sliver's cable, with both ends on the host, and the common device. May be repeated. Nobody asks for addresses on a cable, because
 * both ends have one hardware address: a sliver that asks from thousands of addresses would fill the machine's only table of neighbours.
 */
export function cableCommands({ index, device, inner, address }: Names, gateway: string): BatchLine[] {
  const end = `address 02:00:00:00:${byte(index >> 8)}:${byte(index & 255)} arp off`;
  return [
    { text: `link add ${UPLINK_QUEUE} up type ifb`, mayFail: THERE },
    { text: `route add ${blackhole(address)}`, mayFail: THERE },
    { text: `link add ${device} ${end} type veth peer name ${inner} ${end}`, mayFail: THERE },
    ...[
      `link set ${device} up`,
      `address replace ${gateway}/32 dev ${device}`,
      `route replace ${address}/32 dev ${device}`,
    ].map((text) => ({ text })),
  ];
}

/** The route of addresses that no sliver has: without it they would leave by the default route. A route of the host's own comes before it. */
export function blackhole(address: string): string {
  return `blackhole ${address.split(".").slice(0, 2).join(".")}.0.0/16 metric 65535`;
}

/** The host's IPv6 address on every cable, as GATEWAY is its IPv4 one. */
export const GATEWAY6 = "fe80::1";

/**
 * IPv6 of a cable that exists. The host's end has one address, which is not derived from its hardware address. May be repeated.
 */
export function cable6Commands(device: string, address6: string): BatchLine[] {
  return [
    `address replace ${GATEWAY6}/64 dev ${device} nodad`,
    `route replace ${safe("IPv6 address", address6)}/128 dev ${device}`,
  ].map((text) => ({ text }));
}

/** Makes the classes for all slivers on the common device. `link` in bit/s. May be repeated while slivers send. */
export function frameCommands(link: number): BatchLine[] {
  return [
    // Added once, because it cannot be changed.
    { text: `qdisc add dev ${UPLINK_QUEUE} root handle 1: htb default fffe`, mayFail: THERE },
    {
      text: `class replace dev ${UPLINK_QUEUE} parent 1: classid 1:ffff htb rate ${bits(link)} burst 256k`,
    },
    // For packets that belong to no sliver; the rules drop them.
    {
      text: `class replace dev ${UPLINK_QUEUE} parent 1:ffff classid 1:fffe htb rate ${bits(0)} ceil ${bits(link)}`,
    },
  ];
}

/** Sets the rates of a sliver: its ceiling in both directions; towards the network also its guarantee and its share of the rest. */
export function shapeCommands(names: Names, { net }: Limits): BatchLine[] {
  const { index } = names;
  const [device, address] = [safe("name of an interface", names.device), safe("IPv4 address", names.address)];
  const quantum = Math.min(MOST_QUANTUM, LEAST_QUANTUM * net.share);
  const id = index.toString(16);
  const { address6 } = names;
  // Removes the filters first: replacing them when their class is new would leave second ones.
  const filters = unshapeCommands(names).slice(0, -1);
  return [
    ...filters,
    ...[
      `class replace dev ${UPLINK_QUEUE} parent 1:ffff classid 1:${id} htb rate ${bits(net.rate)} ceil ${bits(net.ceil)} quantum ${quantum}`,
      `qdisc replace dev ${device} root tbf rate ${bits(net.ceil)} burst ${burst(net.ceil)} latency 50ms`,
      `qdisc replace dev ${device} ingress`,
      `filter replace dev ${device} parent ffff: protocol ip prio 1 handle 800::800 u32 match ip src ${address}/32 action mirred egress redirect dev ${UPLINK_QUEUE}`,
      `filter replace dev ${UPLINK_QUEUE} parent 1: protocol ip prio ${index} u32 match ip src ${address}/32 flowid 1:${id}`,
      ...(address6 === undefined
        ? []
        : [
            `filter replace dev ${device} parent ffff: protocol ipv6 prio 2 handle 801::800 u32 match ip6 src ${safe("IPv6 address", address6)}/128 action mirred egress redirect dev ${UPLINK_QUEUE}`,
            `filter replace dev ${UPLINK_QUEUE} parent 1: protocol ipv6 prio ${PRIO6 + index} u32 match ip6 src ${address6}/128 flowid 1:${id}`,
          ]),
    ].map((text) => ({ text })),
  ];
}

/** Removes the sliver's parts of the common device. Its cable's own queues vanish with the cable. */
export function unshapeCommands({ index, address6 }: Pick<Names, "index" | "address6">): BatchLine[] {
  return [
    ...(address6 === undefined
      ? []
      : [
          {
            text: `filter del dev ${UPLINK_QUEUE} parent 1: protocol ipv6 prio ${PRIO6 + index} u32`,
            mayFail: GONE,
          },
        ]),
    { text: `filter del dev ${UPLINK_QUEUE} parent 1: protocol ip prio ${index} u32`, mayFail: GONE },
    { text: `class del dev ${UPLINK_QUEUE} classid 1:${index.toString(16)}`, mayFail: GONE },
  ];
}

/** Bytes sent by each sliver, by its index, from `tc -s class show`, which has no JSON output for HTB. */
export function sentByIndex(shown: string): ReadonlyMap<number, number> {
  const found = shown.matchAll(/^class htb 1:([0-9a-f]{1,3}) .*\n\s*Sent (\d+) bytes/gm);
  return new Map([...found].map(([, minor, bytes]) => [Number.parseInt(minor!, 16), Number(bytes)]));
}

function byte(value: number): string {
  return value.toString(16).padStart(2, "0");
}

function bits(rate: number): string {
  return `${Math.max(LEAST_RATE, Math.round(rate))}bit`;
}

/** Bytes that may be sent at once: 10 ms of the rate, because of the resolution of the kernel's timer, and at least two packets. */
function burst(rate: number): number {
  return Math.max(3200, Math.ceil(rate / 800));
}
