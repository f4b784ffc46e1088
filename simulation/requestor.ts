import { paths } from "@nodeyard/model";
import type { Clock, Random } from "@nodeyard/runtime";
import { sleep } from "@nodeyard/runtime";
import { type MemoryTree, TreeError } from "@nodeyard/tree";

export interface Outcome {
  readonly request: string;
  readonly result: "used" | "failed" | "cancelled";
}

/** What Zuul does with requests and nodes (spec zookeeper.md 5.6 to 5.8), against the tree alone. */
export class Requestor {
  readonly outcomes: Outcome[] = [];
  readonly open = new Set<string>();
  readonly #tree: MemoryTree;
  readonly #clock: Clock;
  readonly #random: Random;

  constructor(tree: MemoryTree, clock: Clock, random: Random) {
    this.#tree = tree;
    this.#clock = clock;
    this.#random = random;
  }

  /** Asks for a nodeset and lives through it, to its end. */
  async live(labels: readonly string[]): Promise<void> {
    const priority = ["099", "100", "200", "300"][Math.floor(this.#random.float() * 4)]!;
    const data = {
      state: "requested",
      state_time: this.#clock.now() / 1000,
      node_types: labels,
      requestor: "zuul",
      requestor_data: { job: "unit" },
      provider: this.#random.float() < 0.2 ? (this.#random.float() < 0.7 ? "east" : "gone") : null,
      event_id: "e",
      relative_priority: Math.floor(this.#random.float() * 3),
      tenant_name: this.#random.float() < 0.5 ? "t1" : null,
      created_time: this.#clock.now() / 1000,
    };
    const made = await this.#tree.create(
      `${paths.requests}/${priority}-`,
      Buffer.from(JSON.stringify(data)),
      { sequential: true },
    );
    const id = made.path.slice(made.path.lastIndexOf("/") + 1);
    this.open.add(id);
    const result = await this.#follow(id);
    this.open.delete(id);
    this.outcomes.push({ request: id, result });
  }

  async #follow(id: string): Promise<Outcome["result"]> {
    const impatient = this.#random.float() < 0.1;
    for (let looks = 0; ; looks++) {
      await sleep(this.#clock, 20 + this.#random.float() * 200);
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
    const locks: string[] = [];
    for (const id of nodes) {
      const { path } = await this.#tree.create(`${paths.nodeLock(id)}/${"a".repeat(32)}__lock__`, undefined, {
        ephemeral: true,
        sequential: true,
      });
      locks.push(path);
      await this.#becomeHead(id, path);
      const record = await this.#read(paths.node(id));
      if (record?.allocated_to !== request || record.state !== "ready") {
        throw new Error(
          `request ${request} was fulfilled with node ${id}, which is ${JSON.stringify(record)}`,
        );
      }
    }
    await this.#delete(paths.request(request));
    await sleep(this.#clock, this.#random.float() * 500);
    const returned = this.#random.float() < 0.9;
    for (const id of nodes) {
      await this.#write(id, "in-use");
      if (returned) await this.#write(id, "used");
    }
    for (const path of locks) await this.#delete(path);
    return "used";
  }

  /** A change of `relative_priority`: under the lock if it is free, with the version that was read (spec zookeeper.md 5.6). */
  async #revise(id: string): Promise<void> {
    const parent = paths.requestLock(id);
    const name = `${"d".repeat(30)}${id.slice(-2)}__lock__`;
    try {
      const { data, stat } = await this.#tree.get(paths.request(id));
      const record = JSON.parse(Buffer.from(data).toString()) as Record<string, unknown>;
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

  /** Zuul waits 30 s for a node's lock (spec zookeeper.md 3.3): a launcher may have looked whether it is free. */
  async #becomeHead(id: string, path: string): Promise<void> {
    for (let looks = 0; looks < 600; looks++) {
      const line = [...(await this.#tree.children(paths.nodeLock(id)))].sort((a, b) =>
        a.slice(-10) < b.slice(-10) ? -1 : 1,
      );
      if (path.endsWith(line[0] ?? "?")) return;
      await sleep(this.#clock, 50);
    }
    throw new Error(`the lock of node ${id} was not to be had within 30 s`);
  }

  async #write(id: string, state: string): Promise<void> {
    const record = await this.#read(paths.node(id));
    const next = { ...record, state, state_time: this.#clock.now() / 1000, id };
    await this.#tree.set(paths.node(id), Buffer.from(JSON.stringify(next)));
  }

  async #read(path: string): Promise<Record<string, unknown> | undefined> {
    try {
      return JSON.parse(Buffer.from((await this.#tree.get(path)).data).toString()) as Record<string, unknown>;
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
