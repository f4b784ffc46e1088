import { UnsafeTextError } from "../../errors.ts";
import type { SliverRef } from "../contract.ts";

/** Names and numbers of a sliver on this machine, all derived from its index. */
export interface Names {
  readonly index: number;
  /** Name of its login, and its host name. */
  readonly user: string;
  /** First of its 65,536 user and group ids. */
  readonly idBase: number;
  /** User id of its login, as this machine sees it. */
  readonly uid: number;
  /** The host's end of its network cable. */
  readonly device: string;
  /** The sliver's end, until it is moved inside. */
  readonly inner: string;
  readonly address: string;
  /** Absent: slivers of this machine have no IPv6. */
  readonly address6?: string;
  /** nftables chain of its network rules. */
  readonly chain: string;
  /** Port of this machine that is forwarded to its SSH server, if slivers are published. */
  readonly published?: number;
}

/** Number of ids of a sliver. */
export const IDS = 65_536;
/** User id of the login inside the sliver. */
export const LOGIN_ID = 1000;
/**
 * Start of the last sixteenth of signed 32-bit ids. It is the only large range that neither systemd (which uses 524288 to 1879048191 for
 * containers) nor the sub-ids of `useradd` use.
 */
export const FIRST_ID = 0x7000_0000;
/** Ids of sliverd's own unprivileged processes, before those of the first sliver. */
export const OWN_IDS = { slivers: FIRST_ID + 1, tcp: FIRST_ID + 2, images: FIRST_ID + 3 } as const;
/** Most slivers of a machine. Addresses and id ranges are reserved for that many. */
export const HIGHEST_INDEX = 4000;
/**
 * The manager that holds the lock of this folder manages the slivers of this machine. There is one for all, because names are the same for
 * all.
 */
export const MACHINE_LOCK = "/run/nodeyard-slivers";

/**
 * The private addresses (ULA) of slivers whose IPv4 network begins with these two numbers. They are the same on every machine, as the IPv4
 * ones are: outside they are translated.
 */
export function privatePrefix(network: string): string {
  const [first = 0, second = 0] = network.split(".").map(Number);
  return `fd6e:7964:${(first * 256 + second).toString(16)}::/64`;
}

/**
 * `network`: the first two numbers of the addresses, such as `10.213`. `prefix`: of the IPv6 addresses, such as `fd6e:7964:ad5::/64`.
 * Throws UnsafeTextError.
 */
export function namesOf(index: number, network: string, firstPort?: number, prefix?: string): Names {
  if (!Number.isInteger(index) || index < 1 || index > HIGHEST_INDEX)
    throw new UnsafeTextError(`${index} is not an index of a sliver (1 to ${HIGHEST_INDEX})`);
  const idBase = FIRST_ID + index * IDS;
  return {
    index,
    user: `ny-${String(index).padStart(2, "0")}`,
    idBase,
    uid: idBase + LOGIN_ID,
    device: `ny-v${index}`,
    inner: `ny-p${index}`,
    address: `${network}.${index >> 8}.${index & 255}`,
    ...(prefix === undefined ? {} : { address6: prefix.replace("/64", index.toString(16)) }),
    chain: `s${index}`,
    ...(firstPort === undefined ? {} : { published: firstPort + index }),
  };
}

/** The mark in the names of folders, subvolumes and cgroups. It shows to which incarnation they belong, after any crash. */
export function markName({ index, incarnation }: SliverRef): string {
  if (!Number.isSafeInteger(incarnation) || incarnation < 0)
    throw new UnsafeTextError(`${incarnation} is not an incarnation`);
  return `ny-${index}.${incarnation}`;
}

/** Undefined for names that are no marks. */
export function readMarkName(name: string): SliverRef | undefined {
  const match = /^ny-([1-9]\d{0,3})\.(0|[1-9]\d{0,15})$/.exec(name);
  if (match === null) return undefined;
  const [index, incarnation] = [Number(match[1]), Number(match[2])];
  return index <= HIGHEST_INDEX && Number.isSafeInteger(incarnation) ? { index, incarnation } : undefined;
}

/**
 * The first user in a file of the host with an id from the range of slivers; undefined when there is none. `ranges`: the file contains
 * ranges (/etc/subuid: name:first:count), otherwise single ids (/etc/passwd: name:x:id).
 */
export function clashes(text: string, ranges: boolean): string | undefined {
  const end = FIRST_ID + (HIGHEST_INDEX + 1) * IDS;
  for (const line of text.split("\n")) {
    const fields = line.split(":");
    const first = Number(ranges ? fields[1] : fields[2]);
    const count = ranges ? Number(fields[2]) : 1;
    if (fields.length < 3 || !Number.isSafeInteger(first) || !Number.isSafeInteger(count)) continue;
    if (first < end && first + count > FIRST_ID) return fields[0];
  }
  return undefined;
}
