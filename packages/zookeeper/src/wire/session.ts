/** What is said before and around requests: the session handshake and the headers. */
import type { ConnectRequest, ConnectResponse, ReplyHeader, RequestHeader } from "./messages.ts";
import type { JuteReader } from "./reader.ts";
import type { JuteWriter } from "./writer.ts";

export function writeConnectRequest(w: JuteWriter, request: ConnectRequest): void {
  w.int(request.protocolVersion);
  w.long(request.lastZxidSeen);
  w.int(request.timeOut);
  w.long(request.sessionId);
  w.buffer(request.passwd);
  w.bool(request.readOnly);
}

/** Clients older than 3.4 leave `readOnly` out. */
export function readConnectRequest(r: JuteReader): ConnectRequest {
  return {
    protocolVersion: r.int(),
    lastZxidSeen: r.long(),
    timeOut: r.int(),
    sessionId: r.long(),
    passwd: r.buffer(),
    readOnly: r.left > 0 && r.bool(),
  };
}

export function writeConnectResponse(w: JuteWriter, response: ConnectResponse): void {
  w.int(response.protocolVersion);
  w.int(response.timeOut);
  w.long(response.sessionId);
  w.buffer(response.passwd);
  w.bool(response.readOnly);
}

/** Servers older than 3.4 leave `readOnly` out. */
export function readConnectResponse(r: JuteReader): ConnectResponse {
  return {
    protocolVersion: r.int(),
    timeOut: r.int(),
    sessionId: r.long(),
    passwd: r.buffer(),
    readOnly: r.left > 0 && r.bool(),
  };
}

export function writeRequestHeader(w: JuteWriter, xid: number, type: number): void {
  w.int(xid);
  w.int(type);
}

export function readRequestHeader(r: JuteReader): RequestHeader {
  return { xid: r.int(), type: r.int() };
}

export function writeReplyHeader(w: JuteWriter, xid: number, zxid: bigint, err: number): void {
  w.int(xid);
  w.long(zxid);
  w.int(err);
}

export function readReplyHeader(r: JuteReader): ReplyHeader {
  return { xid: r.int(), zxid: r.long(), err: r.int() };
}
