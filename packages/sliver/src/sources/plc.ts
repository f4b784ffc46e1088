import type { Clock, Random } from "@nodeyard/runtime";
import { parseResponse } from "../api/xmlrpc/parse.ts";
import { writeCall, type XmlRpcValue } from "../api/xmlrpc/write.ts";
import { readGetSlivers } from "../core/get-slivers.ts";
import type { WireProfile } from "../core/profiles.ts";
import { PlcFaultError, PlcTimeoutError } from "../errors.ts";
import { takeDocument } from "../manager/documents.ts";
import type { Manager, ManagerLog } from "../manager/manager.ts";
import { Poller } from "./poller.ts";

/** Sends one XML-RPC call and brings the text of its answer. */
export type Post = (call: string, signal: AbortSignal) => Promise<string>;

/** How PLC is polled. */
export interface PlcOptions {
  readonly manager: Manager;
  readonly profile: WireProfile;
  readonly post: Post;
  /** First argument of each call: `{AuthMethod: "session", session: ...}`. */
  readonly auth: XmlRpcValue;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: ManagerLog;
  /** Milliseconds between polls (docs/contract/slivers.md, "GetSlivers"). */
  readonly period: number;
}

/** Longest answer, characters. */
const MAX_REPLY = 16 * 1024 * 1024;

/** Documents as PlanetLab's centre gives them: polled, trusted for where they come from, ordered by timestamp. */
export function plcSource({ manager, profile, post, auth, ...times }: PlcOptions): Poller {
  return new Poller({
    ...times,
    name: "GetSlivers",
    first: 0,
    limit: times.period / 2,
    aborted: (message) => new PlcTimeoutError(message),
    async poll(signal) {
      const response = parseResponse(await post(writeCall("GetSlivers", [auth]), signal), MAX_REPLY);
      if ("fault" in response) throw new PlcFaultError(JSON.stringify(response.fault).slice(0, 300));
      const delivery = readGetSlivers(response.value, manager.options.node, profile);
      await takeDocument(manager, () => delivery, times.period / 2);
    },
  });
}
