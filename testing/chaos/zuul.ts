import { setTimeout as sleep } from "node:timers/promises";
import { paths } from "@nodeyard/model";
import { hexId, type Random, systemClock, systemRandom } from "@nodeyard/runtime";
import { ensurePath, lock, type Tree, TreeError } from "@nodeyard/tree";
import { patient } from "../patience.ts";
import { orNothing, patiently } from "./patience.ts";

type Fields = Record<string, unknown>;
const POLL_MS = 40;
/**
 * Zuul waits 30 s for a node's lock (docs/contract/zuul.md, "Using nodes"). Here it is longer: the tree may die with each launcher, and the
 * machine may stall for seconds.
 */
const LOCK_MS = patient(90_000);
/** A request that has not ended by then is stuck, milliseconds. */
const REQUEST_MS = patient(90_000);

export interface RequestOutcome {
  readonly request: string;
  readonly result: "used" | "failed" | "cancelled";
}

/** Requests, uses and returns nodes as Zuul does (docs/contract/zuul.md). It is never killed; its tree may be. */
export class Zuul {
  readonly ended: RequestOutcome[] = [];
  readonly #tree: Tree;
  readonly #random: Random;

  constructor(tree: Tree, random: Random) {
    this.#tree = tree;
    this.#random = random;
  }

  /** One request from its creation to the return of its nodes. Rejects when it was not served as the contract says. */
  async life(labels: readonly string[]): Promise<RequestOutcome> {
    const request = await this.#ask(labels);
    const cancels = this.#random.float() < 0.2;
    const result = cancels ? await this.#cancel(request) : await this.#follow(request, labels);
    const asked = { request, result };
    this.ended.push(asked);
    return asked;
  }

  /** After a lost reply it looks for the request by its event id. */
  async #ask(labels: readonly string[]): Promise<string> {
    const eventId = hexId(systemRandom);
    const seconds = Date.now() / 1000;
    const data = encode({
      state: "requested",
      state_time: seconds,
      node_types: labels,
      requestor: "zuul-of-chaos",
      requestor_data: { job_name: "unit", event_id: eventId, span_info: null },
      provider: null,
      created_time: seconds,
      relative_priority: Math.floor(this.#random.float() * 3),
      event_id: eventId,
      tenant_name: "t1",
    });
    for (;;) {
      try {
        const { path } = await this.#tree.create(`${paths.requests}/200-`, data, { sequential: true });
        return path.slice(path.lastIndexOf("/") + 1);
      } catch (error) {
        if (!(error instanceof TreeError)) throw error;
        if (error.code === "tree.no_node") await patiently(() => ensurePath(this.#tree, paths.requests));
        const found = await this.#find(eventId);
        if (found !== undefined) return found;
        await sleep(POLL_MS);
      }
    }
  }

  async #find(eventId: string): Promise<string | undefined> {
    const ids = (await orNothing(() => this.#tree.children(paths.requests))) ?? [];
    for (const id of ids) if ((await this.#read(paths.request(id)))?.event_id === eventId) return id;
    return undefined;
  }

  async #cancel(request: string): Promise<RequestOutcome["result"]> {
    await sleep(this.#random.float() * 600);
    await this.#delete(paths.request(request));
    return "cancelled";
  }

  async #follow(request: string, labels: readonly string[]): Promise<RequestOutcome["result"]> {
    const limit = performance.now() + REQUEST_MS;
    while (performance.now() < limit) {
      const record = await this.#read(paths.request(request));
      if (record === undefined)
        throw new Error(`request ${request} vanished, and it was not Zuul who deleted it`);
      if (record.state === "failed") {
        await this.#delete(paths.request(request));
        return "failed";
      }
      if (record.state === "fulfilled") return this.#use(request, labels, record.nodes as string[]);
      await sleep(POLL_MS);
    }
    throw new Error(
      `request ${request} did not end within ${REQUEST_MS} ms: ${JSON.stringify(await this.#read(paths.request(request)))}`,
    );
  }

  async #use(
    request: string,
    labels: readonly string[],
    nodes: readonly string[],
  ): Promise<RequestOutcome["result"]> {
    if (nodes.length !== labels.length)
      throw new Error(`request ${request}: ${nodes.length} nodes for ${labels}`);
    const locks = [];
    for (const [index, id] of nodes.entries()) {
      locks.push(
        await patiently(() =>
          lock(this.#tree, paths.nodeLock(id), {
            clock: systemClock,
            random: systemRandom,
            deadlineMs: LOCK_MS,
          }),
        ),
      );
      const node = await this.#read(paths.node(id));
      const right =
        node?.allocated_to === request &&
        node.state === "ready" &&
        (node.type as string[])[0] === labels[index];
      if (!right)
        throw new Error(`request ${request} was given node ${id}, which is ${JSON.stringify(node)}`);
    }
    await this.#delete(paths.request(request));
    for (const id of nodes) await this.#write(id, { state: "in-use", user_data: { project_name: "p" } });
    await sleep(50 + this.#random.float() * 250);
    for (const id of nodes) {
      // Until it is returned nobody else may have touched it.
      const node = await this.#read(paths.node(id));
      if (node?.state !== "in-use" || node.allocated_to !== request)
        throw new Error(
          `node ${id} of request ${request} was taken away while in use: ${JSON.stringify(node)}`,
        );
      await this.#write(id, { state: "used" });
    }
    for (const held of locks) await patiently(() => held.release());
    return "used";
  }

  async #write(id: string, fields: Fields): Promise<void> {
    const record = await this.#read(paths.node(id));
    const data = encode({ ...record, ...fields, state_time: Date.now() / 1000, id });
    await patiently(() => this.#tree.set(paths.node(id), data));
  }

  async #read(path: string): Promise<Fields | undefined> {
    const found = await orNothing(() => this.#tree.get(path));
    return found === undefined ? undefined : (JSON.parse(Buffer.from(found.data).toString()) as Fields);
  }

  async #delete(path: string): Promise<void> {
    await orNothing(() => this.#tree.delete(path));
  }
}

function encode(value: Fields): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}
