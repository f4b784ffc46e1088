import { paths } from "@nodeyard/model";
import type { Clock, Random } from "@nodeyard/runtime";
import { sleep } from "@nodeyard/runtime";
import { type MemoryTree, TreeError } from "@nodeyard/tree";
import { LONG, LONG_MS } from "./lease-client.ts";
import { isLost } from "./retried.ts";
import { between } from "./streams.ts";

const decoder = new TextDecoder();

export interface Outcome {
  readonly request: string;
  readonly result: "used" | "failed" | "cancelled" | "spoiled" | "died";
}

/** Environment of a requestor. */
export interface RequestorOptions {
  readonly tree: MemoryTree;
  readonly clock: Clock;
  readonly random: Random;
  /** Chance of jobs that outlast sweeps. */
  readonly long: Random;
  /** A new executor with a session of its own, which can expire. */
  readonly executor: () => MemoryTree;
  /** Whether a person changed the node by hand. */
  readonly touched: (node: string) => boolean;
  readonly onDeath: () => void;
  /** A tenant besides the one that has a limit; absent: none. */
  readonly other?: string | undefined;
}

/** Plays Zuul's handling of requests and nodes (docs/contract/zuul.md), on the tree alone. */
export class Requestor {
  readonly outcomes: Outcome[] = [];
  readonly open = new Set<string>();
  readonly #tree: MemoryTree;
  readonly #clock: Clock;
  readonly #random: Random;

  readonly #options: RequestorOptions;
  /** Records as they were read last: Zuul keeps them, and writes them over unreadable ones. */
  readonly #seen = new Map<string, Record<string, unknown>>();
  /** Autoholds that are still to be ended. */
  holds = 0;

  constructor(options: RequestorOptions) {
    this.#options = options;
    this.#tree = options.tree;
    this.#clock = options.clock;
    this.#random = options.random;
  }

  /** Requests a nodeset, uses its nodes and returns them. */
  async live(labels: readonly string[]): Promise<void> {
    const { other = null } = this.#options;
    const tenant = (part: number) => (part < 0.5 ? "t1" : part < 0.75 ? other : null);
    const priority = ["099", "100", "200", "300"][Math.floor(this.#random.float() * 4)]!;
    const data = {
      state: "requested",
      state_time: this.#clock.now() / 1000,
      node_types: labels,
      requestor: "zuul",
      requestor_data: { job: "unit" },
      provider: this.#random.float() < 0.2 ? (this.#random.float() < 0.7 ? "east" : "gone") : null,
      event_id: this.#hex(),
      relative_priority: Math.floor(this.#random.float() * 3),
      tenant_name: tenant(this.#random.float()),
      created_time: this.#clock.now() / 1000,
    };
    const id = await this.#create(`${paths.requests}/${priority}-`, data);
    if (id === undefined) return;
    this.open.add(id);
    const result = await this.#follow(id);
    this.open.delete(id);
    this.outcomes.push({ request: id, result });
  }

  /** Undefined if the answer was lost: nobody waits for the request, which a later clean-up deletes. */
  async #create(prefix: string, data: { readonly event_id: string }): Promise<string | undefined> {
    const bytes = Buffer.from(JSON.stringify(data));
    try {
      const { path } = await this.#tree.create(prefix, bytes, { sequential: true });
      return path.slice(path.lastIndexOf("/") + 1);
    } catch (error) {
      if (!isLost(error)) throw error;
    }
    await sleep(this.#clock, between(this.#random, 1_000, 20_000));
    let request = "none";
    for (const id of await this.#tree.children(paths.requests)) {
      if ((await this.#read(paths.request(id)))?.event_id !== data.event_id) continue;
      request = id;
      await this.#delete(paths.request(id));
    }
    this.outcomes.push({ request, result: "cancelled" });
    return undefined;
  }

  async #follow(id: string): Promise<Outcome["result"]> {
    const impatient = this.#random.float() < 0.1;
    for (let looks = 0; ; looks++) {
      // After a long wait it reads less often: Zuul's watch would report the change, and each read costs.
      const pause = looks < 10 ? 200 : looks < 40 ? 600 : 2_000;
      await sleep(this.#clock, 20 + this.#random.float() * pause);
      if (impatient && looks > 3) {
        await this.#delete(paths.request(id));
        return "cancelled";
      }
      if (this.#random.float() < 0.05) await this.#revise(id);
      const record = await this.#read(paths.request(id));
      if (record?.state === "failed") {
        await this.#delete(paths.request(id));
        return "failed";
      }
      if (record?.state === "fulfilled") return this.#use(id, record.nodes as string[]);
    }
  }

  async #use(request: string, nodes: readonly string[]): Promise<Outcome["result"]> {
    const dies = this.#random.float() < 0.08 ? this.#random.float() : undefined;
    const tree = dies === undefined ? this.#tree : this.#options.executor();
    const locks: string[] = [];
    for (const id of nodes) {
      const path = await this.#lockNode(tree, id);
      const record = path === undefined ? undefined : await this.#read(paths.node(id));
      if (path !== undefined) locks.push(path);
      if (record?.allocated_to === request && record.state === "ready") continue;
      if (!this.#options.touched(id))
        throw new Error(
          `request ${request} was fulfilled with node ${id}, which is ${JSON.stringify(record)}`,
        );
      for (const lock of locks) await this.#delete(lock);
      await this.#delete(paths.request(request));
      return "spoiled";
    }
    if (dies !== undefined && dies < 0.5) return this.#die(tree, request);
    await this.#delete(paths.request(request));
    await sleep(this.#clock, this.#random.float() * 500);
    if (this.#random.float() < 0.1 && dies === undefined) return this.#giveBackUnused(nodes, locks);
    for (const id of nodes) await this.#write(id, "in-use", {}, tree);
    if (dies !== undefined) return this.#die(tree, request);
    await this.#work();
    return this.#end(nodes, locks);
  }

  async #end(nodes: readonly string[], locks: readonly string[]): Promise<"used"> {
    if (this.#random.float() < 0.08) return this.#autohold(nodes, locks);
    const returned = this.#random.float() < 0.9;
    for (const id of nodes) if (returned) await this.#write(id, "used");
    for (const path of locks) await this.#delete(path);
    return "used";
  }

  /** Some jobs outlast sweeps. */
  async #work(): Promise<void> {
    const { long } = this.#options;
    if (long.float() < LONG) await sleep(this.#clock, between(long, ...LONG_MS));
  }

  /** The executor is gone, and its locks when its session expires; the scheduler cleans up after it. */
  async #die(tree: MemoryTree, request: string): Promise<"died"> {
    this.#options.onDeath();
    tree.crash();
    await sleep(this.#clock, between(this.#random, 1_000, 20_000));
    await this.#delete(paths.request(request));
    return "died";
  }

  /** 32 hex digits: the name of a contender, or of an event. */
  #hex(): string {
    return Math.floor(this.#random.float() * 2 ** 52)
      .toString(16)
      .padStart(32, "0");
  }

  async #giveBackUnused(nodes: readonly string[], locks: readonly string[]): Promise<"used"> {
    for (const id of nodes) await this.#write(id, "used");
    for (const path of locks) await this.#delete(path);
    return "used";
  }

  /** The nodes stay for a person to examine; the autohold ends later, or the nodes by their own expiration. */
  async #autohold(nodes: readonly string[], locks: readonly string[]): Promise<"used"> {
    const expires = this.#random.float() < 0.5 ? 10 : 300;
    for (const id of nodes) await this.#write(id, "hold", { hold_expiration: expires, comment: "autohold" });
    for (const path of locks) await this.#delete(path);
    this.holds++;
    const ended = sleep(this.#clock, between(this.#random, 5_000, 60_000)).then(() => this.#endHold(nodes));
    void ended.finally(() => {
      this.holds--;
    });
    return "used";
  }

  async #endHold(nodes: readonly string[]): Promise<void> {
    for (const id of nodes) {
      const path = await this.#lockNode(this.#tree, id);
      if (path === undefined) continue;
      if ((await this.#read(paths.node(id)))?.state === "hold") await this.#write(id, "used");
      await this.#delete(path);
    }
  }

  /** A change of `relative_priority`: under the lock if it is free, at the version that was read (docs/contract/zuul.md, "Requesting"). */
  async #revise(id: string): Promise<void> {
    const parent = paths.requestLock(id);
    const name = `${"d".repeat(30)}${id.slice(-2)}__lock__`;
    try {
      const { data, stat } = await this.#tree.get(paths.request(id));
      const record = JSON.parse(decoder.decode(data)) as Record<string, unknown>;
      if (record.state !== "requested") return;
      for (const path of [paths.requestsLock, parent]) await this.#tree.create(path).catch(() => {});
      const options = { ephemeral: true, sequential: true };
      const { path } = await this.#tree.create(`${parent}/${name}`, undefined, options);
      const line = [...(await this.#tree.children(parent))].sort((a, b) =>
        a.slice(-10) < b.slice(-10) ? -1 : 1,
      );
      const revised = { ...record, relative_priority: Math.floor(this.#random.float() * 50) };
      const version = stat.version;
      if (path.endsWith(`/${line[0]}`))
        await this.#tree.set(paths.request(id), Buffer.from(JSON.stringify(revised)), { version });
      await this.#delete(path);
    } catch (error) {
      if (!(error instanceof TreeError)) throw error;
      if (error.code !== "tree.bad_version" && error.code !== "tree.no_node") throw error;
      for (const child of await this.#tree.children(parent).catch(() => []))
        if (child.startsWith(name)) await this.#delete(`${parent}/${child}`);
    }
  }

  /**
   * Zuul waits 30 s for a node's lock (docs/contract/locks.md, "Who takes which lock"), because a launcher may be checking whether it is
   * free. Undefined if the node is gone, or an operator has it.
   */
  async #lockNode(tree: MemoryTree, id: string): Promise<string | undefined> {
    const parent = paths.nodeLock(id);
    try {
      const options = { ephemeral: true, sequential: true };
      const { path } = await tree.create(`${parent}/${this.#hex()}__lock__`, undefined, options);
      for (let look = 0; look < 600; look++) {
        const line = [...(await tree.children(parent))].sort((a, b) =>
          a.slice(-10) < b.slice(-10) ? -1 : 1,
        );
        if (path.endsWith(line[0] ?? "?")) return path;
        await sleep(this.#clock, 50);
      }
      await this.#delete(path);
    } catch (error) {
      if (error instanceof TreeError && error.code === "tree.no_node") return undefined;
      throw error;
    }
    if (!this.#options.touched(id)) throw new Error(`the lock of node ${id} was not free within 30 s`);
    return undefined;
  }

  async #write(
    id: string,
    state: string,
    more: Record<string, unknown> = {},
    tree = this.#tree,
  ): Promise<void> {
    const record = await this.#read(paths.node(id));
    const next = { ...record, ...more, state, state_time: this.#clock.now() / 1000, id };
    await tree.set(paths.node(id), Buffer.from(JSON.stringify(next)));
  }

  async #read(path: string): Promise<Record<string, unknown> | undefined> {
    try {
      const record = parsed((await this.#tree.get(path)).data);
      if (record !== undefined) this.#seen.set(path, record);
      return record ?? this.#seen.get(path) ?? {};
    } catch (error) {
      if (error instanceof TreeError && error.code === "tree.no_node") return undefined;
      throw error;
    }
  }

  async #delete(path: string): Promise<void> {
    await this.#tree.delete(path).catch((error: unknown) => {
      if (!(error instanceof TreeError) || error.code !== "tree.no_node") throw error;
    });
  }
}

/** Undefined if it is no record. */
function parsed(data: Uint8Array): Record<string, unknown> | undefined {
  try {
    const record = JSON.parse(decoder.decode(data)) as Record<string, unknown>;
    return typeof record.state === "string" && typeof (record.provider ?? "") === "string"
      ? record
      : undefined;
  } catch {
    return undefined;
  }
}
