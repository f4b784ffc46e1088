import { jsonOrUndefined, messageOf } from "@nodeyard/runtime";
import { XmlRpcError } from "../errors.ts";
import { MAX_DEPTH, parseCall } from "./xmlrpc/parse.ts";

/** One HTTP request to the API. */
export interface ApiRequest {
  readonly method: string;
  /** Path without the query. */
  readonly path: string;
  readonly body: string;
}

/** One call, decoded. */
export interface Call {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** A request with its parsed body: `call`, or the reason why there is none. */
export interface ParsedRequest {
  readonly method: string;
  readonly path: string;
  readonly call?: Call | undefined;
  readonly wrong?: string | undefined;
}

/** Longest reason that is passed on, in characters. */
const SHOWN = 300;

/** Parses a request. For untrusted callers this runs outside of the daemon. Never throws. */
export function parseRequest({ method, path, body }: ApiRequest): ParsedRequest {
  try {
    return { method, path, call: isJson(path) ? jsonCall(body) : parseCall(body) };
  } catch (error) {
    const wrong = error instanceof XmlRpcError ? `XmlRpcError:${error.message}` : messageOf(error);
    return { method, path, wrong: wrong.slice(0, SHOWN) };
  }
}

/** Whether calls at this path are JSON; otherwise they are XML-RPC. */
export function isJson(path: string): boolean {
  return path.startsWith("/json");
}

function jsonCall(body: string): Call {
  const value = jsonOrUndefined(body);
  if (value === undefined) throw new Error("the body is not valid JSON");
  const { method, params } = (value ?? {}) as { method?: unknown; params?: unknown };
  if (typeof method !== "string" || !Array.isArray(params))
    throw new Error('a call is {"method": "...", "params": [...]}');
  // As with XML-RPC, so that code that walks over the values needs no limit of its own.
  if (isDeeper(params, MAX_DEPTH)) throw new Error("values are nested too deep");
  return { method, params };
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((one) => isDeeper(one, levels - 1));
}
