import { createHash } from "node:crypto";
import { wire } from "@nodeyard/zookeeper";
import { type AccessEntry, entriesOf, type Identity, Permission, permits } from "../engine/index.ts";
import type { Client, Hub } from "./hub.ts";

const { ErrorCode, OpCode } = wire;

/** Longest credentials, bytes: they are kept for as long as the connection lasts, and copied into access lists. */
const MAX_CREDENTIALS = 256;

/**
 * `addauth`: the client proves to be somebody on this connection. Of the schemes only `digest` is there; whoever sends
 * another one gets that error and loses the connection, as ZooKeeper's clients expect.
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

/** As ZooKeeper's DigestAuthenticationProvider: `user:base64(sha1("user:password"))`. */
function digestIdentity(credentials: Uint8Array): Identity {
  const text = Buffer.from(credentials).toString("utf8");
  const hash = createHash("sha1").update(text).digest("base64");
  return { scheme: "digest", id: `${userOf(text)}:${hash}` };
}

/** Whoever may read or administer a znode sees its list, but hashes of passwords only those who administer it. */
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

/** Whom the server takes the client for: its address, and what it has proved. */
export function clientInfoOf(client: Client): wire.ClientInfo[] {
  const digests = client.identities.map(({ scheme, id }) => ({ authScheme: scheme, user: userOf(id) }));
  return [{ authScheme: "ip", user: client.peer.name.replace(/:\d+$/, "") }, ...digests];
}

function userOf(id: string): string {
  return id.split(":", 1)[0] ?? "";
}
