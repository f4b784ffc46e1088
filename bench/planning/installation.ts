import { seededRandom } from "@nodeyard/runtime";
import type { LocalPool } from "@nodeyard/scheduler";
import { RandomPool } from "./random-pool.ts";
import { localPool, SchedulerFixture } from "./scheduler-fixture.ts";

const CLOUDS = 4;
const LABELS = Array.from({ length: 24 }, (_, index) => `label-${index}`);
const BOARD = "board";
const QUIET = "quiet";
const FOREIGN = "foreign-label";
const PRIORITIES = ["050", "100", "200", "300"];
const DECLINED_SHARE = 0.1;
const BOARD_SHARE = 0.1;
const QUIET_SHARE = 0.1;

/** So many offerings of each label, dearer ones first, so that all of them are looked at. */
function offered(count: number): Partial<LocalPool> {
  if (count === 0) return {};
  const all = Array.from({ length: count }, (_, index) => ({
    ...{ type: `type-${index}`, zone: null, weight: 0, price: count - index, maxPrice: null },
    need: { instances: 1 },
  }));
  return { offerings: new Map(LABELS.map((label) => [label, all])) };
}

/** An accepted request, and the node that is launched for it. */
export interface Served {
  readonly request: string;
  readonly node: string;
  readonly pool: string;
  readonly label: string;
}

type InUse = Pick<Served, "node" | "pool" | "label">;

/**
 * A scheduler on a busy day: four clouds that are full, with most requests waiting for them; a laboratory whose boards are all in use, with
 * its own queue; a pool with idle nodes that nobody wants; and another launcher, which has still to decide about requests that we declined.
 * All steps together leave the number of requests and nodes unchanged.
 */
export class Installation {
  readonly #random = seededRandom(1);
  readonly #scheduler: SchedulerFixture;
  readonly #waiting = new RandomPool<string>();
  /** Nodes in use in the clouds. */
  readonly #used = new RandomPool<InUse>();
  #sequence = 0;
  #paused = false;

  /** `offerings`: how many each label of a cloud has; 0: labels are sold as one type each. */
  constructor(requests: number, nodes: number, offerings = 0) {
    const inClouds = Math.floor((nodes * (1 - QUIET_SHARE - BOARD_SHARE)) / CLOUDS);
    const boards = Math.floor(nodes * BOARD_SHARE);
    const clouds = Array.from({ length: CLOUDS }, (_, index) =>
      localPool(
        `cloud-${index}`,
        LABELS.filter((_label, place) => place % CLOUDS !== index),
        { limits: { instances: inClouds }, ...offered(offerings) },
      ),
    );
    const inventory = new Map([[BOARD, boards]]);
    const lab = localPool("lab", [BOARD], { launches: false, inventory });
    const quiet = localPool("quiet", [QUIET]);
    const all = [...clouds, lab, quiet];
    this.#scheduler = new SchedulerFixture(all);
    this.#foreign();
    for (const cloud of clouds)
      for (let count = 0; count < inClouds; count++)
        this.#use({ node: this.#id(), pool: cloud.key, label: this.#labelOf(cloud) });
    for (let count = 0; count < boards; count++)
      this.#scheduler.node(this.#id(), { pool: lab.key, label: BOARD }, "in-use", true);
    for (let count = 0; count < nodes * QUIET_SHARE; count++)
      this.#scheduler.node(this.#id(), { pool: quiet.key, label: QUIET }, "ready", false);
    for (let count = 0; count < requests * BOARD_SHARE; count++) this.#ask(BOARD);
    for (let count = 0; count < requests * DECLINED_SHARE; count++)
      this.#ask(FOREIGN, { declined_by: all.map((one) => one.id) });
    while (this.#scheduler.requests < requests) this.newRequest();
  }

  /** The scheduler's contents, so that a run can verify them. */
  get size(): { readonly requests: number; readonly nodes: number } {
    const { requests, nodes } = this.#scheduler;
    return { requests, nodes };
  }

  /** A request that some of the clouds could serve arrives, at any position in their queues. */
  newRequest(): void {
    this.#waiting.add(this.#ask(LABELS[this.#below(LABELS.length)]!));
  }

  /** A waiting request is cancelled. */
  requestGone(): void {
    this.#scheduler.gone("request", this.#waiting.take(this.#random.float()));
  }

  /** A node in use is returned and deleted, and the freed capacity goes to the first request in the queue. */
  nodeFreed(): Served {
    const { node, ...place } = this.#used.take(this.#random.float());
    const actions = [
      ...this.#scheduler.node(node, place, "used", false),
      ...this.#scheduler.gone("node", node),
      ...this.#scheduler.tell({ type: "deleted", node }),
    ];
    const action = actions.find((one) => one.type === "accept");
    if (action === undefined)
      throw new Error(`nobody was served when node ${node} of ${place.pool} was freed`);
    const { request, pool, nodes } = action;
    this.#waiting.delete(request);
    return { request, node: this.#id(), pool, label: nodes[0]!.label };
  }

  /** The machine of an accepted request is created and answers. */
  nodeReady({ request, node, ...place }: Served): void {
    this.#scheduler.node(node, place, "building", true, request);
    this.#scheduler.tell({ type: "started", request });
    this.#scheduler.node(node, place, "ready", true, request);
  }

  /** The request is fulfilled and deleted; its node is in use. */
  fulfilled({ request, ...served }: Served): void {
    this.#scheduler.request(request, served.label, { state: "fulfilled" });
    this.#scheduler.tell({ type: "handled", request });
    this.#use(served, request);
    this.#scheduler.gone("request", request);
  }

  /** Another launcher's pool is paused, or resumes. */
  componentChange(): void {
    this.#paused = !this.#paused;
    this.#foreign();
  }

  #foreign(): void {
    this.#scheduler.component("foreign", "foreign-pool", "foreign", [FOREIGN], this.#paused);
  }

  #ask(label: string, fields: object = {}): string {
    const id = `${PRIORITIES[this.#below(PRIORITIES.length)]}-${this.#id()}`;
    this.#scheduler.request(id, label, fields);
    return id;
  }

  #use({ node, pool, label }: InUse, request: string | null = null): void {
    this.#scheduler.node(node, { pool, label }, "in-use", true, request);
    this.#used.add({ node, pool, label });
  }

  #labelOf(pool: LocalPool): string {
    const labels = [...pool.labels];
    return labels[this.#below(labels.length)]!;
  }

  #id(): string {
    return String(this.#sequence++).padStart(10, "0");
  }

  #below(limit: number): number {
    return Math.floor(this.#random.float() * limit);
  }
}
