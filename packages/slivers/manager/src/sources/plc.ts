import { createHmac } from "node:crypto";

import { parseResponse } from "../api/xmlrpc/parse.ts";
import { writeCall, type XmlRpcValue } from "../api/xmlrpc/write.ts";
import { readGetSlivers } from "../core/get-slivers.ts";
import type { WireProfile } from "../core/profiles.ts";
import { PlcFaultError, PlcTimeoutError } from "../errors.ts";
import { takeDocument } from "../manager/documents.ts";
import type { Manager } from "../manager/manager.ts";
import { Poller, type PollerTools } from "./poller.ts";

/** Sends one XML-RPC call and resolves to the text of the answer. */
export type Post = (call: string, signal: AbortSignal) => Promise<string>;

/**
 * A session that was made elsewhere, or the node's id and key, with which sliverd makes a session when it has none or the last one has
 * ended.
 */
export type PlcAuth = { readonly session: string } | { readonly nodeId: string; readonly key: string };

/** Options of `plcSource`; its `period` is in docs/contract/slivers.md, "GetSlivers". */
export interface PlcOptions extends PollerTools {
  readonly manager: Manager;
  readonly profile: WireProfile;
  readonly post: Post;
  readonly auth: PlcAuth;
}

/** Longest answer, in characters. */
const MAX_REPLY = 16 * 1024 * 1024;
/** PLC's fault code for a failed authentication, also that of an expired session. */
const NOT_AUTHENTICATED = 103;

/**
 * Documents of PlanetLab Central: polled, ordered by timestamp, and trusted because of the server's certificate (they carry no signature).
 */
export function plcSource({ manager, profile, post, auth, ...times }: PlcOptions): Poller {
  let session = "session" in auth ? auth.session : undefined;
  const call = async (method: string, struct: Readonly<Record<string, XmlRpcValue>>, signal: AbortSignal) =>
    parseResponse(await post(writeCall(method, [struct]), signal), MAX_REPLY);
  const getSlivers = async (signal: AbortSignal) => {
    session ??= await newSession(signal);
    return call("GetSlivers", { AuthMethod: "session", session }, signal);
  };
  /** Begins a session. The HMAC covers the call's other arguments; there are none, so the signed text is `[]`. */
  const newSession = async (signal: AbortSignal): Promise<string> => {
    if (!("key" in auth)) throw new PlcFaultError("the session has ended");
    const { nodeId, key } = auth;
    const value = createHmac("sha1", key).update("[]").digest("hex");
    const node_id = /^\d{1,9}$/.test(nodeId) ? Number(nodeId) : nodeId;
    const response = await call("GetSession", { AuthMethod: "hmac", node_id, value }, signal);
    if ("fault" in response) throw faultError(response.fault);
    if (typeof response.value !== "string") throw new PlcFaultError("GetSession answered with no session");
    return response.value;
  };
  return new Poller({
    ...times,
    name: "GetSlivers",
    first: 0,
    limit: times.period / 2,
    aborted: (message) => new PlcTimeoutError(message),
    async poll(signal) {
      let response = await getSlivers(signal);
      // The old manager noticed only at its start that its session had ended.
      if ("fault" in response && "key" in auth && codeOf(response.fault) === NOT_AUTHENTICATED) {
        session = undefined;
        response = await getSlivers(signal);
      }
      if ("fault" in response) throw faultError(response.fault);
      const delivery = readGetSlivers(response.value, manager.options.node, profile);
      await takeDocument(manager, () => delivery, times.period / 2);
    },
  });
}

function codeOf(fault: XmlRpcValue): unknown {
  return (fault as { readonly faultCode?: unknown } | null)?.faultCode;
}

/** The whole fault as text: PLC's reasons have no fixed form. */
function faultError(fault: XmlRpcValue): PlcFaultError {
  return new PlcFaultError(JSON.stringify(fault).slice(0, 300));
}
