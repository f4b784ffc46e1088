import { messageOf } from "@nodeyard/runtime";
import type { Caller } from "../core/index.ts";
import type { ProfileName } from "../profiles/index.ts";
import type { Dialect } from "./dialects/index.ts";
import type { Dispatcher } from "./dispatch.ts";
import { Fault, UNEXPECTED } from "./fault.ts";
import { parseCall, writeFault, writeResponse, XmlRpcError, type XmlRpcValue } from "./xmlrpc/index.ts";

export interface ApiRequest {
  readonly method: string;
  /** Without query. */
  readonly path: string;
  readonly body: string;
}

export interface ApiResponse {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

export type Handler = (request: ApiRequest, caller: Caller) => Promise<ApiResponse>;

const XML = "text/xml; charset=utf-8";
const JSON_TYPE = "application/json; charset=utf-8";

/** XML-RPC at `/` and `/RPC2` (the profile of the node), `/r0`, `/v2`; JSON of the same at `/json/r0`, `/json/v2`; ours at `/json`. */
export function createHandler(
  dispatcher: Dispatcher,
  dialects: Readonly<Record<ProfileName | "native", Dialect>>,
  profile: ProfileName,
): Handler {
  const xml: Record<string, Dialect> = { "/": dialects[profile], "/RPC2": dialects[profile] };
  const json: Record<string, Dialect> = { "/json": dialects.native };
  for (const name of ["r0", "v2"] as const) {
    xml[`/${name}`] = dialects[name];
    json[`/json/${name}`] = dialects[name];
  }
  return async ({ method, path, body }, caller) => {
    const asXml = Object.hasOwn(xml, path) ? xml[path] : undefined;
    const asJson = Object.hasOwn(json, path) ? json[path] : undefined;
    if (asXml === undefined && asJson === undefined) return plain(404, "not found\n");
    if (method !== "POST") return plain(405, "send a call with POST\n");
    if (asXml !== undefined)
      return { status: 200, type: XML, body: await callXml(dispatcher, asXml, caller, body) };
    return { status: 200, type: JSON_TYPE, body: await callJson(dispatcher, asJson!, caller, body) };
  };
}

function plain(status: number, body: string): ApiResponse {
  return { status, type: "text/plain; charset=utf-8", body };
}

/** Always a response: what is no call is answered with a fault too. */
async function callXml(
  dispatcher: Dispatcher,
  dialect: Dialect,
  caller: Caller,
  body: string,
): Promise<string> {
  try {
    const call = parseCall(body);
    const result = await dispatcher.call(dialect, caller, call);
    return writeResponse(result as XmlRpcValue);
  } catch (error) {
    if (error instanceof Fault) return writeFault(error.code, error.message);
    return writeFault(
      UNEXPECTED,
      `${error instanceof XmlRpcError ? "XmlRpcError" : "Error"}:${messageOf(error)}`,
    );
  }
}

async function callJson(
  dispatcher: Dispatcher,
  dialect: Dialect,
  caller: Caller,
  body: string,
): Promise<string> {
  try {
    const result = await dispatcher.call(dialect, caller, jsonCall(body));
    return JSON.stringify({ result });
  } catch (error) {
    const fault = error instanceof Fault ? error : new Fault(UNEXPECTED, messageOf(error));
    return JSON.stringify({ fault: { code: fault.code, message: fault.message } });
  }
}

function jsonCall(body: string): { method: string; params: readonly unknown[] } {
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
