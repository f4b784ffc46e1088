import { ProtocolError } from "../errors.ts";
import type { Empty, MultiResult, Response, ResponseBodies, ResponseTo } from "./messages.ts";
import { OpCode } from "./op-code.ts";
import type { JuteReader } from "./reader.ts";
import { readAcl, readClientInfo, readStat, writeAcl, writeClientInfo, writeStat } from "./records.ts";
import type { JuteWriter } from "./writer.ts";

const EMPTY: Empty = {};

/** Reads the body of a successful reply to a request of this type. */
export function readResponse<T extends OpCode>(r: JuteReader, type: T): ResponseTo<T> {
  return read(r, type) as ResponseTo<T>;
}

function read(r: JuteReader, type: OpCode): Response {
  switch (type) {
    case OpCode.create:
    case OpCode.sync:
      return { path: r.string() };
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createTtl:
      return { path: r.string(), stat: readStat(r) };
    case OpCode.exists:
    case OpCode.setData:
    case OpCode.setAcl:
      return { stat: readStat(r) };
    case OpCode.getData:
      return { data: r.buffer(), stat: readStat(r) };
    case OpCode.getChildren:
      return { children: r.strings() };
    case OpCode.getChildren2:
      return { children: r.strings(), stat: readStat(r) };
    case OpCode.getAcl:
      return { acl: readAcl(r), stat: readStat(r) };
    case OpCode.multi:
    case OpCode.multiRead:
      return { results: readMultiResults(r) };
    case OpCode.sasl:
      return { token: r.buffer() };
    case OpCode.getEphemerals:
      return { ephemerals: r.strings() };
    case OpCode.getAllChildrenNumber:
      return { totalNumber: r.int() };
    case OpCode.addWatch:
      return { err: r.int() };
    case OpCode.whoAmI:
      return { clientInfo: readClientInfo(r) };
    default:
      return EMPTY;
  }
}

/** Writes the body of a successful reply to a request of this type. */
export function writeResponse<T extends OpCode>(w: JuteWriter, type: T, response: ResponseTo<T>): void {
  const body = response as never;
  switch (type) {
    case OpCode.create:
    case OpCode.sync:
      w.string((body as ResponseBodies[1]).path);
      return;
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createTtl:
      w.string((body as ResponseBodies[15]).path);
      writeStat(w, (body as ResponseBodies[15]).stat);
      return;
    case OpCode.exists:
    case OpCode.setData:
    case OpCode.setAcl:
      writeStat(w, (body as ResponseBodies[3]).stat);
      return;
    case OpCode.getData:
      w.buffer((body as ResponseBodies[4]).data);
      writeStat(w, (body as ResponseBodies[4]).stat);
      return;
    case OpCode.getChildren:
      w.strings((body as ResponseBodies[8]).children);
      return;
    case OpCode.getChildren2:
      w.strings((body as ResponseBodies[12]).children);
      writeStat(w, (body as ResponseBodies[12]).stat);
      return;
    case OpCode.getAcl:
      writeAcl(w, (body as ResponseBodies[6]).acl);
      writeStat(w, (body as ResponseBodies[6]).stat);
      return;
    case OpCode.multi:
    case OpCode.multiRead:
      writeMultiResults(w, (body as ResponseBodies[14]).results);
      return;
    case OpCode.sasl:
      w.buffer((body as ResponseBodies[102]).token);
      return;
    case OpCode.getEphemerals:
      w.strings((body as ResponseBodies[103]).ephemerals);
      return;
    case OpCode.getAllChildrenNumber:
      w.int((body as ResponseBodies[104]).totalNumber);
      return;
    case OpCode.addWatch:
      w.int((body as ResponseBodies[106]).err);
      return;
    case OpCode.whoAmI:
      writeClientInfo(w, (body as ResponseBodies[107]).clientInfo);
      return;
    default:
      return;
  }
}

function readMultiResults(r: JuteReader): MultiResult[] {
  const results: MultiResult[] = [];
  for (;;) {
    const type = r.int();
    const done = r.bool();
    r.int();
    if (done) return results;
    results.push(readMultiResult(r, type));
  }
}

function readMultiResult(r: JuteReader, type: number): MultiResult {
  switch (type) {
    case OpCode.create:
      return { type, path: r.string() };
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createTtl:
      return { type, path: r.string(), stat: readStat(r) };
    case OpCode.delete:
    case OpCode.check:
      return { type };
    case OpCode.setData:
      return { type, stat: readStat(r) };
    case OpCode.getData:
      return { type, data: r.buffer(), stat: readStat(r) };
    case OpCode.getChildren:
      return { type, children: r.strings() };
    case -1:
      return { type: "error", err: r.int() };
    default:
      throw new ProtocolError(`a result of type ${type} in a multi`);
  }
}

/** The header of a failed operation carries its error too; that of all others 0. */
function writeMultiResults(w: JuteWriter, results: readonly MultiResult[]): void {
  for (const result of results) {
    w.int(result.type === "error" ? -1 : result.type);
    w.bool(false);
    w.int(result.type === "error" ? result.err : 0);
    if (result.type === "error") w.int(result.err);
    else if ("children" in result) w.strings(result.children);
    else {
      if ("path" in result) w.string(result.path);
      if ("data" in result) w.buffer(result.data);
      if ("stat" in result) writeStat(w, result.stat);
    }
  }
  w.int(-1);
  w.bool(true);
  w.int(-1);
}
