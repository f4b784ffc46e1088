import {
  ANY,
  type ApiRole,
  decodeToken,
  encodeToken,
  readable,
  TOKENS,
  type Token,
  tokenPath,
} from "@nodeyard/model";
import { NodeyardError } from "@nodeyard/runtime";
import { ensurePath, orUndefined, TreeError, treeNow } from "@nodeyard/tree";
import type { OperationHandles } from "./handles.ts";
import { type Listing, readAll } from "./listing.ts";
import { isSecret, newSecret } from "./secrets.ts";

/** A token cannot be made or revoked as asked. */
class TokenError extends NodeyardError {}

/** What a token is made with. */
export interface NewToken {
  readonly name: string;
  readonly role: ApiRole;
  /** Labels, and tenants, to which it is limited; ANY: no limit. For a user neither may be empty. */
  readonly labels: readonly string[];
  readonly tenants: readonly string[];
  /** How long it is good, milliseconds. */
  readonly forMs: number;
  /** Who makes it, for people. */
  readonly by: string;
}

/** `nyt_<name>_<64 digits>`: the name leads to the record, so that no other token is compared. */
const TOKEN = /^nyt_([a-z0-9][a-z0-9-]{0,62})_([0-9a-f]{64})$/;
/** It becomes a name of a znode, and a part of the token's text. */
const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;

/**
 * Makes a token, and returns the text that its client shows: it is stored nowhere. A name can be used again when its token has
 * ended. Rejects with TokenError for a name that is in use, or limits that do not fit the role; for a name whose record cannot be
 * read with RecordError.
 */
export async function createToken(
  handles: OperationHandles,
  wanted: NewToken,
): Promise<{ readonly text: string; readonly token: Token }> {
  const { tree, random } = handles;
  check(wanted);
  const { name, role, labels, tenants, forMs, by } = wanted;
  const now = treeNow(handles);
  const { secret, hash } = newSecret(random);
  const token: Token = {
    name,
    role,
    hash,
    labels,
    tenants,
    created: now,
    createdBy: by,
    expires: now + forMs,
    revoked: null,
    revokedBy: null,
  };
  await ensurePath(tree, TOKENS);
  await replaceEnded(handles, token);
  return { text: `nyt_${name}_${secret}`, token };
}

/** By version, so that of two who use a name again one fails. */
async function replaceEnded(handles: OperationHandles, token: Token): Promise<void> {
  const { tree } = handles;
  const path = tokenPath(token.name);
  const found = await orUndefined(tree.get(path));
  if (found === undefined) return void (await tree.create(path, encodeToken(token)));
  const before = decodeToken(token.name, found.data);
  if (before.revoked === null && before.expires > treeNow(handles))
    throw new TokenError(
      "token.exists",
      `there is a token ${token.name}: choose another name, or revoke it with "nodeyard token revoke ${token.name}"`,
    );
  await tree.set(path, encodeToken(token), { version: found.stat.version });
}

/** Throws TokenError. */
function check({ name, role, labels, tenants }: NewToken): void {
  if (!NAME.test(name))
    throw new TokenError(
      "token.bad_name",
      `${JSON.stringify(name)} is no name of a token: 1 to 63 of a-z, 0-9 and "-"; an example: ci-arm`,
    );
  if (role === "user" && (labels.length === 0 || tenants.length === 0))
    throw new TokenError(
      "token.no_scope",
      `a user needs labels and tenants: name them, or all of them with "${ANY}"`,
    );
  if (role === "operator" || role === "admin") {
    if ([...labels, ...tenants].some((one) => one !== ANY))
      throw new TokenError("token.scoped", `the role ${role} is not limited to labels or tenants`);
  }
}

/** All tokens, those included that have ended. */
export function listTokens({ tree }: Pick<OperationHandles, "tree">): Promise<Listing<Token>> {
  return readAll(tree, TOKENS, decodeToken);
}

/** Revokes a token; repeated, it does nothing. The record stays and names who revoked it. An unreadable record is removed: undefined. */
export async function revokeToken(
  handles: OperationHandles,
  name: string,
  by: string,
): Promise<Token | undefined> {
  const { tree } = handles;
  for (;;) {
    const found = NAME.test(name) ? await orUndefined(tree.get(tokenPath(name))) : undefined;
    if (found === undefined)
      throw new TokenError("token.unknown", `there is no token ${name}; see "nodeyard token list"`);
    const { version } = found.stat;
    try {
      const token = readable(() => decodeToken(name, found.data));
      if (token === undefined) return void (await tree.delete(tokenPath(name), { version }));
      if (token.revoked !== null) return token;
      const revoked: Token = { ...token, revoked: treeNow(handles), revokedBy: by };
      await tree.set(tokenPath(name), encodeToken(revoked, found.data), { version });
      return revoked;
    } catch (error) {
      if (!(error instanceof TreeError) || error.code !== "tree.bad_version") throw error;
    }
  }
}

/** The name that the text of a token claims; undefined: it is no token. */
export function tokenName(text: string): string | undefined {
  return TOKEN.exec(text)?.[1];
}

/**
 * The token whose text this is, if it is good at `now`, tree time in milliseconds; undefined: it is wrong, has ended, or gives no
 * rights. `data`: its record; undefined: there is none. Called for each request, so it reads nothing.
 */
export function checkToken(text: string, data: Uint8Array | undefined, now: number): Token | undefined {
  const [, name, secret] = TOKEN.exec(text) ?? [];
  if (name === undefined || secret === undefined || data === undefined) return undefined;
  const token = validToken(name, data, now);
  return token !== undefined && isSecret(secret, token.hash) ? token : undefined;
}

/** What the record of a token says, unless that has ended at `now`. */
export function validToken(name: string, data: Uint8Array | undefined, now: number): Token | undefined {
  const token = data && readable(() => decodeToken(name, data));
  return token === undefined || token.revoked !== null || token.expires <= now ? undefined : token;
}
