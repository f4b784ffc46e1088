import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HOST_BACK_MS } from "../../src/scheduler/hosts.ts";
import type { Action, Policy, SchedulerEvent } from "../../src/scheduler/index.ts";
import type { ImageFacts, ImageUploadEntry } from "../../src/view/index.ts";
import { componentOf, node, policy, pool, request, SchedulerFixture } from "./world.ts";

const making: ImageFacts = {
  ready: new Map(),
  uploading: new Set(["cloud"]),
  builds: { building: 0, ready: 1, failed: 0 },
  paused: false,
};
const there: ImageFacts = { ...making, ready: new Map([["cloud", {} as ImageUploadEntry]]) };

/**
 * A small world in which a scheduler's actions are carried out, late and in any order, while people and machines interfere.
 * After every step the running sums must be what a fresh scheduler would compute from the same records.
 */
class World {
  readonly main = pool({ limits: { instances: 4 }, zones: ["az1", "az2"] });
  /** Shares the provider's quota with the first, and boots what a builder makes. */
  readonly side = pool({
    name: "side",
    labels: new Set(["small", "image"]),
    priority: 200,
    images: new Map([["image", "noble"]]),
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
  readonly pools = [this.main, this.side, this.lab];
  policy = this.policyOf(6);
  readonly fixture = new SchedulerFixture(this.policy);
  image: ImageFacts = making;

  constructor() {
    this.setImage(making);
  }
  readonly nodes = new Map<string, { fields: Record<string, unknown>; contenders: string[] }>();
  readonly requests = new Map<string, Record<string, unknown>>();
  readonly open: Action[] = [];
  #next = 1;

  put(id: string, fields: Record<string, unknown>, contenders: string[] = []): void {
    this.nodes.set(id, { fields, contenders });
    this.#take(this.fixture.node(id, fields, contenders));
  }

  drop(id: string): void {
    this.nodes.delete(id);
    this.#take(this.fixture.gone("node", id));
  }

  ask(id: string, fields: Record<string, unknown>): void {
    this.requests.set(id, fields);
    this.#take(this.fixture.request(id, fields));
  }

  cancel(id: string): void {
    this.requests.delete(id);
    this.#take(this.fixture.gone("request", id));
  }

  /** `instances`: what others leave of the cloud's quota. */
  policyOf(instances: number): Policy {
    return policy(this.pools, {
      tenantLimits: new Map([["t1", { instances: 2 }]]),
      providers: new Map(
        ["cloud", "lab"].map((name) => [
          name,
          {
            name,
            maxConcurrency: Number.POSITIVE_INFINITY,
            quota: name === "cloud" ? { instances } : {},
            ...(name === "cloud" ? { limits: { instances: 9 } } : {}),
          },
        ]),
      ),
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

  tell(event: SchedulerEvent): void {
    this.#take(this.fixture.tell(event));
  }

  wait(ms: number): void {
    this.#take(this.fixture.wait(ms));
  }

  id(): string {
    return String(this.#next++).padStart(10, "0");
  }

  /** Carries one open action out, whole. */
  perform(pick: number): void {
    const [action] = this.open.splice(pick % Math.max(1, this.open.length), 1);
    if (action?.type === "accept") this.#accept(action);
    else if (action?.type === "decline" || action?.type === "reset") {
      const fields = this.requests.get(action.request);
      const declined_by =
        action.type === "decline" ? [...((fields?.declined_by as string[]) ?? []), ...action.pools] : [];
      // What is not pending any more is left as it is.
      if (fields !== undefined && (action.type === "decline" || fields.state === "pending"))
        this.ask(action.request, {
          ...fields,
          declined_by,
          state: action.type === "decline" ? "failed" : "requested",
        });
      this.#take(this.fixture.tell({ type: "handled", request: action.request }));
    } else if (action?.type === "delete") {
      if (this.nodes.get(action.node)?.contenders.length === 0) this.drop(action.node);
      this.#take(this.fixture.tell({ type: "deleted", node: action.node }));
    } else if (action?.type === "deallocate") {
      const found = this.nodes.get(action.node);
      if (found !== undefined)
        this.put(action.node, { ...found.fields, allocated_to: null }, found.contenders);
      this.#take(this.fixture.tell({ type: "deallocated", node: action.node }));
    }
  }

  #accept(action: Extract<Action, { type: "accept" }>): void {
    const fields = this.requests.get(action.request);
    if (fields !== undefined) {
      const ids: string[] = [];
      for (const planned of action.nodes) {
        const id = "reuse" in planned ? planned.reuse : this.id();
        const known = this.nodes.get(id);
        if (
          "reuse" in planned &&
          (known === undefined || known.contenders.length > 0 || known.fields.state !== "ready")
        )
          continue;
        ids.push(id);
        const [provider, poolName] = action.pool.split("/");
        const base = known?.fields ?? {
          provider,
          pool: poolName,
          type: [planned.label],
          az: action.zone,
          state: "init",
          resources: null,
        };
        this.put(id, { ...base, allocated_to: action.request, tenant_name: fields.tenant_name ?? null });
        this.put(id, {
          ...base,
          allocated_to: action.request,
          tenant_name: fields.tenant_name ?? null,
          state: "ready",
        });
      }
      this.ask(action.request, {
        ...fields,
        state: ids.length === action.nodes.length ? "fulfilled" : "requested",
        nodes: ids,
      });
    }
    this.#take(this.fixture.tell({ type: "handled", request: action.request }));
  }

  #take(actions: readonly Action[]): void {
    this.open.push(...actions.filter((action) => !["pause", "min-ready", "ask-quota"].includes(action.type)));
  }
}

const labels = fc.array(fc.constantFrom("small", "large", "board", "phone", "image", "nothing"), {
  minLength: 1,
  maxLength: 3,
});
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("ask" as const),
      labels,
      tenant: fc.constantFrom(null, "t1"),
      reuse: fc.boolean(),
    }),
  },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("perform" as const), pick: fc.nat(50) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("cancel" as const), pick: fc.nat(50) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("lost" as const), labels }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("sweep" as const) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("use" as const), pick: fc.nat(50) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("hosts" as const),
      labels: fc.constantFrom(["board"], ["phone"], ["board", "phone"]),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("ask" as const),
      labels: fc.oneof(
        fc.array(fc.constantFrom("board", "phone"), { minLength: 1, maxLength: 3 }),
        fc.array(fc.constant("image"), { minLength: 1, maxLength: 2 }),
      ),
      tenant: fc.constantFrom(null, "t1"),
      reuse: fc.constant(true),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("image" as const), there: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("stock" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("refuse" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("quota" as const), instances: fc.constantFrom(1, 4, 6, 9) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(500, 5_000, 70_000) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("vanish" as const), pick: fc.nat(50) }) },
);

const at = <T>(values: Iterable<T>, pick: number): T | undefined => {
  const all = [...values];
  return all[pick % Math.max(1, all.length)];
};

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

function apply(world: World, taken: Step): void {
  switch (taken.kind) {
    case "ask":
      return world.ask(`100-${world.id()}`, {
        node_types: taken.labels,
        tenant_name: taken.tenant,
        reuse: taken.reuse,
      });
    case "lost":
      return world.ask(`100-${world.id()}`, { node_types: taken.labels, state: "pending" });
    case "sweep":
      return world.tell({ type: "sweep" });
    case "perform":
      return world.perform(taken.pick);
    case "cancel": {
      const id = at(world.requests.keys(), taken.pick);
      return id === undefined ? undefined : world.cancel(id);
    }
    case "use": {
      const id = at(world.nodes.keys(), taken.pick);
      const found = id === undefined ? undefined : world.nodes.get(id);
      if (id === undefined || found === undefined) return;
      const next = (
        { ready: ["in-use", ["user"]], "in-use": ["used", []] } as Record<string, [string, string[]]>
      )[String(found.fields.state)];
      if (next !== undefined) world.put(id, { ...found.fields, state: next[0] }, next[1]);
      return;
    }
    case "hosts":
      return world.put(world.id(), {
        provider: "lab",
        pool: "desk",
        type: taken.labels,
        state: "ready",
        resources: null,
      });
    // A node that another launcher's min-ready asked for.
    case "stock":
      return world.put(world.id(), { provider: "cloud", pool: "side", type: ["image"], state: "ready" });
    case "image":
      return world.setImage(taken.there ? there : making);
    case "quota":
      return world.setQuota(taken.instances);
    case "refuse":
      return world.tell({ type: "quota-refused", provider: "cloud" });
    case "wait":
      return world.wait(taken.ms);
    case "vanish": {
      const id = at(world.nodes.keys(), taken.pick);
      return id === undefined ? undefined : world.drop(id);
    }
  }
}

describe("incremental equals from scratch", () => {
  test("sums, idle nodes and waiting requests after any course of events", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => compare(steps)),
      { numRuns: 300 },
    );
  });

  // Without a tenant's limit: what is kept of it for one pool's head depends on which pool was looked at first. Behind a blocked
  // head it depends on the past who has a note of its own and who is told its place only.
  test("the same after long courses, whoever asks", () => {
    const longer = fc.array(
      step.map((taken) => (taken.kind === "ask" ? { ...taken, tenant: null } : taken)),
      { maxLength: 80, size: "max" },
    );
    fc.assert(
      fc.property(longer, (steps) => compare(steps, { notes: false })),
      { numRuns: 100 },
    );
  });

  test("who wants more than others leave of the quota is looked at when a node of its labels becomes idle, or is no longer", () => {
    const pair: Step = { kind: "ask", labels: ["image", "image"], tenant: null, reuse: true };
    const quota: Step = { kind: "quota", instances: 1 };
    const there: Step = { kind: "image", there: true };
    compare([quota, { kind: "stock" }, there, pair, { kind: "stock" }, { kind: "vanish", pick: 0 }], {
      notes: false,
    });
    compare([quota, { kind: "stock" }, pair, there, { kind: "use", pick: 0 }], { notes: false });
  });

  test("a head whose image goes waits for that, and holds nobody up any more", () => {
    const asked = (...labels: "image"[]): Step => ({ kind: "ask", labels, tenant: null, reuse: true });
    const small: Step = { kind: "ask", labels: ["small"], tenant: null, reuse: false };
    const image = (isThere: boolean): Step => ({ kind: "image", there: isThere });
    const pair = asked("image", "image");
    compare([pair, pair, asked("image"), small, image(true), asked("image"), image(false)], { notes: false });
  });
});

function compare(steps: readonly Step[], { notes } = { notes: true }): void {
  const world = new World();
  for (const taken of steps) {
    apply(world, taken);
    expect(handledTwice(world)).toEqual([]);
  }
  comeToRest(world);
  // So is for how long a host that went is waited for.
  world.wait(HOST_BACK_MS);
  comeToRest(world);
  const fresh = new SchedulerFixture(world.policy, world.pools.map(componentOf));
  fresh.now = world.fixture.now;
  // So is how long others were waited for.
  for (const [id, since] of world.fixture.state.yields) fresh.state.yields.set(id, since);
  fresh.tell({ type: "image", image: "noble", after: world.image });
  const events = [
    ...[...world.nodes].map(([id, { fields, contenders }]) => ({
      type: "node" as const,
      id,
      after: node(id, fields, contenders),
    })),
    ...[...world.requests].map(([id, fields]) => ({
      type: "request" as const,
      id,
      after: request(id, fields),
    })),
  ];
  fresh.tell({ type: "complete", complete: false });
  // And whom other pools of a provider leave its quota to: of a pool that was not looked at yet nobody knows who is first.
  for (const [key, { blocked }] of world.fixture.state.pools) fresh.state.pools.get(key)!.blocked = blocked;
  const actions = fresh.tell(...events, { type: "complete", complete: true });
  expect(actions.filter((action) => action.type !== "pause")).toEqual([]);
  expect(blockedHeads(world.fixture)).toEqual(blockedHeads(fresh));
  for (const key of [
    "pool cloud/main",
    "provider cloud",
    "provider lab",
    "tenant t1",
    "pool cloud/side",
    "zone cloud/main az1",
    "zone cloud/main az2",
    "launching cloud",
  ]) {
    expect([key, clean(world.fixture.state.usage.of(key))]).toEqual([key, clean(fresh.state.usage.of(key))]);
  }
  for (const key of ["cloud/main", "cloud/side", "lab/desk"]) {
    expect([...world.fixture.state.idle.ofPool(key)]).toEqual([...fresh.state.idle.ofPool(key)]);
  }
  if (notes) expect(codes(world.fixture)).toEqual(codes(fresh));
  expect(kept(world)).toEqual(kept({ fixture: fresh, requests: world.requests }));
  expect([...world.fixture.state.pending].sort()).toEqual([...fresh.state.pending].sort());
  expect(world.fixture.state.handling.size).toBe(0);
  expect([...world.fixture.state.handling.claimed()]).toEqual([]);
}

/**
 * Carries out what is open. A refusal is known to this launcher alone, and ends before it is compared, unless nobody is held up
 * by it: then it stays until somebody wants a launch.
 */
function comeToRest(world: World): void {
  performAll(world, 2_000);
  for (let rounds = 0; world.fixture.state.gates.closed.size > 0 && !isIdle(world); rounds++) {
    if (rounds > 50) throw new Error("a refusal that never ends");
    world.wait(300_000);
    performAll(world, 2_000);
  }
}

function performAll(world: World, most: number): void {
  for (let rounds = 0; world.open.length > 0; rounds++) {
    if (rounds > most) throw new Error(`never comes to rest: ${JSON.stringify(world.open)}`);
    world.perform(0);
  }
}

/** Nobody wants a launch, or who does waits for something else and may try: a refusal then stays until somebody tries. */
function isIdle(world: World): boolean {
  const { now, jumped, state } = world.fixture;
  const refused = [...state.gates.closed.values()];
  if (refused.every(({ until, trying }) => trying === undefined && until <= now - jumped)) return true;
  return [...world.fixture.state.pools.values()].every(({ blocked }) => blocked === undefined);
}

/** Requests that wait for a handler although they have one, or have more than one. */
function handledTwice({ fixture: { state }, open }: World): string[] {
  const handled = open.flatMap((action) => ("request" in action ? [action.request] : []));
  return handled.filter((id, index) => state.waiting.has(id) || handled.indexOf(id) !== index);
}

function blockedHeads(fixture: SchedulerFixture): string[] {
  return [...fixture.state.pools.values()].map(({ policy: { key }, blocked }) => `${key} ${blocked?.id}`);
}

function clean(sums: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(sums).filter(([, amount]) => amount !== 0));
}

/** How many hosts are kept for each request. */
function kept({
  fixture,
  requests,
}: Pick<World, "fixture" | "requests">): readonly (readonly [string, number])[] {
  const { inventory } = fixture.state.pools.get("lab/desk")!;
  return [...requests.keys()].map((id) => [id, inventory.keptFor(id).length]);
}

function codes(fixture: SchedulerFixture): string[] {
  return [...fixture.state.verdicts.keys()].sort();
}
