import type { Limits } from "../../core/index.ts";
import type { Names } from "../lxc/names.ts";

/** What all slivers send passes this device, so that they can borrow from each other what is idle. */
export const UPLINK_QUEUE = "ny-up";
/** tc counts bytes of a round in each class. */
const LEAST_QUANTUM = 1600;
const MOST_QUANTUM = 60_000;
/** Below one packet in a while nothing would ever leave. bit/s. */
const LEAST_RATE = 8_000;

/** Made once, since it cannot be changed. */
export const FRAME_QUEUE = `qdisc add dev ${UPLINK_QUEUE} root handle 1: htb default fffe`;

/** Classes of all slivers' queues towards the world. `link` in bit/s. */
export function frameCommands(link: number): string[] {
  return [
    `class replace dev ${UPLINK_QUEUE} parent 1: classid 1:ffff htb rate ${bits(link)} burst 256k`,
    // Nobody's packets: what the rules are about to drop.
    `class replace dev ${UPLINK_QUEUE} parent 1:ffff classid 1:fffe htb rate ${bits(0)} ceil ${bits(link)}`,
  ];
}

/** Rates of one sliver: both ways its ceiling, and towards the world its guarantee and share of what is left. */
export function shapeCommands({ index, device, address }: Names, { net }: Limits): string[] {
  const quantum = Math.min(MOST_QUANTUM, LEAST_QUANTUM * net.share);
  const id = index.toString(16);
  return [
    `class replace dev ${UPLINK_QUEUE} parent 1:ffff classid 1:${id} htb rate ${bits(net.rate)} ceil ${bits(net.ceil)} quantum ${quantum}`,
    `qdisc replace dev ${device} root tbf rate ${bits(net.ceil)} burst ${burst(net.ceil)} latency 50ms`,
    `qdisc replace dev ${device} ingress`,
    `filter replace dev ${device} parent ffff: protocol ip prio 1 handle 800::800 u32 match ip src ${address}/32 action mirred egress redirect dev ${UPLINK_QUEUE}`,
    `filter replace dev ${UPLINK_QUEUE} parent 1: protocol ip prio ${index} u32 match ip src ${address}/32 flowid 1:${id}`,
  ];
}

/** Its cable takes its own queues along; these are the ones on the common device. */
export function unshapeCommands({ index }: Names): string[] {
  return [
    `filter del dev ${UPLINK_QUEUE} parent 1: protocol ip prio ${index} u32`,
    `class del dev ${UPLINK_QUEUE} classid 1:${index.toString(16)}`,
  ];
}

function bits(rate: number): string {
  return `${Math.max(LEAST_RATE, Math.round(rate))}bit`;
}

/** Bytes that may leave at once: 10 ms, so that the kernel's timer keeps up, and never less than two packets. */
function burst(rate: number): number {
  return Math.max(3200, Math.ceil(rate / 800));
}
