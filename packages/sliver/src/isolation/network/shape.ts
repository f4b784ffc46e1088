import type { Limits } from "../../core/limits.ts";
import type { Names } from "../lxc/names.ts";
import type { BatchLine } from "./edge/batch.ts";
import { safe } from "./rules.ts";

/** What all slivers send passes this device, so that they can borrow from each other what is idle. */
export const UPLINK_QUEUE = "ny-up";
/** tc counts bytes of a round in each class. */
const LEAST_QUANTUM = 1600;
const MOST_QUANTUM = 60_000;
/** Below one packet in a while nothing would ever leave. bit/s. */
const LEAST_RATE = 8_000;

const THERE = /File exists|Exclusivity flag on/;
/** iproute2 and the kernel say it in many ways; "doesn't exists" is of a device that was made and has no queue yet. */
export const GONE =
  /No such file|Cannot find|does not exist|doesn't exist|not found|No such device|Invalid handle|Invalid argument/i;

/** A sliver's cable, both ends here, and the device that all of them send through. Safe to repeat. */
export function cableCommands({ device, inner, address }: Names, gateway: string): BatchLine[] {
  return [
    { text: `link add ${UPLINK_QUEUE} up type ifb`, mayFail: THERE },
    { text: `link add ${device} type veth peer name ${inner}`, mayFail: THERE },
    ...[
      `link set ${device} up`,
      `address replace ${gateway}/32 dev ${device}`,
      `route replace ${address}/32 dev ${device}`,
    ].map((text) => ({ text })),
  ];
}

/** Classes of all slivers' queues towards the world. `link` in bit/s. Safe to repeat while slivers send. */
export function frameCommands(link: number): BatchLine[] {
  return [
    // Made once, since it cannot be changed.
    { text: `qdisc add dev ${UPLINK_QUEUE} root handle 1: htb default fffe`, mayFail: THERE },
    {
      text: `class replace dev ${UPLINK_QUEUE} parent 1: classid 1:ffff htb rate ${bits(link)} burst 256k`,
    },
    // For packets of no sliver, which the rules drop.
    {
      text: `class replace dev ${UPLINK_QUEUE} parent 1:ffff classid 1:fffe htb rate ${bits(0)} ceil ${bits(link)}`,
    },
  ];
}

/** Rates of one sliver: both ways its ceiling, and towards the world its guarantee and share of what is left. */
export function shapeCommands(names: Names, { net }: Limits): BatchLine[] {
  const { index } = names;
  const [device, address] = [safe("name of an interface", names.device), safe("IPv4 address", names.address)];
  const quantum = Math.min(MOST_QUANTUM, LEAST_QUANTUM * net.share);
  const id = index.toString(16);
  // A filter that is replaced where its chain is new leaves a second one behind.
  const [filter] = unshapeCommands(names);
  return [
    filter!,
    ...[
      `class replace dev ${UPLINK_QUEUE} parent 1:ffff classid 1:${id} htb rate ${bits(net.rate)} ceil ${bits(net.ceil)} quantum ${quantum}`,
      `qdisc replace dev ${device} root tbf rate ${bits(net.ceil)} burst ${burst(net.ceil)} latency 50ms`,
      `qdisc replace dev ${device} ingress`,
      `filter replace dev ${device} parent ffff: protocol ip prio 1 handle 800::800 u32 match ip src ${address}/32 action mirred egress redirect dev ${UPLINK_QUEUE}`,
      `filter replace dev ${UPLINK_QUEUE} parent 1: protocol ip prio ${index} u32 match ip src ${address}/32 flowid 1:${id}`,
    ].map((text) => ({ text })),
  ];
}

/** Its cable takes its own queues along; these are the ones on the common device. */
export function unshapeCommands({ index }: Pick<Names, "index">): BatchLine[] {
  return [
    { text: `filter del dev ${UPLINK_QUEUE} parent 1: protocol ip prio ${index} u32`, mayFail: GONE },
    { text: `class del dev ${UPLINK_QUEUE} classid 1:${index.toString(16)}`, mayFail: GONE },
  ];
}

/** Bytes that each sliver has sent through its class, by its index, from `tc -s class show`: of HTB it has no JSON. */
export function sentByIndex(shown: string): ReadonlyMap<number, number> {
  const found = shown.matchAll(/^class htb 1:([0-9a-f]{1,3}) .*\n\s*Sent (\d+) bytes/gm);
  return new Map([...found].map(([, minor, bytes]) => [Number.parseInt(minor!, 16), Number(bytes)]));
}

function bits(rate: number): string {
  return `${Math.max(LEAST_RATE, Math.round(rate))}bit`;
}

/** Bytes that may leave at once: 10 ms, so that the kernel's timer keeps up, and never less than two packets. */
function burst(rate: number): number {
  return Math.max(3200, Math.ceil(rate / 800));
}
