import { messageOf } from "@nodeyard/runtime";
import type { Caller } from "../core/permit.ts";
import { PROFILES, type ProfileName } from "../core/profiles.ts";
import { XmlRpcError } from "../errors.ts";
import type { Manager } from "../manager/manager.ts";
import { nativeDialect, wireDialect } from "./dialects.ts";
import { type Audit, dispatch } from "./dispatch.ts";
import { Fault, UNEXPECTED } from "./method.ts";
import { isJson, type ParsedRequest } from "./parse-request.ts";
import { writeFault, writeResponse, type XmlRpcValue } from "./xmlrpc/write.ts";

/** An HTTP answer. */
export interface ApiResponse {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

/** Answers a parsed request. The socket or token of the request has determined the caller. */
export type Handler = (request: ParsedRequest, caller: Caller) => Promise<ApiResponse>;

/**
 * The API of a manager over HTTP. XML-RPC at `/` and `/RPC2` (in the profile of the node), `/r0`, `/v2`; the same as JSON at `/json/r0`,
 * `/json/v2`; Nodeyard's own dialect at `/json`. A request that is no call gets a fault as its answer.
 */
export function createHandler(manager: Manager, profile: ProfileName, audit: Audit): Handler {
  const common = { manager, profile: PROFILES[profile], audit };
  const wire = { r0: wireDialect(PROFILES.r0), v2: wireDialect(PROFILES.v2) };
  const dialects = new Map([
    ["/", wire[profile]],
    ["/RPC2", wire[profile]],
    ["/r0", wire.r0],
    ["/v2", wire.v2],
    ["/json", nativeDialect(PROFILES[profile].policy.minimums)],
    ["/json/r0", wire.r0],
    ["/json/v2", wire.v2],
  ]);
  return async ({ method, path, call, wrong }, caller) => {
    const dialect = dialects.get(path);
    if (dialect === undefined) return plain(404, "not found\n");
    if (method !== "POST") return plain(405, "send a call with POST\n");
    const codec = isJson(path) ? JSON_CODEC : XML;
    try {
      const result = await dispatch({ ...common, dialect }, caller, () => {
        if (call === undefined) throw new Fault(UNEXPECTED, wrong ?? "no call");
        return call;
      });
      return { status: 200, type: codec.type, body: codec.result(result) };
    } catch (error) {
      const { code, message } = error instanceof Fault ? error : new Fault(UNEXPECTED, codec.text(error));
      return { status: 200, type: codec.type, body: codec.fault(code, message) };
    }
  };
}

/** Encoding of answers. */
interface Codec {
  readonly type: string;
  result(value: unknown): string;
  fault(code: number, message: string): string;
  /** Encodes an error that is not a fault. */
  text(error: unknown): string;
}

/** XML-RPC answers faults with status 200 as well: other codes are for errors of HTTP. */
const XML: Codec = {
  type: "text/xml; charset=utf-8",
  result: (value) => writeResponse(value as XmlRpcValue),
  fault: writeFault,
  text: (error) => `${error instanceof XmlRpcError ? "XmlRpcError" : "Error"}:${messageOf(error)}`,
};

const JSON_CODEC: Codec = {
  type: "application/json; charset=utf-8",
  result: (result) => JSON.stringify({ result }),
  fault: (code, message) => JSON.stringify({ fault: { code, message } }),
  text: messageOf,
};

/** An answer of HTTP alone. */
export function plain(status: number, body: string): ApiResponse {
  return { status, type: "text/plain; charset=utf-8", body };
}
