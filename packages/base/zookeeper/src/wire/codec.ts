import { ProtocolError } from "../errors.ts";
import type { Kind } from "./jute.ts";
import {
  type MultiOpRequest,
  type MultiResult,
  type Request,
  type Response,
  type ResponseTo,
  requestBodies,
  responseBodies,
} from "./messages.ts";
import { OpCode } from "./op-code.ts";
import type { JuteReader } from "./reader.ts";
import type { JuteWriter } from "./writer.ts";

type Bodies = ReadonlyMap<number, Kind<unknown>>;

/** Bodies of requests and replies by operation code, except those with parts (multi, multiRead). */
const REQUESTS = byCode(requestBodies);
const RESPONSES = byCode(responseBodies);
/** Operations that a multi and a multiRead may contain. A multi cannot contain another multi. */
const OPS = only(REQUESTS, [
  ...[OpCode.create, OpCode.create2, OpCode.createContainer, OpCode.createTtl],
  ...[OpCode.delete, OpCode.setData, OpCode.check],
  ...[OpCode.getData, OpCode.getChildren, OpCode.exists, OpCode.getChildren2],
]);
/** Results that have a body. Those of delete and check have none. */
const RESULTS = only(RESPONSES, [
  ...[OpCode.create, OpCode.create2, OpCode.createContainer, OpCode.createTtl],
  ...[OpCode.setData, OpCode.getData, OpCode.getChildren],
]);
/** Stands in the place of an operation's type when the operation failed. */
const FAILED = -1;

/** Writes the body of a request; the caller writes the header. */
export function writeRequest(w: JuteWriter, request: Request): void {
  if ("ops" in request) {
    for (const op of request.ops) {
      writeMultiHeader(w, op.type, false, -1);
      writeRequest(w, op);
    }
    writeMultiHeader(w, -1, true, -1);
  } else REQUESTS.get(request.type)?.write(w, request);
}

/** Reads the body of a request of this type. Throws ProtocolError for an unknown type. */
export function readRequest(r: JuteReader, type: number): Request {
  if (type === OpCode.multi || type === OpCode.multiRead) {
    const ops = readMulti(r, (op) => bodyOf(r, OPS, op, `an operation of type ${op} in a multi`));
    return { type, ops: ops as unknown as MultiOpRequest[] };
  }
  return bodyOf(r, REQUESTS, type, `a request of type ${type}`) as unknown as Request;
}

/** Writes the body of a successful reply to a request of this type. */
export function writeResponse<T extends OpCode>(w: JuteWriter, type: T, response: ResponseTo<T>): void {
  if ("results" in response) writeMultiResults(w, response.results);
  else RESPONSES.get(type)?.write(w, response);
}

/** Reads the body of a successful reply to a request of this type. */
export function readResponse<T extends OpCode>(r: JuteReader, type: T): ResponseTo<T> {
  const response =
    type === OpCode.multi || type === OpCode.multiRead
      ? { results: readMulti(r, (result) => readMultiResult(r, result)) }
      : (RESPONSES.get(type)?.read(r) ?? {});
  return response as Response as ResponseTo<T>;
}

/** The header of a failed operation contains its error too; all other headers contain 0. */
function writeMultiResults(w: JuteWriter, results: readonly MultiResult[]): void {
  for (const result of results) {
    if (result.type === "error") {
      writeMultiHeader(w, FAILED, false, result.err);
      w.int(result.err);
    } else {
      writeMultiHeader(w, result.type, false, 0);
      RESULTS.get(result.type)?.write(w, result);
    }
  }
  writeMultiHeader(w, -1, true, -1);
}

/** A result has the type of its operation, or FAILED. */
function readMultiResult(r: JuteReader, type: number): MultiResult {
  if (type === FAILED) return { type: "error", err: r.int() };
  if (type === OpCode.delete || type === OpCode.check) return { type };
  return bodyOf(r, RESULTS, type, `a result of type ${type} in a multi`) as unknown as MultiResult;
}

/** The header before each part, and after the last one with `done` (MultiHeader in zookeeper.jute). */
function writeMultiHeader(w: JuteWriter, type: number, done: boolean, err: number): void {
  w.int(type);
  w.bool(done);
  w.int(err);
}

/** Reads the parts between the headers, up to the header that says "done". */
function readMulti<T>(r: JuteReader, read: (type: number) => T): T[] {
  const found: T[] = [];
  for (;;) {
    const type = r.int();
    const done = r.bool();
    r.int();
    if (done) return found;
    found.push(read(type));
  }
}

/** Reads a body and adds its type. Throws ProtocolError for a type without one; nothing after it can be read then. */
function bodyOf(r: JuteReader, bodies: Bodies, type: number, what: string): { readonly type: number } {
  const body = bodies.get(type);
  if (body === undefined) throw new ProtocolError(what);
  // The bytes that were just read belong to nobody else, so that no copy is needed.
  return Object.assign(body.read(r) as object, { type });
}

function byCode(bodies: object): Bodies {
  return new Map(Object.entries(bodies).map(([code, kind]) => [Number(code), kind as Kind<unknown>]));
}

/** A part of a table: a peer must not put anything else into a multi. */
function only(bodies: Bodies, codes: readonly OpCode[]): Bodies {
  return new Map([...bodies].filter(([code]) => codes.includes(code as OpCode)));
}
