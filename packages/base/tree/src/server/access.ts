import { createHash } from "node:crypto";
import { wire } from "@nodeyard/zookeeper";
import { type AccessEntry, entriesOf, type Identity, Permission, permits } from "../engine/index.ts";
import type { Client, Hub } from "./hub.ts";

const { ErrorCode, OpCode } = wire;

/** Longest credentials in bytes. The server keeps them for the life of the connection and copies them into access lists. */
const MAX_CREDENTIALS = 256;

/**
 * Handles `addauth`: the client proves an identity for this connection. The server supports only the scheme `digest`. For
 * any other scheme it answers AUTHFAILED and closes the connection, which ZooKeeper's clients expect.
 */
export function authenticate(client: Client, xid: number, request: wire.AuthRequest): void {
  const { scheme, auth } = request;
  if (scheme === "digest" && auth.length <= MAX_CREDENTIALS && client.identify(digestIdentity(auth))) {
    client.reply(xid, ErrorCode.ok);
    return;
  }
  client.reply(xid, ErrorCode.authFailed);
  client.finish();
}

/** As in ZooKeeper's DigestAuthenticationProvider: `user:base64(sha1("user:password"))`. */
function digestIdentity(credentials: Uint8Array): Identity {
  const text = Buffer.from(credentials).toString("utf8");
  const hash = createHash("sha1").update(text).digest("base64");
  return { scheme: "digest", id: `${userOf(text)}:${hash}` };
}

/** Clients that may read or administer a znode see its access list. Only clients that may administer it see password hashes. */
export function answerAcl({ core }: Hub, client: Client, xid: number, path: string): void {
  const stat = core.stat(path);
  if (stat === undefined) {
    client.reply(xid, ErrorCode.noNode);
    return;
  }
  const list = core.acl(path);
  if (!permits(list, Permission.read | Permission.admin, client)) {
    client.reply(xid, ErrorCode.noAuth);
    return;
  }
  const entries = entriesOf(list);
  const acl = permits(list, Permission.admin, client) ? entries : entries.map(withoutHash);
  client.reply(xid, ErrorCode.ok, (w) => wire.writeResponse(w, OpCode.getAcl, { acl, stat }));
}

function withoutHash(entry: AccessEntry): AccessEntry {
  return entry.scheme === "digest" ? { ...entry, id: `${userOf(entry.id)}:x` } : entry;
}

/** The client's identities for `whoAmI`: its address and its proved identities. */
export function clientInfoOf(client: Client): wire.ClientInfo[] {
  const digests = client.identities.map(({ scheme, id }) => ({ authScheme: scheme, user: userOf(id) }));
  return [{ authScheme: "ip", user: client.peer.name.replace(/:\d+$/, "") }, ...digests];
}

function userOf(id: string): string {
  return id.split(":", 1)[0] ?? "";
}
