import { ProtocolError } from "../errors.ts";
import type { MultiOpRequest, Request, SetWatchesRequest } from "./messages.ts";
import { OpCode } from "./op-code.ts";
import type { JuteReader } from "./reader.ts";
import { readAcl, writeAcl } from "./records.ts";
import type { JuteWriter } from "./writer.ts";

/** Writes a request's body; the header is the caller's. */
export function writeRequest(w: JuteWriter, request: Request): void {
  switch (request.type) {
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createTtl:
      w.string(request.path);
      w.buffer(request.data);
      writeAcl(w, request.acl);
      w.int(request.flags);
      if (request.type === OpCode.createTtl) w.longNumber(request.ttl);
      return;
    case OpCode.delete:
    case OpCode.check:
      w.string(request.path);
      w.int(request.version);
      return;
    case OpCode.exists:
    case OpCode.getData:
    case OpCode.getChildren:
    case OpCode.getChildren2:
      w.string(request.path);
      w.bool(request.watch);
      return;
    case OpCode.setData:
      w.string(request.path);
      w.buffer(request.data);
      w.int(request.version);
      return;
    case OpCode.getAcl:
    case OpCode.sync:
    case OpCode.getAllChildrenNumber:
    case OpCode.getEphemerals:
      w.string(request.path);
      return;
    case OpCode.setAcl:
      w.string(request.path);
      writeAcl(w, request.acl);
      w.int(request.version);
      return;
    case OpCode.multi:
    case OpCode.multiRead:
      writeMulti(w, request.ops);
      return;
    case OpCode.checkWatches:
    case OpCode.removeWatches:
      w.string(request.path);
      w.int(request.watcherType);
      return;
    case OpCode.addWatch:
      w.string(request.path);
      w.int(request.mode);
      return;
    case OpCode.auth:
      w.int(0);
      w.string(request.scheme);
      w.buffer(request.auth);
      return;
    case OpCode.sasl:
      w.buffer(request.token);
      return;
    case OpCode.setWatches:
    case OpCode.setWatches2:
      writeSetWatches(w, request);
      return;
    case OpCode.ping:
    case OpCode.closeSession:
    case OpCode.whoAmI:
      return;
  }
}

function writeSetWatches(w: JuteWriter, request: SetWatchesRequest): void {
  w.long(request.relativeZxid);
  w.strings(request.dataWatches);
  w.strings(request.existWatches);
  w.strings(request.childWatches);
  if (request.type === OpCode.setWatches) return;
  w.strings(request.persistentWatches);
  w.strings(request.persistentRecursiveWatches);
}

function writeMulti(w: JuteWriter, ops: readonly MultiOpRequest[]): void {
  for (const op of ops) {
    w.int(op.type);
    w.bool(false);
    w.int(-1);
    writeRequest(w, op);
  }
  w.int(-1);
  w.bool(true);
  w.int(-1);
}

/** Reads the body of a request of this type. Throws ProtocolError for a type that it does not know. */
export function readRequest(r: JuteReader, type: number): Request {
  switch (type) {
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
      return { type, path: r.string(), data: r.nullableBuffer(), acl: readAcl(r), flags: r.int() };
    case OpCode.createTtl:
      return {
        type,
        path: r.string(),
        data: r.nullableBuffer(),
        acl: readAcl(r),
        flags: r.int(),
        ttl: r.longNumber(),
      };
    case OpCode.delete:
    case OpCode.check:
      return { type, path: r.string(), version: r.int() };
    case OpCode.exists:
    case OpCode.getData:
    case OpCode.getChildren:
    case OpCode.getChildren2:
      return { type, path: r.string(), watch: r.bool() };
    case OpCode.setData:
      return { type, path: r.string(), data: r.nullableBuffer(), version: r.int() };
    case OpCode.getAcl:
    case OpCode.sync:
    case OpCode.getAllChildrenNumber:
    case OpCode.getEphemerals:
      return { type, path: r.string() };
    case OpCode.setAcl:
      return { type, path: r.string(), acl: readAcl(r), version: r.int() };
    case OpCode.multi:
    case OpCode.multiRead:
      return { type, ops: readMulti(r) };
    case OpCode.checkWatches:
    case OpCode.removeWatches:
      return { type, path: r.string(), watcherType: r.int() };
    case OpCode.addWatch:
      return { type, path: r.string(), mode: r.int() };
    case OpCode.auth:
      r.int();
      return { type, scheme: r.string(), auth: r.buffer() };
    case OpCode.sasl:
      return { type, token: r.buffer() };
    case OpCode.setWatches:
    case OpCode.setWatches2:
      return readSetWatches(r, type);
    case OpCode.ping:
    case OpCode.closeSession:
    case OpCode.whoAmI:
      return { type };
    default:
      throw new ProtocolError(`a request of type ${type}`);
  }
}

function readSetWatches(r: JuteReader, type: SetWatchesRequest["type"]): SetWatchesRequest {
  return {
    type,
    relativeZxid: r.long(),
    dataWatches: r.strings(),
    existWatches: r.strings(),
    childWatches: r.strings(),
    persistentWatches: type === OpCode.setWatches2 ? r.strings() : [],
    persistentRecursiveWatches: type === OpCode.setWatches2 ? r.strings() : [],
  };
}

const IN_MULTI = new Set<number>([
  OpCode.create,
  OpCode.create2,
  OpCode.createContainer,
  OpCode.createTtl,
  OpCode.delete,
  OpCode.setData,
  OpCode.check,
  OpCode.getData,
  OpCode.getChildren,
  OpCode.exists,
  OpCode.getChildren2,
]);

function readMulti(r: JuteReader): MultiOpRequest[] {
  const ops: MultiOpRequest[] = [];
  for (;;) {
    const type = r.int();
    const done = r.bool();
    r.int();
    if (done) return ops;
    if (!IN_MULTI.has(type)) throw new ProtocolError(`an operation of type ${type} in a multi`);
    ops.push(readRequest(r, type) as MultiOpRequest);
  }
}
