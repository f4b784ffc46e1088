import type { ProviderConfig } from "@nodeyard/driver";
import {
  changeImageBuild,
  changeImageUpload,
  changeNode,
  decodeNode,
  encodeImageBuild,
  encodeImageUpload,
  encodeNode,
  encodeRequest,
  type NodeState,
  newImageBuild,
  newImageUpload,
  newRequest,
  paths,
  type RequestRecord,
} from "@nodeyard/model";
import { type Clock, hexId, type Random, sleep } from "@nodeyard/runtime";
import { ensurePath, type Tree } from "@nodeyard/tree";
import type { DemandedRequest } from "./demand.ts";

/** The result of a request. `waits`: it was still unanswered at the end. */
export type Outcome = {
  readonly labels: readonly string[];
  readonly tenant: string | null;
  readonly result: "served" | "refused" | "waits";
  /** The provider that served it; null: none. */
  readonly provider: string | null;
  /** From the request to its nodes, milliseconds. */
  readonly waitMs: number;
};

/**
 * Asks for nodes, uses them and returns them, by the same records and locks as Zuul (docs/contract/zuul.md). A failure of one request
 * does not stop the others; it is thrown by `assertSound` at the end.
 */
export class PlayedUser {
  readonly tree: Tree;
  readonly #clock: Clock;
  readonly #random: Random;
  /** By `<request>@<time>` of the demand. */
  readonly #outcomes = new Map<string, Outcome>();
  /** By the id that the tree gave. */
  readonly #ended = new Map<string, (record: RequestRecord | undefined) => void>();
  #waiting = 0;
  /** The first error that a request met. */
  #failure: unknown;

  constructor(tree: Tree, clock: Clock, random: Random) {
    this.tree = tree;
    this.#clock = clock;
    this.#random = random;
  }

  /** Requests that are neither served nor refused. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Makes what a client expects of the tree. */
  prepare(): Promise<void> {
    return ensurePath(this.tree, paths.requests);
  }

  /** Makes a request and follows it to its end. Returns at once; `useMs` is how long its nodes are kept. */
  ask(request: DemandedRequest, useMs: number): void {
    this.#waiting++;
    this.#outcomes.set(`${request.request}@${request.at}`, {
      labels: request.labels,
      tenant: request.tenant ?? null,
      result: "waits",
      provider: null,
      waitMs: 0,
    });
    this.#live(request, useMs).catch((error: unknown) => {
      this.#failure ??= error;
    });
  }

  /** The launcher's view tells of requests, so that the user needs no watch of its own. */
  onRequest(id: string, record: RequestRecord | undefined): void {
    if (record?.state === "requested" || record?.state === "pending") return;
    this.#ended.get(id)?.(record);
    this.#ended.delete(id);
  }

  outcomes(): ReadonlyMap<string, Outcome> {
    return this.#outcomes;
  }

  /** Throws what kept it from going on: then no figure is right. */
  assertSound(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** The life of one request as Zuul leads it: ask, lock the nodes, delete the request, use, return. */
  async #live(request: DemandedRequest, useMs: number): Promise<void> {
    const { tree } = this;
    const asked = this.#clock.monotonic();
    const id = await this.#create(request);
    const ended = await new Promise<RequestRecord | undefined>((resolve) => this.#ended.set(id, resolve));
    const waitMs = this.#clock.monotonic() - asked;
    this.#waiting--;
    const nodes = ended?.state === "fulfilled" ? ended.nodes : [];
    const locks = await Promise.all(nodes.map((node) => this.#lock(node)));
    // As Zuul does, once the nodes are locked: the request is answered.
    await tree.delete(paths.request(id));
    const providers = await Promise.all(nodes.map((node) => this.#set(node, "in-use")));
    this.#outcomes.set(`${request.request}@${request.at}`, {
      labels: request.labels,
      tenant: request.tenant ?? null,
      result: nodes.length > 0 ? "served" : "refused",
      provider: providers[0] ?? null,
      waitMs,
    });
    await sleep(this.#clock, useMs);
    for (const node of nodes) await this.#set(node, "used");
    for (const lock of locks) await tree.delete(lock);
  }

  async #create({
    request,
    labels,
    tenant,
    client = "plan",
    relative_priority,
  }: DemandedRequest): Promise<string> {
    const record = newRequest(
      {
        state: "requested",
        nodeTypes: labels,
        requestor: client,
        tenantName: tenant ?? null,
        relativePriority: relative_priority ?? 0,
      },
      this.#clock.now() / 1000,
    );
    const parent = `${paths.requests}/${request.slice(0, request.indexOf("-"))}-`;
    const { path } = await this.tree.create(parent, encodeRequest(record), { sequential: true });
    return path.slice(path.lastIndexOf("/") + 1);
  }

  /** The contender of a node's lock. Nobody else wants it: the launcher released it before the request was fulfilled. */
  async #lock(node: string): Promise<string> {
    const contender = `${paths.nodeLock(node)}/${hexId(this.#random)}__lock__`;
    return (await this.tree.create(contender, undefined, { ephemeral: true, sequential: true })).path;
  }

  /** Sets the state of a node that is locked here. Resolves with its provider. */
  async #set(node: string, state: NodeState): Promise<string | null> {
    const record = decodeNode(node, (await this.tree.get(paths.node(node))).data);
    const changed = changeNode(record, { state }, this.#clock.now() / 1000);
    await this.tree.set(paths.node(node), encodeNode(changed));
    return record.provider;
  }
}

/** Diskimages are taken to be uploaded: a plan is about nodes. */
export async function writeImages(
  tree: Tree,
  providers: readonly ProviderConfig[],
  nowSeconds: number,
): Promise<void> {
  const login = { username: null, pythonPath: null, shellType: null };
  const [build, number] = ["0000000001", "0000000001"];
  for (const { name, pools } of providers)
    for (const { image } of pools.flatMap(({ labels }) => [...labels.values()])) {
      if (image?.kind !== "diskimage") continue;
      const at = paths.imageUploads(image.name, build, name);
      await ensurePath(tree, at);
      const begun = newImageBuild(build, { builder: null, builderId: null, formats: [] }, nowSeconds);
      const built = changeImageBuild(begun, { state: "ready" }, nowSeconds);
      await tree.set(paths.imageBuild(image.name, build), encodeImageBuild(built));
      const uploaded = changeImageUpload(
        newImageUpload(login, nowSeconds),
        { state: "ready", externalId: image.name },
        nowSeconds,
      );
      const path = `${at}/${number}`;
      if ((await tree.stat(path)) === undefined) await tree.create(path, encodeImageUpload(uploaded));
    }
}
