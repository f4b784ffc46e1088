import { paths } from "@nodeyard/model";
import { type Clock, hexId, type Random, sleep } from "@nodeyard/runtime";
import { type MemoryTree, TreeError } from "@nodeyard/tree";
import { isLost } from "./retried.ts";

const decoder = new TextDecoder();

type Json = Record<string, unknown>;

interface Node {
  readonly id: string;
  readonly lock: string;
  readonly data: Json;
}

const LABELS = ["python", "small"];
const AT_MOST = 3;
/** It reads the registry once in this many rounds. */
const ROUNDS = 3;

/**
 * A Python-like launcher beside ours (docs/contract/launcher.md, "Which pool takes a request"): it polls, takes a lock before it writes,
 * and writes without a fence or a version. It serves one pool of one provider; its machines are not simulated.
 */
export class PythonLauncher {
  readonly id = "py.example-PoolWorker.py-main-0123456789abcdef0123456789abcdef";
  readonly #tree: MemoryTree;
  readonly #clock: Clock;
  readonly #random: Random;
  /** Its own nodes, as it read them last. */
  #nodes = 0;
  /** Nodes of other providers, which they never leave. They are read once, as from its cache. */
  readonly #foreign = new Set<string>();
  #stopped = false;

  constructor(tree: MemoryTree, clock: Clock, random: Random) {
    this.#tree = tree;
    this.#clock = clock;
    this.#random = random;
  }

  async run(): Promise<void> {
    const component = {
      hostname: "py",
      kind: "pool",
      state: "running",
      version: "11",
      model_api: 0,
      id: this.id,
      name: "main",
      provider_name: "py",
      supported_labels: LABELS,
      priority: 100,
      paused: false,
    };
    for (const path of ["/nodepool/components", "/nodepool/components/pool", paths.nodes, paths.requestsLock])
      await this.#tree.create(path).catch(existing);
    await this.#tree.create("/nodepool/components/pool/py", bytes(component), {
      ephemeral: true,
      sequential: true,
    });
    let pools = once(() => this.#pools());
    for (let round = 0; !this.#stopped; round++) {
      await sleep(this.#clock, 500 + this.#random.float() * 500);
      const all = await this.#tree.children(paths.nodes);
      this.#nodes = 0;
      for (const id of all) if (!this.#foreign.has(id) && (await this.#reap(id))) this.#nodes++;
      // As from its cache: read once for all waiting requests, and not in each round.
      if (round % ROUNDS === 0) pools = once(() => this.#pools());
      for (const id of [...(await this.#tree.children(paths.requests))].sort()) await this.#assign(id, pools);
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  async #assign(id: string, pools: () => Promise<readonly Json[]>): Promise<void> {
    const before = await this.#read(paths.request(id));
    if (!this.#open(before)) return;
    const wanted = before.node_types as string[];
    const able = wanted.every((label) => LABELS.includes(label));
    if (!able && candidates(await pools(), wanted, (before.declined_by as string[]) ?? [])) return;
    if (able && this.#nodes + wanted.length > AT_MOST && wanted.length <= AT_MOST) return;
    const lock = await this.#lock(paths.requestLock(id));
    if (lock === undefined) return;
    const record = await this.#read(paths.request(id));
    if (this.#open(record)) {
      if (able && wanted.length <= AT_MOST) await this.#serve(id, record, wanted);
      else await this.#decline(id, record);
    }
    await this.#tree.delete(lock).catch(missing);
  }

  #open(record: Json | undefined): record is Json {
    return record?.state === "requested" && !((record.declined_by as string[]) ?? []).includes(this.id);
  }

  /** A node whose creation was not answered ends the work: the other nodes are released and deleted, and the request is declined. */
  async #serve(id: string, record: Json, wanted: readonly string[]): Promise<void> {
    const pending = { ...record, state: "pending", state_time: this.#seconds() };
    if (!(await this.#write(paths.request(id), pending))) return;
    const nodes: Node[] = [];
    try {
      await this.#make(id, record, wanted, nodes);
    } catch (error) {
      if (!isLost(error)) throw error;
      for (const { lock } of nodes) await this.#tree.delete(lock).catch(missing);
      return this.#decline(id, record);
    }
    await this.#handOver(id, pending, nodes);
  }

  async #make(id: string, record: Json, wanted: readonly string[], nodes: Node[]): Promise<void> {
    for (const label of wanted) {
      const data: Json = {
        state: "init",
        state_time: this.#seconds(),
        provider: "py",
        pool: "main",
        type: [label],
        launcher: this.id,
        allocated_to: id,
        requestor: record.requestor ?? null,
      };
      const { path } = await this.#tree.create(`${paths.nodes}/`, bytes(data), { sequential: true });
      this.#nodes++;
      const node = path.slice(path.lastIndexOf("/") + 1);
      const lock = await this.#lock(paths.nodeLock(node));
      if (lock === undefined) continue;
      nodes.push({ id: node, lock, data: { ...data, state: "building" } });
      await this.#write(path, nodes.at(-1)!.data);
    }
    await sleep(this.#clock, this.#random.float() * 1_000);
  }

  async #handOver(id: string, pending: Json, nodes: readonly Node[]): Promise<void> {
    const vanished = (await this.#read(paths.request(id))) === undefined;
    for (const node of nodes) {
      const ready = { ...node.data, state: "ready", interface_ip: "192.0.2.9", state_time: this.#seconds() };
      await this.#write(paths.node(node.id), { ...ready, allocated_to: vanished ? null : id });
      await this.#tree.delete(node.lock).catch(missing);
    }
    if (vanished) return;
    const ids = nodes.map((node) => node.id);
    await this.#write(paths.request(id), {
      ...pending,
      state: "fulfilled",
      nodes: ids,
      state_time: this.#seconds(),
    });
  }

  async #decline(id: string, record: Json): Promise<void> {
    const declined = [...((record.declined_by as string[]) ?? []), this.id];
    const pools = await this.#pools();
    const all = pools.every((pool) => declined.includes(String(pool.id)));
    await this.#write(paths.request(id), {
      ...record,
      declined_by: declined,
      state: all ? "failed" : "requested",
      state_time: this.#seconds(),
    });
  }

  /** Only its own nodes: unlocked ones that are used up, whose request is gone, or that nobody took. False: the node is not its own. */
  async #reap(id: string): Promise<boolean> {
    const record = await this.#read(paths.node(id));
    if (record?.provider !== "py") {
      if (typeof record?.provider === "string") this.#foreign.add(id);
      return false;
    }
    const orphan =
      record.allocated_to !== null &&
      (await this.#read(paths.request(String(record.allocated_to)))) === undefined;
    const done = record.state !== "ready" || orphan || record.allocated_to === null;
    if (!done || record.state === "hold") return true;
    const lock = await this.#lock(paths.nodeLock(id));
    if (lock === undefined) return true;
    const now = await this.#read(paths.node(id));
    const kept = now?.state === "ready" && now.allocated_to !== null && !orphan;
    if (now !== undefined && !kept) {
      await this.#write(paths.node(id), { ...now, state: "deleting" });
      await this.#write(paths.node(id), { ...now, state: "deleted" });
      for (const name of await this.#tree.children(paths.nodeLock(id)))
        await this.#tree.delete(`${paths.nodeLock(id)}/${name}`).catch(missing);
      await this.#tree.delete(paths.nodeLock(id)).catch(missing);
      await this.#tree.delete(paths.node(id)).catch(missing);
      return false;
    }
    await this.#tree.delete(lock).catch(missing);
    return true;
  }

  async #pools(): Promise<Json[]> {
    const root = "/nodepool/components/pool";
    const found = await Promise.all(
      (await this.#tree.children(root)).map((name) => this.#read(`${root}/${name}`)),
    );
    return found.filter((pool) => pool !== undefined);
  }

  async #lock(parent: string): Promise<string | undefined> {
    try {
      await this.#tree.create(parent).catch(existing);
      const options = { ephemeral: true, sequential: true };
      const { path } = await this.#tree.create(
        `${parent}/${hexId(this.#random)}__lock__`,
        undefined,
        options,
      );
      const line = [...(await this.#tree.children(parent))].sort((a, b) =>
        a.slice(-10) < b.slice(-10) ? -1 : 1,
      );
      if (path.endsWith(`/${line[0]}`)) return path;
      await this.#tree.delete(path).catch(missing);
      return undefined;
    } catch (error) {
      missing(error);
      return undefined;
    }
  }

  #seconds(): number {
    return this.#clock.now() / 1000;
  }

  async #write(path: string, data: Json): Promise<boolean> {
    try {
      await this.#tree.set(path, bytes(data));
      return true;
    } catch (error) {
      missing(error);
      return false;
    }
  }

  async #read(path: string): Promise<Json | undefined> {
    try {
      const { data } = await this.#tree.get(path);
      return data.length === 0 ? undefined : (JSON.parse(decoder.decode(data)) as Json);
    } catch (error) {
      // As Nodepool does, it skips what is not JSON.
      if (error instanceof SyntaxError) return undefined;
      missing(error);
      return undefined;
    }
  }
}

function candidates(pools: readonly Json[], wanted: readonly string[], declined: readonly string[]): boolean {
  return pools.some(
    (pool) =>
      !declined.includes(String(pool.id)) &&
      wanted.every((label) => (pool.supported_labels as string[]).includes(label)),
  );
}

function once<T>(look: () => Promise<T>): () => Promise<T> {
  let seen: Promise<T> | undefined;
  return () => (seen ??= look());
}

function bytes(data: Json): Uint8Array {
  return Buffer.from(JSON.stringify(data));
}

function existing(error: unknown): void {
  if (!(error instanceof TreeError) || error.code !== "tree.node_exists") throw error;
}

function missing(error: unknown): void {
  if (!(error instanceof TreeError) || (error.code !== "tree.no_node" && error.code !== "tree.not_empty"))
    throw error;
}
