import { InvalidAccessList } from "../errors.ts";

/** Bits of an entry's `perms` (ZooKeeper's ZooDefs.Perms). `create` and `delete` are about children of the znode. */
export const Permission = { read: 1, write: 2, create: 4, delete: 8, admin: 16 } as const;

/** Whom a server knows a client as, or whom an entry of an access list means. */
export interface Identity {
  readonly scheme: string;
  readonly id: string;
}

export interface AccessEntry extends Identity {
  readonly perms: number;
}

/** An access list as a znode keeps it. Undefined is the usual one, "everybody may do everything": it costs one comparison. */
export type AccessList = readonly AccessEntry[] | undefined;

/** Who asks for an operation. */
export interface Caller {
  /** May do everything, whatever the access lists say. */
  readonly trusted: boolean;
  /** What it has proved to be, by `addauth` for instance. */
  readonly identities: readonly Identity[];
}

/** The roles of the process that owns the tree. */
export const TRUSTED: Caller = { trusted: true, identities: [] };

const ALL = 31;
/** Entries of one list. Without a bound a short request could ask for one entry of each identity thousands of times. */
const MAX_ENTRIES = 100;
const WORLD = "world";
const ANYONE = "anyone";

/** Whether the list gives the caller at least one of the permissions. */
export function permits(acl: AccessList, permissions: number, caller: Caller): boolean {
  if (acl === undefined || caller.trusted) return true;
  return acl.some(
    (entry) =>
      (entry.perms & permissions) !== 0 &&
      (isWorld(entry) ||
        caller.identities.some(({ scheme, id }) => scheme === entry.scheme && id === entry.id)),
  );
}

/**
 * The list that a znode keeps when `wanted` is asked for, by the rules of ZooKeeper's PrepRequestProcessor.fixupACL:
 * entries of scheme `auth` become one for each identity of the caller. Throws InvalidAccessList.
 */
export function resolveAccess(path: string, wanted: readonly AccessEntry[], caller: Caller): AccessList {
  const kept: AccessEntry[] = [];
  const seen = new Set<string>();
  for (const { perms, scheme, id } of wanted) {
    const key = `${perms} ${scheme}:${id}`;
    if (seen.has(key)) continue;
    seen.add(key);
    if (scheme === "auth") {
      if (caller.identities.length === 0)
        throw new InvalidAccessList(path, 'the scheme "auth" needs a client that has authenticated itself');
      for (const identity of caller.identities) kept.push({ perms, ...identity });
    } else {
      if (!isKept(scheme, id))
        throw new InvalidAccessList(
          path,
          `${scheme}:${id} is neither world:anyone, auth nor digest:USER:HASH`,
        );
      kept.push({ perms, scheme, id });
    }
    if (kept.length > MAX_ENTRIES)
      throw new InvalidAccessList(path, `it has more than ${MAX_ENTRIES} entries`);
  }
  const [first] = kept;
  if (first === undefined) throw new InvalidAccessList(path, "it is empty");
  return kept.length === 1 && first.perms === ALL && isWorld(first) ? undefined : kept;
}

/** The list as clients are shown it. */
export function entriesOf(acl: AccessList): readonly AccessEntry[] {
  return acl ?? [{ perms: ALL, scheme: WORLD, id: ANYONE }];
}

function isKept(scheme: string, id: string): boolean {
  if (scheme === "digest") return /^[^:]*:[^:]+:*$/.test(id);
  return scheme === WORLD && id === ANYONE;
}

function isWorld({ scheme, id }: Identity): boolean {
  return scheme === WORLD && id === ANYONE;
}
