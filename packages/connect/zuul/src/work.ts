import { CallRefused, type NodeAccess } from "@nodeyard/client";
import type { ConnectorParts } from "@nodeyard/connect";
import { type HeldLock, NoNode, type Op, type Tree } from "@nodeyard/tree";
import type { NodeLeases } from "./leases.ts";
import {
  decodeAssignment,
  decodeLifecycle,
  decodeNode,
  decodeRequest,
  encodeNode,
  type NodesetRequest,
  type ProviderNode,
  type StoredNode,
  withoutSnapshot,
} from "./records.ts";
import { nextStep, type Step } from "./step.ts";
import { NODES, REQUESTS } from "./view.ts";

/** A node under its lock, and what follows. */
export interface Found {
  readonly stored: StoredNode;
  readonly version: number;
  readonly isAssigned: boolean;
  readonly step: Step;
}

/** What the connector does to nodes of Zuul: each write is one commit with the fence of the node's lock. */
export class NodeWork {
  readonly #tree: Tree;
  readonly #leases: NodeLeases;
  readonly #parts: ConnectorParts;

  constructor(tree: Tree, leases: NodeLeases, parts: ConnectorParts) {
    this.#tree = tree;
    this.#leases = leases;
    this.#parts = parts;
  }

  /** Under the lock: all that decides, as it is and not as it was reported, because a launcher may have assigned the node just now. */
  async find(node: string): Promise<Found | undefined> {
    const path = `${NODES}/${node}`;
    await this.#tree.sync(path);
    const [record, assigned, wished] = await Promise.all(
      [path, `${path}/assignment`, `${path}/lifecycle`].map((one) => this.#read(one)),
    );
    if (record === undefined) return undefined;
    const stored = decodeNode(path, record.data);
    const assignment = assigned && decodeAssignment(path, assigned.data);
    const lifecycle = wished && decodeLifecycle(path, wished.data);
    // A request is written before its nodes, so one that is not there is gone.
    const asked = assignment && (await this.#read(`${REQUESTS}/${assignment.request_id}`));
    const request = asked && { value: decodeRequest(path, asked.data), version: asked.stat.version };
    const now = this.#parts.clock.now() / 1_000;
    const lease = this.#leases.get(node);
    const step = nextStep({ node: stored.node, assignment, request, lifecycle, lease, now });
    return { stored, version: record.stat.version, isAssigned: assignment !== undefined, step };
  }

  /** Carries a step out. `gone`: the node, and with it the lock. */
  async do(node: string, found: Found, lock: HeldLock): Promise<"more" | "stop" | "gone"> {
    const { stored, version, isAssigned, step } = found;
    const { log, clock } = this.#parts;
    const path = `${NODES}/${node}`;
    const write = async (changes: Partial<ProviderNode>, more: readonly Op[] = []) => {
      const state_time = clock.now() / 1_000;
      const data = encodeNode(stored, { ...changes, ...(changes.state !== undefined && { state_time }) });
      await this.#tree.commit([lock.fence, { op: "set", path, data, version }, ...more]);
    };
    if (step.do === "begin") await write({ state: "building" });
    else if (step.do === "retire") await write({ state: "outdated" });
    else if (step.do === "fail") {
      const { label } = stored.node;
      log.warn({ zuul_node: node, label, state: step.state }, "a node of Zuul gets no lease");
      await write({ state: step.state });
    } else if (step.do === "move") {
      await write({ state: step.state as ProviderNode["state"], comment: step.comment }, [
        { op: "delete", path: `${path}/lifecycle` },
        ...(isAssigned ? [{ op: "delete", path: `${path}/assignment` } as const] : []),
      ]);
    } else if (step.do === "ready") {
      const access = await this.#access(node);
      await write(access === undefined ? { state: "failed" } : { state: "ready", ...access });
      log.info({ zuul_node: node, lease: this.#leases.get(node)?.id }, "a node of Zuul is ready");
    } else if (step.do === "remove") {
      await this.#leases.release(node, `Zuul: the node is ${stored.node.state}`);
      if (!step.record) return "stop";
      await this.#erase(node, version, lock);
      log.info({ zuul_node: node, state: stored.node.state }, "a node of Zuul was removed");
      return "gone";
    }
    return "more";
  }

  /** Leases for a node. Resolves with why the pool refuses; undefined: it does not. */
  async lease(
    node: string,
    label: string,
    keepSeconds: number,
    request: NodesetRequest | undefined,
  ): Promise<string | undefined> {
    try {
      await this.#leases.create(node, {
        labels: [label],
        for_seconds: keepSeconds,
        ...(request && { priority: String(request.priority).padStart(3, "0") }),
        job: { id: request?.buildset_uuid ?? node, name: request?.job_name ?? null },
      });
      return undefined;
    } catch (error) {
      if (!(error instanceof CallRefused) || error.status >= 500 || error.status === 429) throw error;
      return error.message;
    }
  }

  /** Gives a lease back whose node is gone. */
  async returnLost(node: string): Promise<void> {
    if (this.#leases.get(node) === undefined) return;
    const path = `${NODES}/${node}`;
    await this.#tree.sync(path);
    if ((await this.#tree.stat(path)) === undefined)
      await this.#leases.release(node, "Zuul: the node is gone");
  }

  /** Nobody makes snapshots of leased nodes, and the executor waits for one: it is told that there is none, as by a launcher that failed. */
  async declineSnapshot(node: string): Promise<void> {
    const path = `${NODES}/${node}/snapshot`;
    const found = await this.#read(path);
    const declined = found && withoutSnapshot(path, found.data);
    if (declined !== undefined) await this.#tree.set(path, declined, { version: found!.stat.version });
  }

  async #read(path: string) {
    return await this.#tree.get(path).catch((error: unknown) => {
      if (error instanceof NoNode) return undefined;
      throw error;
    });
  }

  /** Address and host keys of the leased node, as Zuul names them; undefined: Zuul cannot reach it by ssh. */
  async #access(node: string): Promise<Partial<ProviderNode> | undefined> {
    const { pool, log } = this.#parts;
    const lease = this.#leases.get(node)!;
    const { items } = await pool.call("list_lease_nodes", { path: { id: lease.id } });
    const [access] = items as readonly NodeAccess[];
    const type = access?.connection_type ?? "ssh";
    if (access?.interface_ip == null || type !== "ssh") {
      const text = "the leased node is not reached by ssh: give its label another pool";
      log.error({ zuul_node: node, lease: lease.id, type }, text);
      return undefined;
    }
    const { interface_ip, connection_port, username, host_keys } = access;
    return {
      interface_ip,
      connection_type: "ssh",
      connection_port: connection_port ?? 22,
      username,
      host_keys: [...host_keys],
      host_id: access.id,
      cloud: access.provider,
    };
  }

  /** Deletes the record, all that stands below it, and its lock, at once: no launcher can take the node over in between. */
  async #erase(node: string, version: number, lock: HeldLock): Promise<void> {
    const path = `${NODES}/${node}`;
    const below: Op[] = [];
    for (const name of await this.#tree.children(path)) {
      const inner = await this.#tree.children(`${path}/${name}`);
      for (const one of [...inner.map((child) => `${name}/${child}`), name])
        below.push({ op: "delete", path: `${path}/${one}` });
    }
    await this.#tree.commit([
      lock.fence,
      ...below,
      { op: "delete", path, version },
      { op: "delete", path: lock.contender },
      { op: "delete", path: lock.parent },
    ]);
  }
}
