import type { SlotSettings } from "@nodeyard/driver";
import { labelKey, type Offering, offeringKey } from "@nodeyard/model";
import type { BackingFacts, ImageFacts, ImageUploadEntry } from "@nodeyard/view";
import type {
  Action,
  Failure,
  LaunchWanted,
  LocalPool,
  PlannedSlot,
  Policy,
  SchedulerEvent,
} from "../src/index.ts";
import { FailureBook, rule } from "./incremental-failures.ts";
import { policy, pool, SchedulerFixture } from "./world.ts";

export const making: ImageFacts = {
  ready: new Map(),
  uploading: new Set(["cloud"]),
  builds: { building: 0, ready: 1, failed: 0 },
  paused: false,
};
export const there: ImageFacts = { ...making, ready: new Map([["cloud", {} as ImageUploadEntry]]) };

export const slicing: SlotSettings = {
  backingLabel: "large",
  slots: 2,
  graceMs: 0,
  minRetentionMs: 0,
  maxAgeMs: 100_000,
};
/** How long a launch may wait to begin, milliseconds. */
export const LAUNCH_MS = 60_000;
/** Launches of one node, at most. */
const ATTEMPTS = 2;

/** How a launch ends; undefined: its machine is made. */
export type Fails = Failure["kind"] | undefined;

interface Launch {
  readonly wanted: LaunchWanted;
  /** What the scheduler was asked for and has not answered. */
  asked: "launch" | "slot" | undefined;
  /** The slot that came with the plan, or since. */
  slot: PlannedSlot | undefined;
  attempt: number;
}

/** A request that is worked on: some of its nodes are there, the others are launched. */
interface Handler {
  readonly pool: string;
  readonly wanted: number;
  readonly ready: string[];
  readonly launching: Set<string>;
  result: "ready" | "replan" | "failed";
}

/** Somebody noticed that a request which is worked on has gone. */
interface Abort {
  readonly type: "abort";
  readonly of: string;
}

/**
 * A small world in which a scheduler's actions are carried out, late and in any order, while people, machines and other launchers
 * interfere. It keeps what stands in the tree, and what controllers are at.
 */
export class World {
  readonly main: LocalPool;
  /** Shares the provider's quota with the first, and boots what a builder makes. */
  readonly side = pool({
    name: "side",
    labels: new Set(["small", "image"]),
    priority: 200,
    images: new Map([["image", "noble"]]),
    reuse: new Map([["image", { settings: "now", times: 2, forMs: 1e12, idleMs: 50_000, forAll: false }]]),
  });
  readonly lab = pool({
    provider: "lab",
    name: "desk",
    launches: false,
    labels: new Set(["board", "phone"]),
    inventory: new Map([
      ["board", 4],
      ["phone", 3],
    ]),
  });
  readonly slices = pool({ provider: "slicer", name: "slices", labels: new Set(["slice"]) });
  readonly pools: readonly LocalPool[];
  policy: Policy;
  readonly fixture: SchedulerFixture;
  image: ImageFacts = making;
  readonly nodes = new Map<string, { fields: Record<string, unknown>; contenders: string[] }>();
  readonly requests = new Map<string, Record<string, unknown>>();
  readonly backings = new Map<string, BackingFacts>();
  readonly failures = new FailureBook(
    (key, after) => this.tell({ type: "failures", key, after }),
    () => this.fixture.now,
  );
  readonly open: (Action | Abort)[] = [];
  readonly handlers = new Map<string, Handler>();
  readonly launches = new Map<string, Launch>();
  /** Requests by the slot that they were given and have not claimed, in the scheduler's words. */
  readonly given = new Map<string, string>();
  /** Nodes by the slot that they have. */
  readonly #claims = new Map<string, string>();
  readonly #room: number;
  #next = 1;

  /** `room`: by how much its limits and quota are larger than is good for a test of these. */
  constructor(room = 1) {
    this.#room = room;
    this.main = pool({ limits: { instances: 4 * room }, zones: ["az1", "az2"] });
    this.pools = [this.main, this.side, this.lab, this.slices];
    this.policy = this.policyOf(6);
    this.fixture = new SchedulerFixture(this.policy);
    this.setImage(making);
  }

  put(id: string, fields: Record<string, unknown>, contenders: string[] = []): void {
    this.nodes.set(id, { fields, contenders });
    this.#take(this.fixture.node(id, fields, contenders));
  }

  drop(id: string): void {
    this.nodes.delete(id);
    this.#take(this.fixture.gone("node", id));
    for (const [slot, node] of this.#claims) if (node === id) this.#free(slot);
  }

  ask(id: string, fields: Record<string, unknown>): void {
    this.requests.set(id, fields);
    this.#take(this.fixture.request(id, fields));
  }

  cancel(id: string): void {
    this.requests.delete(id);
    this.#take(this.fixture.gone("request", id));
    if (this.handlers.has(id)) this.open.push({ type: "abort", of: id });
  }

  /** `instances`: what others leave of the cloud's quota. */
  policyOf(instances: number): Policy {
    const maxConcurrency = Number.POSITIVE_INFINITY;
    const slots = new Map([["slice", slicing]]);
    const room = this.#room;
    const limits = { instances: 9 * room };
    return policy(this.pools, {
      tenantLimits: new Map([["t1", { instances: 2 }]]),
      failures: rule,
      providers: new Map([
        ["cloud", { name: "cloud", maxConcurrency, quota: { instances: instances * room }, limits }],
        ["lab", { name: "lab", maxConcurrency, quota: {} }],
        ["slicer", { name: "slicer", maxConcurrency, quota: {}, outlivesNodes: true, slots }],
      ]),
    });
  }

  setQuota(instances: number): void {
    this.policy = this.policyOf(instances);
    this.tell({ type: "policy", policy: this.policy });
  }

  setImage(facts: ImageFacts): void {
    this.image = facts;
    this.tell({ type: "image", image: "noble", after: facts });
  }

  /** Another backing node with two slots, or what became of one. */
  setBacking(id: string, fields: Partial<BackingFacts>): void {
    const known = this.backings.get(id) ?? {
      id,
      provider: "slicer",
      label: "slice",
      slots: 2,
      launched: this.fixture.now / 1000,
      version: 1,
      inUse: true,
      open: true,
      ended: undefined,
      taken: new Set<number>(),
    };
    const after = { ...known, ...fields };
    this.backings.set(id, after);
    // A node that somebody has is promised to nobody.
    for (const slot of after.taken) this.given.delete(`${id}/${slot}`);
    this.tell({ type: "backing", id, after });
  }

  dropBacking(id: string): void {
    this.backings.delete(id);
    this.tell({ type: "backing", id });
  }

  tell(event: SchedulerEvent): void {
    this.#take(this.fixture.tell(event));
  }

  wait(ms: number): void {
    this.#take(this.fixture.wait(ms));
  }

  id(): string {
    return String(this.#next++).padStart(10, "0");
  }

  /** Carries one open action out, whole. `fails`: how its launch ends, if it is one. */
  perform(pick: number, fails?: Fails): void {
    const [action] = this.open.splice(pick % Math.max(1, this.open.length), 1);
    switch (action?.type) {
      case "accept":
        return this.#accept(action);
      case "decline":
      case "reset":
        return this.#settle(action);
      case "launch":
        return this.#begin(action, fails);
      case "refuse-launch":
        return this.#end(action.node, "replan", "aborted");
      case "slot":
        return this.#slot(action, fails);
      case "abort":
        for (const node of this.handlers.get(action.of)?.launching ?? []) this.#giveUp(node);
        return;
      case "delete":
        if (this.nodes.get(action.node)?.contenders.length === 0) this.drop(action.node);
        return this.tell({ type: "deleted", node: action.node });
      // It has passed, and is kept for who had it.
      case "check": {
        const found = this.nodes.get(action.node);
        if (found?.contenders.length === 0)
          this.put(action.node, { ...found.fields, ...reusedBy("zuul", found.fields), allocated_to: null });
        return this.tell({ type: "checked", node: action.node });
      }
      case "deallocate": {
        const found = this.nodes.get(action.node);
        if (found !== undefined)
          this.put(action.node, { ...found.fields, allocated_to: null }, found.contenders);
        return this.tell({ type: "deallocated", node: action.node });
      }
    }
  }

  #settle(action: Extract<Action, { type: "decline" | "reset" }>): void {
    const fields = this.requests.get(action.request);
    const declined_by =
      action.type === "decline" ? [...((fields?.declined_by as string[]) ?? []), ...action.pools] : [];
    // A request that is not pending any more is left as it is.
    if (fields !== undefined && (action.type === "decline" || fields.state === "pending"))
      this.ask(action.request, {
        ...fields,
        declined_by,
        state: action.type === "decline" ? "failed" : "requested",
      });
    this.tell({ type: "handled", request: action.request });
  }

  #accept(action: Extract<Action, { type: "accept" }>): void {
    const { request } = action;
    const fields = this.requests.get(request);
    if (fields === undefined) return this.#handled(request);
    const handler: Handler = {
      pool: action.pool,
      wanted: action.nodes.length,
      ready: [],
      launching: new Set(),
      result: "ready",
    };
    this.handlers.set(request, handler);
    this.ask(request, { ...fields, state: "pending" });
    const [provider = "", poolName] = action.pool.split("/");
    const mine = { allocated_to: request, tenant_name: fields.tenant_name ?? null };
    for (const planned of action.nodes) {
      if ("reuse" in planned) {
        const known = this.nodes.get(planned.reuse);
        if (known === undefined || known.contenders.length > 0 || known.fields.state !== "ready") continue;
        handler.ready.push(planned.reuse);
        this.put(planned.reuse, { ...known.fields, ...mine }, ["us"]);
        continue;
      }
      const node = this.id();
      const place = { provider, pool: poolName, type: [planned.label], az: action.zone, resources: null };
      const offering: Offering = { provider, az: action.zone, type: planned.label };
      const counted = provider !== "slicer";
      const wanted = {
        node,
        request,
        pool: action.pool,
        label: planned.label,
        offering,
        again: false,
        counted,
      };
      handler.launching.add(node);
      this.launches.set(node, {
        wanted: { ...wanted, limitMs: LAUNCH_MS },
        asked: undefined,
        slot: planned.slot,
        attempt: 1,
      });
      this.put(node, { ...place, ...mine, state: "init" });
      this.put(node, { ...place, ...mine, state: "building" }, ["us"]);
    }
    this.tell({ type: "started", request });
    if (handler.launching.size === 0) return this.#conclude(request);
    for (const node of [...handler.launching]) this.#want(node, false);
  }

  #want(node: string, again: boolean): void {
    const launch = this.launches.get(node)!;
    launch.asked = "launch";
    this.tell({ type: "launch-wanted", launch: { ...launch.wanted, again } });
  }

  /** The scheduler lets a launch begin. */
  #begin({ node, probe }: Extract<Action, { type: "launch" }>, fails: Fails): void {
    const launch = this.#living(node);
    if (launch === undefined) return;
    const { offering, request, counted } = launch.wanted;
    const key = offeringKey(offering);
    const record = this.failures.record(key);
    if (probe && record !== undefined) {
      if (this.failures.prober(key) !== undefined) return this.#end(node, "replan", "aborted");
      this.failures.set(key, record, request);
    }
    if (counted) return this.#try(launch, fails);
    this.#claim(launch, fails);
  }

  #wantSlot(launch: Launch): void {
    const { node, request, label, offering } = launch.wanted;
    launch.asked = "slot";
    this.tell({ type: "slot-wanted", node, request, provider: offering.provider, label });
  }

  #slot(action: Extract<Action, { type: "slot" }>, fails: Fails): void {
    if (action.slot === undefined) return this.#end(action.node, "replan", "aborted");
    const launch = this.#living(action.node);
    if (launch !== undefined) this.#claim(launch, fails);
  }

  /** The claim demands the version that the backing node had when the slot was chosen. */
  #claim(launch: Launch, fails: Fails): void {
    const { slot: place } = launch;
    if (place === undefined) return this.#wantSlot(launch);
    const key = `${place.backing}/${place.slot}`;
    const backing = this.backings.get(place.backing);
    launch.slot = undefined;
    if (backing?.version !== place.version || backing.taken.has(place.slot)) {
      this.#lose(place);
      return this.#wantSlot(launch);
    }
    this.#claims.set(key, launch.wanted.node);
    this.setBacking(backing.id, { taken: new Set([...backing.taken, place.slot]) });
    this.#try(launch, fails);
  }

  #lose({ backing, slot }: PlannedSlot): void {
    this.given.delete(`${backing}/${slot}`);
    this.tell({ type: "slot-lost", place: { backing, slot } });
  }

  #free(key: string): void {
    const [id = "", slot] = key.split("/");
    this.#claims.delete(key);
    const backing = this.backings.get(id);
    if (backing === undefined) return;
    const taken = new Set(backing.taken);
    taken.delete(Number(slot));
    this.setBacking(id, { taken });
  }

  /** The machine is made, or is not. */
  #try(launch: Launch, fails: Fails): void {
    const { node, request, label, offering, counted } = launch.wanted;
    const keys = [offeringKey(offering), ...(counted ? [labelKey(label)] : [])];
    if (fails === undefined) {
      for (const key of keys) this.failures.worked(key);
      const { fields } = this.nodes.get(node)!;
      this.put(node, { ...fields, state: "ready" }, ["us"]);
      return this.#end(node, "ready");
    }
    if (fails === "quota") this.tell({ type: "quota-refused", provider: offering.provider });
    else for (const key of keys) this.failures.count(key, { kind: fails, error: fails }, request);
    for (const [slot, owner] of this.#claims) if (owner === node) this.#free(slot);
    if (fails === "quota" || fails === "capacity") return this.#end(node, "replan", "aborted");
    if (fails === "configuration" || launch.attempt >= ATTEMPTS) return this.#end(node, "failed", "failed");
    launch.attempt++;
    this.#want(node, true);
  }

  /** A launch whose record and request are there; one that lost either is over. */
  #living(node: string): Launch | undefined {
    const launch = this.launches.get(node);
    if (launch === undefined || (this.nodes.has(node) && this.requests.has(launch.wanted.request)))
      return launch;
    this.#giveUp(node);
    return undefined;
  }

  /** Its handler stops: whatever it waits for, it waits no longer. */
  #giveUp(node: string): void {
    const launch = this.launches.get(node);
    if (launch === undefined) return;
    if (launch.asked === "launch") this.tell({ type: "launch-given-up", node });
    else if (launch.asked === "slot") this.tell({ type: "slot-left", node });
    if (launch.slot !== undefined) this.#lose(launch.slot);
    this.#end(node, "replan", "aborted");
  }

  #end(node: string, result: Handler["result"], state?: "aborted" | "failed"): void {
    const launch = this.launches.get(node);
    if (launch === undefined) return;
    this.launches.delete(node);
    const { request, offering } = launch.wanted;
    const key = offeringKey(offering);
    if (this.failures.prober(key) === request) this.failures.set(key, this.failures.record(key));
    const handler = this.handlers.get(request)!;
    handler.launching.delete(node);
    const found = this.nodes.get(node);
    if (result === "ready" && found !== undefined) handler.ready.push(node);
    else if (handler.result !== "failed") handler.result = result === "ready" ? "replan" : result;
    if (state !== undefined && found !== undefined) this.put(node, { ...found.fields, state });
    if (handler.launching.size === 0) this.#conclude(request);
  }

  #conclude(request: string): void {
    const { result, ready, wanted, pool: key } = this.handlers.get(request)!;
    this.handlers.delete(request);
    const fields = this.requests.get(request);
    const there = ready.filter((node) => this.nodes.has(node));
    const isWhole = fields !== undefined && result === "ready" && there.length === wanted;
    for (const node of there) {
      const known = this.nodes.get(node)!;
      this.put(node, isWhole ? known.fields : { ...known.fields, allocated_to: null });
    }
    if (isWhole) this.ask(request, { ...fields, state: "fulfilled", nodes: there });
    else if (fields !== undefined) {
      const id = this.pools.find((each) => each.key === key)!.id;
      const declined_by = [...((fields.declined_by as string[]) ?? []), ...(result === "failed" ? [id] : [])];
      const state = this.pools.every((each) => declined_by.includes(each.id)) ? "failed" : "requested";
      this.ask(request, { ...fields, declined_by, state });
    }
    this.#handled(request);
  }

  #handled(request: string): void {
    for (const [slot, owner] of this.given) if (owner === request) this.given.delete(slot);
    this.tell({ type: "handled", request });
  }

  #take(actions: readonly Action[]): void {
    const ignored = ["pause", "min-ready", "ask-quota", "label-changed"];
    for (const action of actions) {
      if (ignored.includes(action.type)) continue;
      this.open.push(action);
      if (action.type === "accept") {
        for (const planned of action.nodes)
          if ("launch" in planned && planned.slot !== undefined) this.#give(planned.slot, action.request);
      } else if (action.type === "launch" || action.type === "refuse-launch" || action.type === "slot") {
        const launch = this.launches.get(action.node);
        if (launch === undefined) throw new Error(`nobody asked for ${JSON.stringify(action)}`);
        launch.asked = undefined;
        if (action.type !== "slot" || action.slot === undefined) continue;
        launch.slot = action.slot;
        this.#give(action.slot, launch.wanted.request);
      }
    }
  }

  #give({ backing, slot }: PlannedSlot, request: string): void {
    this.given.set(`${backing}/${slot}`, request);
  }
}

/** What the record of a free node says that one client has used once more; of one that nobody has used yet without `client`. */
export function reusedBy(client?: string, before: Readonly<Record<string, unknown>> = {}) {
  const own = before.driver_data as
    | { readonly nodeyard: { readonly reuse: { readonly times: number } } }
    | undefined;
  const times = own === undefined ? 0 : own.nodeyard.reuse.times + 1;
  const only = client !== undefined && { only: { tenant: null, client } };
  const reuse = { settings: "now", since: 0, times, ...only };
  return { state: "ready", requestor: "zuul", driver_data: { nodeyard: { reuse } } };
}
