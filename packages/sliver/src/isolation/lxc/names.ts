import { UnsafeTextError } from "../../errors.ts";

/** Everything of a sliver that has a name or a number on this machine. All of it derives from the index. */
export interface Names {
  readonly index: number;
  /** Its login, and its host name. */
  readonly user: string;
  /** First of its 65,536 ids. */
  readonly idBase: number;
  /** Of its login, as this machine sees it. */
  readonly uid: number;
  /** The host's end of its network cable. */
  readonly device: string;
  /** The sliver's end of it, until it is inside. */
  readonly inner: string;
  readonly address: string;
  /** Chain of its network rules. */
  readonly chain: string;
  /** Port of this machine that leads to its SSH server, where slivers are published. */
  readonly published?: number;
}

/** Ids that a sliver has for itself. */
export const IDS = 65_536;
/** Of the login, inside. */
export const LOGIN_ID = 1000;
/**
 * The last sixteenth of what a signed 32-bit id can be: the only large range that neither systemd (which hands out
 * 524288 to 1879048191 to containers) nor `useradd`'s sub-ids use.
 */
export const FIRST_ID = 0x7000_0000;
/** Of processes of ours that need no rights: the ids before those of the first sliver. */
export const OWN_IDS = { slivers: FIRST_ID + 1, tcp: FIRST_ID + 2, images: FIRST_ID + 3 } as const;
/** Slivers that a machine can have at most: so many addresses and id ranges are set aside. */
export const HIGHEST_INDEX = 4000;
/** Who holds its lock makes and ends the slivers of this machine. One for all: so are the names. */
export const MACHINE_LOCK = "/run/nodeyard-slivers";

/** `network` is the first two numbers of the addresses, as `10.213`. Throws UnsafeTextError. */
export function namesOf(index: number, network: string, firstPort?: number): Names {
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
    chain: `s${index}`,
    ...(firstPort === undefined ? {} : { published: firstPort + index }),
  };
}

/** The mark that folders, subvolumes and cgroups carry in their name: whose they are, readable after any crash. */
export function markName({
  index,
  incarnation,
}: {
  readonly index: number;
  readonly incarnation: number;
}): string {
  if (!Number.isSafeInteger(incarnation) || incarnation < 0)
    throw new UnsafeTextError(`${incarnation} is not an incarnation`);
  return `ny-${index}.${incarnation}`;
}

/** Undefined for what is not ours. */
export function readMarkName(name: string): { index: number; incarnation: number } | undefined {
  const match = /^ny-([1-9]\d{0,3})\.(0|[1-9]\d{0,15})$/.exec(name);
  if (match === null) return undefined;
  const [index, incarnation] = [Number(match[1]), Number(match[2])];
  return index <= HIGHEST_INDEX && Number.isSafeInteger(incarnation) ? { index, incarnation } : undefined;
}

/**
 * The first user in a file of the host who has an id that belongs to slivers; undefined: none. `ranges`: the file gives out ranges
 * (/etc/subuid: name:first:count), else single ids (/etc/passwd: name:x:id).
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
