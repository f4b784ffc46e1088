import { messageOf } from "@nodeyard/runtime";
import type { Caller } from "../core/permit.ts";
import { PROFILES, type ProfileName } from "../core/profiles.ts";
import { XmlRpcError } from "../errors.ts";
import type { Manager } from "../manager/manager.ts";
import { nativeDialect, wireDialect } from "./dialects.ts";
import { type Audit, type Call, Dispatcher } from "./dispatch.ts";
import { Fault, UNEXPECTED } from "./method.ts";
import { parseCall } from "./xmlrpc/parse.ts";
import { writeFault, writeResponse, type XmlRpcValue } from "./xmlrpc/write.ts";

/** One HTTP request to the API. */
export interface ApiRequest {
  readonly method: string;
  /** Without query. */
  readonly path: string;
  readonly body: string;
}

/** What is answered to it. */
export interface ApiResponse {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

/** Answers one request of a caller, whom the socket or token names. */
export type Handler = (request: ApiRequest, caller: Caller) => Promise<ApiResponse>;

/**
 * The API of a manager over HTTP. XML-RPC at `/` and `/RPC2` (in the profile of the node), `/r0`, `/v2`; JSON of the same at `/json/r0`,
 * `/json/v2`; our own dialect at `/json`. Every call gets an answer: what is no call is answered with a fault.
 */
export function createHandler(manager: Manager, profile: ProfileName, audit: Audit): Handler {
  const dispatcher = new Dispatcher(manager, PROFILES[profile], audit);
  const native = nativeDialect(PROFILES[profile].policy.minimums);
  const wire = { r0: wireDialect(PROFILES.r0), v2: wireDialect(PROFILES.v2) };
  const routes = new Map([
    ["/", { codec: XML, dialect: wire[profile] }],
    ["/RPC2", { codec: XML, dialect: wire[profile] }],
    ["/r0", { codec: XML, dialect: wire.r0 }],
    ["/v2", { codec: XML, dialect: wire.v2 }],
    ["/json", { codec: JSON_CODEC, dialect: native }],
    ["/json/r0", { codec: JSON_CODEC, dialect: wire.r0 }],
    ["/json/v2", { codec: JSON_CODEC, dialect: wire.v2 }],
  ]);
  return async ({ method, path, body }, caller) => {
    const route = routes.get(path);
    if (route === undefined) return plain(404, "not found\n");
    if (method !== "POST") return plain(405, "send a call with POST\n");
    const { codec, dialect } = route;
    try {
      const result = await dispatcher.call(dialect, caller, () => codec.read(body));
      return { status: 200, type: codec.type, body: codec.result(result) };
    } catch (error) {
      const { code, message } = error instanceof Fault ? error : new Fault(UNEXPECTED, codec.text(error));
      return { status: 200, type: codec.type, body: codec.fault(code, message) };
    }
  };
}

/** How calls and answers are written. */
interface Codec {
  readonly type: string;
  read(body: string): Call;
  result(value: unknown): string;
  fault(code: number, message: string): string;
  /** Of an error that is no fault. */
  text(error: unknown): string;
}

const XML: Codec = {
  type: "text/xml; charset=utf-8",
  read: parseCall,
  result: (value) => writeResponse(value as XmlRpcValue),
  fault: writeFault,
  text: (error) => `${error instanceof XmlRpcError ? "XmlRpcError" : "Error"}:${messageOf(error)}`,
};

const JSON_CODEC: Codec = {
  type: "application/json; charset=utf-8",
  read: jsonCall,
  result: (result) => JSON.stringify({ result }),
  fault: (code, message) => JSON.stringify({ fault: { code, message } }),
  text: messageOf,
};

function plain(status: number, body: string): ApiResponse {
  return { status, type: "text/plain; charset=utf-8", body };
}

function jsonCall(body: string): Call {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw new Fault(UNEXPECTED, "the body is not valid JSON");
  }
  const { method, params } = (value ?? {}) as { method?: unknown; params?: unknown };
  if (typeof method !== "string" || !Array.isArray(params))
    throw new Fault(UNEXPECTED, 'a call is {"method": "...", "params": [...]}');
  return { method, params };
}
