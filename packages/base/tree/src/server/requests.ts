import { wire } from "@nodeyard/zookeeper";
import type { OpResult } from "../contract.ts";
import type { SessionRow } from "../embedded/store.ts";
import { Permission, permits, type TreeOp } from "../engine/index.ts";
import { CommitFailed, type TreeError } from "../errors.ts";
import { answerAcl, authenticate, clientInfoOf } from "./access.ts";
import { wireCode } from "./codes.ts";
import type { Client, Hub } from "./hub.ts";
import { setWatches, unwatch, watch } from "./watching.ts";

const { AddWatchMode, ErrorCode, OpCode } = wire;

/** Bits of the create flags 0 to 3. Higher flags are containers and TTL znodes, which this server does not support. */
const EPHEMERAL = 1;
const SEQUENTIAL = 2;
/** Length field before each name in a list, in bytes. */
const NAME_OVERHEAD = 4;

/**
 * Answers one request of a client with a session: the one table of what this server does for each operation code of ZooKeeper's
 * protocol.
 *
 * Each request gets one reply, in the order of requests, by which clients match the two; otherwise the connection is cut. Refusals are
 * error codes of the protocol. Containers, TTL znodes and reconfiguration are answered with UNIMPLEMENTED.
 */
export function answer(
  hub: Hub,
  client: Client,
  session: SessionRow,
  xid: number,
  request: wire.Request,
): void {
  switch (request.type) {
    case OpCode.create:
    case OpCode.create2:
    case OpCode.delete:
    case OpCode.setData:
    case OpCode.setAcl:
    case OpCode.check:
      write(hub, client, session, xid, request);
      return;
    case OpCode.multi:
      commit(hub, client, session, xid, request);
      return;
    case OpCode.exists:
    case OpCode.getData:
    case OpCode.getChildren:
    case OpCode.getChildren2:
      read(hub, client, xid, request);
      return;
    case OpCode.multiRead:
      readMany(hub, client, xid, request);
      return;
    case OpCode.ping:
      client.reply(xid, ErrorCode.ok);
      return;
    case OpCode.sync:
      client.reply(xid, ErrorCode.ok, (w) => wire.writeResponse(w, OpCode.sync, { path: request.path }));
      return;
    case OpCode.closeSession:
      // Before the reply: it is sent when the end of the session is durable, so a client that has it may rely on its locks being free.
      hub.closeSession(session.id, client);
      client.reply(xid, ErrorCode.ok);
      client.finish();
      return;
    case OpCode.addWatch:
      addWatch(hub, client, xid, request);
      return;
    case OpCode.checkWatches:
    case OpCode.removeWatches:
      client.reply(xid, unwatch(hub, client, request) ? ErrorCode.ok : ErrorCode.noWatcher);
      return;
    case OpCode.setWatches:
    case OpCode.setWatches2:
      // A reply with an error would leave the client without watches that it believes to have. A lost connection makes it ask again.
      if (setWatches(hub, client, request)) client.reply(xid, ErrorCode.ok);
      else client.cut("watches");
      return;
    case OpCode.auth:
      authenticate(client, xid, request);
      return;
    default:
      readOther(hub, client, session, xid, request);
  }
}

/** Answers the rarer requests. */
function readOther(hub: Hub, client: Client, session: SessionRow, xid: number, request: wire.Request): void {
  const { core } = hub;
  if (request.type === OpCode.getAcl) {
    answerAcl(hub, client, xid, request.path);
  } else if (request.type === OpCode.getEphemerals) {
    // Of this session only, as in ZooKeeper.
    const ephemerals = core.ephemerals(session.id).filter((path) => path.startsWith(request.path));
    client.reply(xid, ErrorCode.ok, (w) => wire.writeResponse(w, request.type, { ephemerals }));
  } else if (request.type === OpCode.whoAmI) {
    const clientInfo = clientInfoOf(client);
    client.reply(xid, ErrorCode.ok, (w) => wire.writeResponse(w, request.type, { clientInfo }));
  } else client.reply(xid, ErrorCode.unimplemented);
}

/** Requests that change one znode. */
type WriteRequest =
  | wire.CreateRequest
  | wire.DeleteRequest
  | wire.SetDataRequest
  | wire.SetAclRequest
  | wire.CheckRequest;

/**
 * Applies one operation. The reply has its own refusal as error code, unlike that of a multi. `commit` reports every refusal as
 * CommitFailed, so the reason is taken out of it.
 */
function write(hub: Hub, client: Client, session: SessionRow, xid: number, request: WriteRequest): void {
  const op = opOf(request);
  if (typeof op === "number") {
    client.reply(xid, op);
    return;
  }
  const outcome = hub.core.commit(session.id, [op], client);
  if (outcome.error !== undefined) {
    client.reply(xid, wireCode(reasonOf(outcome.error)));
    return;
  }
  const response = responseOf(request.type, outcome.results[0]!);
  client.reply(xid, ErrorCode.ok, (w) => wire.writeResponse(w, request.type, response as never));
}

/**
 * Answers a multi. When it is refused, the reply has no error itself: each operation has one, and those before the refused one have "ok".
 */
function commit(
  hub: Hub,
  client: Client,
  session: SessionRow,
  xid: number,
  request: wire.MultiRequest,
): void {
  const ops: TreeOp[] = [];
  for (const [index, wanted] of request.ops.entries()) {
    const op = opOf(wanted);
    if (typeof op === "number") {
      // An operation that this server does not know. Nothing was applied yet, so the whole multi is refused at its place.
      replyRefused(client, xid, request.ops.length, index, op);
      return;
    }
    ops.push(op);
  }
  const outcome = hub.core.commit(session.id, ops, client);
  if (outcome.error instanceof CommitFailed) {
    const { index, reason } = outcome.error;
    replyRefused(client, xid, ops.length, index, wireCode(reason));
  } else if (outcome.error !== undefined) {
    // Not about one operation: the store failed, or the session is gone.
    client.reply(xid, wireCode(outcome.error));
  } else {
    const results = outcome.results.map(multiResult);
    client.reply(xid, ErrorCode.ok, (w) => wire.writeResponse(w, OpCode.multi, { results }));
  }
}

/** ZooKeeper servers turn a create2 within a multi into a create, so they answer it without a Stat; this server does the same. */
function multiResult(result: OpResult): wire.MultiResult {
  if (result.op === "create") return { type: OpCode.create, path: result.path };
  if (result.op === "set") return { type: OpCode.setData, stat: result.stat };
  return { type: result.op === "delete" ? OpCode.delete : OpCode.check };
}

/**
 * Answers a refused multi as ZooKeeper does: "ok" for the operations before the refused one although nothing was applied, and
 * RUNTIMEINCONSISTENCY for those behind it.
 */
function replyRefused(client: Client, xid: number, count: number, index: number, code: number): void {
  const results = Array.from({ length: count }, (_, at): wire.MultiResult => {
    const err = at < index ? ErrorCode.ok : at === index ? code : ErrorCode.runtimeInconsistency;
    return { type: "error", err };
  });
  client.reply(xid, ErrorCode.ok, (w) => wire.writeResponse(w, OpCode.multi, { results }));
}

function reasonOf(error: TreeError): TreeError {
  return error instanceof CommitFailed ? error.reason : error;
}

/**
 * The operation of a request, or the error code that refuses it. Paths and rights are the tree's to check, which does it in ZooKeeper's
 * order.
 */
function opOf(request: wire.MultiOpRequest | wire.SetAclRequest): TreeOp | number {
  switch (request.type) {
    case OpCode.create:
    case OpCode.create2:
      if (request.flags < 0 || request.flags > (EPHEMERAL | SEQUENTIAL)) return ErrorCode.unimplemented;
      return {
        op: "create",
        path: request.path,
        data: request.data,
        acl: request.acl,
        ephemeral: (request.flags & EPHEMERAL) !== 0,
        sequential: (request.flags & SEQUENTIAL) !== 0,
      };
    case OpCode.setData:
      return { op: "set", path: request.path, data: request.data, ...versionOf(request.version) };
    case OpCode.setAcl:
      return { op: "setAcl", path: request.path, acl: request.acl, ...versionOf(request.version) };
    case OpCode.delete:
      return { op: "delete", path: request.path, ...versionOf(request.version) };
    case OpCode.check:
      return { op: "check", path: request.path, ...versionOf(request.version) };
    default:
      return ErrorCode.unimplemented;
  }
}

/** On the wire -1 means any version. */
function versionOf(version: number): { version?: number } {
  return version === -1 ? {} : { version };
}

/** Only create2 answers with a Stat; the older create answers with the path alone. */
function responseOf(type: wire.Request["type"], result: OpResult): object {
  if (result.op === "create")
    return type === OpCode.create ? { path: result.path } : { path: result.path, stat: result.stat };
  if (result.op === "set") return { stat: result.stat };
  return {};
}

/** Answers a read, and sets a watch if the client wants one. */
function read(hub: Hub, client: Client, xid: number, request: wire.ReadRequest): void {
  const { core } = hub;
  const { path, type } = request;
  const stat = core.stat(path);
  // ZooKeeper lets every client check for existence, whatever the access list says.
  if (type !== OpCode.exists && !permits(core.acl(path), Permission.read, client)) {
    client.reply(xid, ErrorCode.noAuth);
    return;
  }
  // Only `exists` sets a watch on a missing znode.
  if (request.watch && (stat !== undefined || type === OpCode.exists)) {
    // As in ZooKeeper `exists` and `getData` set the same watch, and both kinds of getChildren the other.
    const kind = type === OpCode.exists || type === OpCode.getData ? "data" : "child";
    if (!watch(hub, client, kind, path)) {
      client.reply(xid, ErrorCode.quotaExceeded);
      return;
    }
  }
  if (stat === undefined) {
    client.reply(xid, ErrorCode.noNode);
    return;
  }
  const response =
    type === OpCode.exists
      ? { stat }
      : type === OpCode.getData
        ? { data: core.content(path), stat }
        : { children: core.children(path), stat };
  client.reply(xid, ErrorCode.ok, (w) => wire.writeResponse(w, type, response as never));
}

/** Answers a multiRead. A short request can name a large znode thousands of times, so the size is checked while the reply is built. */
function readMany(hub: Hub, client: Client, xid: number, request: wire.MultiReadRequest): void {
  const results: wire.MultiResult[] = [];
  let bytes = 0;
  for (const op of request.ops) {
    const result = readOne(hub, client, op);
    if ("data" in result) bytes += result.stat.dataLength;
    else if ("children" in result) for (const name of result.children) bytes += NAME_OVERHEAD + name.length;
    if (bytes > hub.limits.maxQueuedBytes) {
      client.reply(xid, ErrorCode.quotaExceeded);
      return;
    }
    results.push(result);
  }
  client.reply(xid, ErrorCode.ok, (w) => wire.writeResponse(w, OpCode.multiRead, { results }));
}

function readOne({ core }: Hub, client: Client, op: wire.MultiOpRequest): wire.MultiResult {
  if (op.type !== OpCode.getData && op.type !== OpCode.getChildren)
    return { type: "error", err: ErrorCode.unimplemented };
  const stat = core.stat(op.path);
  if (stat === undefined) return { type: "error", err: ErrorCode.noNode };
  if (!permits(core.acl(op.path), Permission.read, client)) return { type: "error", err: ErrorCode.noAuth };
  if (op.type === OpCode.getChildren) return { type: op.type, children: core.children(op.path) };
  return { type: op.type, data: core.content(op.path) as Buffer, stat };
}

/** Sets a persistent watch (ZooKeeper 3.6 and later). */
function addWatch(hub: Hub, client: Client, xid: number, request: wire.AddWatchRequest): void {
  const { mode, path } = request;
  if (mode !== AddWatchMode.persistent && mode !== AddWatchMode.persistentRecursive) {
    client.reply(xid, ErrorCode.badArguments);
    return;
  }
  const kind = mode === AddWatchMode.persistent ? "persistent" : "recursive";
  if (!watch(hub, client, kind, path)) {
    client.reply(xid, ErrorCode.quotaExceeded);
    return;
  }
  client.reply(xid, ErrorCode.ok, (w) => wire.writeResponse(w, OpCode.addWatch, { err: 0 }));
}
