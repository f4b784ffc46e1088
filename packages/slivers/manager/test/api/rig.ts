import { generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import {
  type DocumentInput,
  type KeySet,
  rawPublicKey,
  type Signer,
  type SliverSpecInput,
  signText,
} from "@nodeyard/sliver-protocol";
import type { AuditEntry } from "../../src/api/dispatch.ts";
import { Reader, type ReaderOptions } from "../../src/api/edge/reader/reader.ts";
import { type ApiResponse, createHandler } from "../../src/api/handler.ts";
import { type ApiRequest, parseRequest } from "../../src/api/parse-request.ts";
import { parseResponse } from "../../src/api/xmlrpc/parse.ts";
import { writeCall, type XmlRpcValue } from "../../src/api/xmlrpc/write.ts";
import type { Caller } from "../../src/core/permit.ts";
import { POLICIES } from "../../src/core/profiles.ts";
import { OWN_IDS } from "../../src/isolation/lxc/names.ts";
import type { ManagerOptions } from "../../src/manager/manager.ts";
import { Rig } from "../manager/rig.ts";

export const ROOT: Caller = { account: "root", role: "root", generation: 0 };
export const CONTROL: Caller = { account: "control", role: "control", generation: 0 };
export const sliver = (account: string, generation = 0): Caller => ({ account, role: "sliver", generation });

export function signerOf(kid: string): Signer & { readonly x: string } {
  const { privateKey } = generateKeyPairSync("ed25519");
  return { kid, privateKey, x: rawPublicKey(privateKey) };
}

/** A process that parses, as `sliverd` has one. */
export function readerIn(folder: string, some: Partial<ReaderOptions> = {}): Reader {
  const onFailure = () => undefined;
  return new Reader({
    program: READER,
    folder,
    uid: OWN_IDS.slivers,
    clock: systemClock,
    onFailure,
    ...some,
  });
}

/** The program that it runs. */
export const READER = join(import.meta.dirname, "../../src/bin/sliver-reader.ts");

/** A fault as it came over the wire. */
export class WireFault extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** A node with its API, called without a network. */
export class ApiRig extends Rig {
  readonly profile: "r0" | "v2";
  readonly signer = signerOf("k1");
  readonly audit: AuditEntry[] = [];
  handler!: (request: ApiRequest, caller: Caller) => Promise<ApiResponse>;
  version = 0;

  constructor(profile: "r0" | "v2" = "v2", more: Partial<ManagerOptions> = {}) {
    const machine = {
      policy: POLICIES[profile],
      cpu: 4000,
      link: 1_000_000_000,
      siblings: [],
      highestIndex: 8,
    };
    super({ machine, ...more });
    this.profile = profile;
  }

  get keySet(): KeySet {
    return { v: 1, version: 1, keys: [{ kid: "k1", x: this.signer.x }] };
  }

  override async start() {
    const manager = await super.start();
    if (manager.state.keySet === undefined)
      await manager.change((state) => ({ state: { ...state, keySet: this.keySet }, result: 0 }));
    const handler = createHandler(manager, this.profile, (entry) => void this.audit.push(entry));
    this.handler = (request, caller) => handler(parseRequest(request), caller);
    return manager;
  }

  /** One call as XML-RPC, in the node's profile or the one that `path` names. */
  async call(
    caller: Caller,
    method: string,
    params: readonly XmlRpcValue[] = [],
    path = "/",
  ): Promise<XmlRpcValue> {
    const answer = this.handler({ method: "POST", path, body: writeCall(method, params) }, caller);
    await this.settle();
    const response = parseResponse((await answer).body);
    if ("value" in response) return response.value;
    const { faultCode, faultString } = response.fault as { faultCode: number; faultString: string };
    throw new WireFault(faultCode, faultString);
  }

  /** One call as JSON, in our own vocabulary. */
  async json(
    caller: Caller,
    method: string,
    params: readonly unknown[] = [],
    path = "/json",
  ): Promise<unknown> {
    const answer = this.handler({ method: "POST", path, body: JSON.stringify({ method, params }) }, caller);
    await this.settle();
    const { result, fault } = JSON.parse((await answer).body);
    if (fault !== undefined) throw new WireFault(fault.code, fault.message);
    return result;
  }

  document(
    slivers: readonly SliverSpecInput[],
    more: Partial<DocumentInput> = {},
    signer: Signer = this.signer,
  ): string {
    const head = { v: 1 as const, node: "node-1", epoch: 1, version: ++this.version, issuedAt: 0 };
    return signText("document", { ...head, slivers, ...more }, signer);
  }

  /** A ticket of five minutes for one sliver. */
  ticket(spec: SliverSpecInput, more: object = {}, signer: Signer = this.signer): string {
    const now = Math.floor(this.clock.now() / 1000);
    const claims = {
      iss: "launcher",
      aud: "node-1",
      iat: now,
      nbf: now,
      exp: now + 300,
      jti: "j".repeat(20),
      epoch: 1,
    };
    return signText("ticket", { ...claims, version: this.version, sliver: spec, ...more }, signer);
  }
}

export const spec = (name: string, more: Partial<SliverSpecInput> = {}): SliverSpecInput => ({
  name,
  generation: 1,
  instantiation: "plc-instantiated",
  ...more,
});
