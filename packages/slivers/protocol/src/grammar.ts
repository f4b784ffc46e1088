import { GrammarError } from "./errors.ts";

/**
 * Names of slivers and accounts. No character has a meaning for a shell, a path, nft or passwd (rule 11). Three names are reserved for
 * callers that are not slivers. The limit of 32 characters is that of PlanetLab's slice names.
 */
export const NAME = /^(?!(?:root|control|policy)$)[a-z][a-z0-9_]{0,31}$/;

/** Ids of nodes: host names, UUIDs, numbers of PLC. */
export const NODE_ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

/** Image: a plain name or a digest, never a path. */
export const IMAGE = /^(sha256:[0-9a-f]{64}|[a-z0-9][a-z0-9_-]*(\.[a-z0-9_-]+)*)$/;

/** What a machine has by a name of its owner's: a class of devices, a cache. */
export const CLASS = /^[a-z][a-z0-9_-]{0,31}$/;

/** Where a cache may be in a sliver: neither over programs and their settings, nor where the manager mounts something. */
export const CACHE_PATH =
  /^\/(?!(?:bin|boot|dev|etc|lib(?:32|64|x32)?|proc|run|sbin|sys|usr)(?:\/|$))[A-Za-z0-9_+-][A-Za-z0-9._+-]*(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._+-]+)*$/;

const KEY_TYPES: ReadonlySet<string> = new Set([
  "ssh-ed25519",
  "ssh-rsa",
  "ecdsa-sha2-nistp256",
  "ecdsa-sha2-nistp384",
  "ecdsa-sha2-nistp521",
  "sk-ssh-ed25519@openssh.com",
  "sk-ecdsa-sha2-nistp256@openssh.com",
]);

/** Number of length-prefixed fields of each type of key (RFC 4253 6.6, RFC 5656 3.1, RFC 8709 4, OpenSSH PROTOCOL.u2f). */
const KEY_FIELDS: Readonly<Record<string, number>> = {
  "ssh-ed25519": 2,
  "sk-ecdsa-sha2-nistp256@openssh.com": 4,
};

/**
 * Normalizes a public key line to `type base64`: drops the comment and checks that the data is a key of that type. A line with options is
 * refused, because dropping options could extend what the key may do. Throws GrammarError.
 */
export function sshKey(line: string): string {
  const match = /^([a-z0-9@.-]+)[ \t]+([A-Za-z0-9+/]+={0,2})(?:[ \t][^\r\n\0]*)?$/.exec(line.trim());
  const type = match?.[1] ?? "";
  if (match === null || !KEY_TYPES.has(type))
    throw new GrammarError(
      `${JSON.stringify(line.slice(0, 40))} is not a public key; write "type base64", without options`,
    );
  const blob = Buffer.from(match[2]!, "base64");
  const fields = fieldsOf(blob);
  if (fields?.[0]?.toString("latin1") !== type || fields.length !== (KEY_FIELDS[type] ?? 3))
    throw new GrammarError(`the key ${JSON.stringify(line.slice(0, 40))} is damaged: its data is no ${type}`);
  return `${type} ${blob.toString("base64")}`;
}

/** The length-prefixed strings of `blob`; undefined when they do not fill it exactly. */
function fieldsOf(blob: Buffer): Buffer[] | undefined {
  const fields: Buffer[] = [];
  for (let at = 0; at < blob.length; ) {
    if (at + 4 > blob.length) return undefined;
    const end = at + 4 + blob.readUInt32BE(at);
    if (end > blob.length) return undefined;
    fields.push(blob.subarray(at + 4, end));
    at = end;
  }
  return fields;
}

/** A resource of a sliver. All code uses these names; all amounts are whole numbers. */
export type Resource = keyof typeof UNITS;

/**
 * Resources and their units. Names and units of the wire profiles are translated at the edge (docs/contract/slivers.md, "Loans"). The
 * second half has no names in those profiles.
 */
export const UNITS = {
  /** 1: the sliver may run and be logged in to; 0: it is suspended. */
  enabled: "boolean",
  /** CPU that the sliver has under contention; at most what admission allows. */
  cpuGuarantee: "per mille of one CPU",
  /** Weight for the CPU that guarantees leave over. */
  cpuShare: "1/32 of a default share",
  /** Whole cores reserved for the sliver. */
  cpuCores: "cores",
  /** 1: the sliver may also use cores that no sliver has reserved. */
  cpuCoresBestEffort: "boolean",
  netGuarantee: "bit/s",
  netCap: "bit/s",
  netShare: "weight",
  /** The same for exempt destinations (formerly Internet2). */
  net2Guarantee: "bit/s",
  net2Cap: "bit/s",
  net2Share: "weight",
  netDay: "KiB per day",
  netDayThreshold: "KiB per day",
  net2Day: "KiB per day",
  net2DayThreshold: "KiB per day",
  disk: "KiB",

  /** 0: no cap. */
  cpuCap: "per mille of one CPU",
  memoryGuarantee: "KiB",
  /** 0: no cap, here and below. */
  memoryCap: "KiB",
  pids: "processes",
  connections: "connections",
  ioRead: "bytes/s",
  ioWrite: "bytes/s",
  ioReadOps: "operations/s",
  ioWriteOps: "operations/s",
  /** Part of the disk's time while others want it too; 1 to 1000, 100 is usual. */
  ioWeight: "weight",
} as const;

/** All resources. */
export const RESOURCES = Object.keys(UNITS) as readonly Resource[];

/** An amount for every resource. */
export type Rspec = Readonly<Record<Resource, number>>;

/** Largest amount. Sums over all slivers of a machine stay exact in a JavaScript number. */
export const MAX_AMOUNT = 1_000_000_000_000;

/** Whether a name is the name of a resource. */
export function isResource(name: string): name is Resource {
  return Object.hasOwn(UNITS, name);
}
