import { createHmac } from "node:crypto";
import {
  type Claim,
  decodeLogin,
  encodeLogin,
  LOGINS,
  type Login,
  type LoginKind,
  loginPath,
  readable,
} from "@nodeyard/model";
import { hexId } from "@nodeyard/runtime";
import { ensurePath, TreeError, treeNow } from "@nodeyard/tree";
import type { OperationHandles } from "./handles.ts";
import { isSecret, newSecret } from "./secrets.ts";

/** Lifetimes, milliseconds. A session lasts a working day, so that people log in once a day and a forgotten browser overnight ends. */
const FOR_MS: Readonly<Record<LoginKind, number>> = { ticket: 10 * 60_000, session: 12 * 3_600_000 };
/** Of one client, by kind; the oldest end for new ones, so that a client that logs in again and again does not fill the tree. */
const MAX_LOGINS = 32;

/** Marks of the texts, so that a ticket is never taken for a session, or for a token (`nyt`). */
const PREFIX: Readonly<Record<LoginKind, string>> = { ticket: "nyl", session: "nys" };
/** Prefix, id of the record, secret: the id leads to the record, so that no other login is compared. */
const TEXT = /^(nyl|nys)_([0-9a-f]{12})_([0-9a-f]{64})$/;

/**
 * Creates a ticket or session with these rights, and returns the secret for its client, which is stored nowhere. `others`: data
 * of all logins, by id, as the view has them; of those the expired ones are deleted on the way, since nothing else deletes them.
 */
export async function createLogin(
  handles: OperationHandles,
  kind: LoginKind,
  claim: Claim,
  others: ReadonlyMap<string, Uint8Array>,
): Promise<{ readonly text: string; readonly login: Login }> {
  const { tree, random } = handles;
  const now = treeNow(handles);
  const id = hexId(random).slice(0, 12);
  const { secret, hash } = newSecret(random);
  const { origin, credential, limit, name, role, labels, tenants } = claim;
  const login: Login = {
    ...{ id, kind, hash, origin, credential, limit, name, role, labels, tenants },
    created: now,
    // It never outlives what it was opened by.
    expires: Math.min(now + FOR_MS[kind], limit ?? Number.POSITIVE_INFINITY),
  };
  for (const old of endedBy(login, others, now)) await endLogin(handles, old);
  await ensurePath(tree, LOGINS);
  await tree.create(loginPath(id), encodeLogin(login));
  return { text: `${PREFIX[kind]}_${id}_${secret}`, login };
}

/** Logins that have expired at `now`, and the oldest ones of a client with too many. Unreadable ones stay: a later release may use them. */
function endedBy(login: Login, others: ReadonlyMap<string, Uint8Array>, now: number): readonly string[] {
  const ended: string[] = [];
  const same: Login[] = [];
  for (const [id, data] of others) {
    const other = readable(() => decodeLogin(id, data));
    if (other !== undefined && other.expires <= now) ended.push(id);
    else if (other?.name === login.name && other.kind === login.kind) same.push(other);
  }
  const spare = same.toSorted((a, b) => b.created - a.created).slice(MAX_LOGINS - 1);
  return [...ended, ...spare.map(({ id }) => id)];
}

/**
 * Ends a login. Returns false when it had ended before; of several concurrent calls only one returns true, by which a ticket is
 * used only once.
 */
export async function endLogin({ tree }: Pick<OperationHandles, "tree">, id: string): Promise<boolean> {
  try {
    await tree.delete(loginPath(id));
    return true;
  } catch (error) {
    if (error instanceof TreeError && error.code === "tree.no_node") return false;
    throw error;
  }
}

/** The id that the text of a ticket or session claims; undefined: it is none. Nothing is checked: who has the id has no secret. */
export function loginId(text: string): string | undefined {
  return TEXT.exec(text)?.[2];
}

/** The login whose text this is, if it is good at `now`, tree time in milliseconds. `data`: its record. */
export function checkLogin(
  text: string,
  kind: LoginKind,
  data: Uint8Array | undefined,
  now: number,
): Login | undefined {
  const [, prefix, id, secret] = TEXT.exec(text) ?? [];
  if (prefix !== PREFIX[kind] || data === undefined) return undefined;
  const login = readable(() => decodeLogin(id!, data));
  if (login === undefined || login.kind !== kind || login.expires <= now) return undefined;
  return isSecret(secret!, login.hash) ? login : undefined;
}

/**
 * What a page shows with each change, so that no other page can make one: it is computed from the secret of the session, which
 * scripts of other pages cannot read, and the secret cannot be computed from it.
 */
export function csrfOf(text: string): string {
  return createHmac("sha256", text).update("csrf").digest("base64url");
}
