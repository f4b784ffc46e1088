import { InvalidAccessList } from "../errors.ts";

/** Bits of an entry's `perms` (ZooKeeper's ZooDefs.Perms). `create` and `delete` concern the children of the znode. */
export const Permission = { read: 1, write: 2, create: 4, delete: 8, admin: 16 } as const;

/** An identity: of a client, or in an entry of an access list. */
export interface Identity {
  readonly scheme: string;
  readonly id: string;
}

/** One entry of an access list: the permissions (bits of `Permission`) of one identity. */
export interface AccessEntry extends Identity {
  readonly perms: number;
}

/**
 * The access list of a znode. Undefined means ZooKeeper's default "world:anyone, all permissions", so that checking it costs one
 * comparison.
 */
export type AccessList = readonly AccessEntry[] | undefined;

/** The client that asks for an operation. */
export interface Caller {
  /** May do everything; access lists are not checked. */
  readonly trusted: boolean;
  /** Identities that the client has proved, by `addauth` for instance. */
  readonly identities: readonly Identity[];
}

/** The caller for roles of the process that has the tree open. */
export const TRUSTED: Caller = { trusted: true, identities: [] };

/** All bits of `Permission`. */
const ALL = 31;
/**
 * Most entries of one list. Each `auth` entry expands to all identities of the client, so a short request could otherwise make a huge list.
 */
const MAX_ENTRIES = 100;
const WORLD = "world";
const ANYONE = "anyone";

/** Whether the list grants the caller at least one of the permissions. */
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
 * The list to store for a requested list, by the rules of ZooKeeper's PrepRequestProcessor.fixupACL: each entry of scheme
 * `auth` becomes one entry for each identity of the caller. Throws InvalidAccessList.
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

/** The list in the form that clients see. */
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
