import { labelKey, offeringKey } from "@nodeyard/model";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HOST_BACK_MS } from "../src/hosts.ts";
import { expectDerived, expectWaits } from "./incremental-checks.ts";
import { type Fails, LAUNCH_MS, making, reusedBy, there, World } from "./incremental-world.ts";
import { componentOf, node, request, SchedulerFixture } from "./world.ts";

const anyLabel = fc.constantFrom("small", "large", "board", "phone", "image", "slice", "nothing");
const several = (label: fc.Arbitrary<string>, maxLength = 3) => fc.array(label, { minLength: 1, maxLength });
const tenant = fc.constantFrom(null, "t1");
const pick = fc.nat(50);
const kind = <K extends string, F extends object>(name: K, fields: { [P in keyof F]: fc.Arbitrary<F[P]> }) =>
  fc.record({ kind: fc.constant(name), ...fields }) as unknown as fc.Arbitrary<{ kind: K } & F>;

const ask = kind("ask", { labels: several(anyLabel), tenant, reuse: fc.boolean() });
const perform = (...fails: Fails[]) =>
  kind("perform", { pick, fails: fc.constantFrom<Fails>(undefined, undefined, ...fails) });
const cancel = kind("cancel", { pick });
const use = kind("use", { pick });
const vanish = kind("vanish", { pick });
const wait = kind("wait", { ms: fc.constantFrom(500, 5_000, 70_000) });
const backing = kind("backing", {
  change: fc.constantFrom("new", "new", "taken", "freed", "moved", "ended", "gone"),
  pick,
});
const small = (az: string) => offeringKey({ provider: "cloud", az, type: "small" });
const failures = kind("failures", {
  change: fc.constantFrom("closes", "hopeless", "spent", "tries", "works", "forgotten"),
  key: fc.constantFrom(
    labelKey("small"),
    small("az1"),
    small("az2"),
    offeringKey({ provider: "cloud", az: null, type: "image" }),
    offeringKey({ provider: "slicer", az: null, type: "slice" }),
  ),
});
const theirs = kind("theirs", { label: fc.constantFrom("small", "large") });

/** Where quota, images and offerings all change, what a request waits for depends on which of them changed first. */
const step = fc.oneof(
  { weight: 4, arbitrary: ask },
  { weight: 12, arbitrary: perform("quota") },
  { weight: 2, arbitrary: cancel },
  { weight: 1, arbitrary: kind("lost", { labels: several(anyLabel) }) },
  { weight: 1, arbitrary: kind("sweep", {}) },
  { weight: 3, arbitrary: use },
  {
    weight: 3,
    arbitrary: kind("hosts", { labels: fc.constantFrom(["board"], ["phone"], ["board", "phone"]) }),
  },
  {
    weight: 2,
    arbitrary: kind("ask", {
      labels: fc.oneof(
        several(fc.constantFrom("board", "phone")),
        several(fc.constant("image"), 2),
        several(fc.constant("slice")),
      ),
      tenant,
      reuse: fc.constant(true),
    }),
  },
  { weight: 1, arbitrary: kind("image", { there: fc.boolean() }) },
  { weight: 1, arbitrary: kind("stock", {}) },
  { weight: 1, arbitrary: kind("refuse", {}) },
  { weight: 1, arbitrary: kind("quota", { instances: fc.constantFrom(1, 4, 6, 9) }) },
  { weight: 2, arbitrary: wait },
  { weight: 1, arbitrary: vanish },
  { weight: 2, arbitrary: backing },
  { weight: 1, arbitrary: theirs },
);

/** Launches and slots alone, many at once. */
const launchStep = fc.oneof(
  {
    weight: 6,
    arbitrary: kind("ask", {
      labels: fc.oneof(several(fc.constant("small")), several(fc.constant("slice"))),
      tenant: fc.constant(null),
      reuse: fc.constant(false),
    }),
  },
  { weight: 14, arbitrary: perform("timeout", "capacity", "quota", "configuration") },
  ...[cancel, use, vanish, wait].map((arbitrary) => ({ weight: 1, arbitrary })),
  ...[backing, failures, theirs].map((arbitrary) => ({ weight: 3, arbitrary })),
);

const at = <T>(values: Iterable<T>, pick: number): T | undefined => {
  const all = [...values];
  return all[pick % Math.max(1, all.length)];
};

type Step = typeof step | typeof launchStep extends fc.Arbitrary<infer T> ? T : never;

function apply(world: World, taken: Step): void {
  switch (taken.kind) {
    case "ask":
      return world.ask(`100-${world.id()}`, {
        node_types: taken.labels,
        requestor: taken.tenant === null ? "zuul" : "other",
        tenant_name: taken.tenant,
        reuse: taken.reuse,
      });
    case "lost":
      return world.ask(`100-${world.id()}`, { node_types: taken.labels, state: "pending" });
    case "sweep":
      return world.tell({ type: "sweep" });
    case "perform":
      return world.perform(taken.pick, taken.fails);
    case "cancel": {
      const id = at(world.requests.keys(), taken.pick);
      return id === undefined ? undefined : world.cancel(id);
    }
    case "use": {
      const id = at(world.nodes.keys(), taken.pick);
      const found = id === undefined ? undefined : world.nodes.get(id);
      if (id === undefined || found === undefined) return;
      if (found.contenders.includes("us")) return;
      const next = (
        {
          building: ["ready", []],
          ready: ["in-use", ["user"]],
          "in-use": ["used", []],
        } as Record<string, [string, string[]]>
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
      return world.put(world.id(), { provider: "cloud", pool: "side", type: ["image"], ...reusedBy() });
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
    case "backing":
      return changeBacking(world, taken);
    case "failures":
      return changeFailures(world, taken);
    // Another launcher makes a node, which takes a place of its label's budget.
    case "theirs":
      return world.put(
        world.id(),
        { provider: "cloud", pool: "main", type: [taken.label], state: "building" },
        ["them"],
      );
  }
}

function changeBacking(world: World, { change, pick }: Extract<Step, { kind: "backing" }>): void {
  if (change === "new") return world.setBacking(world.id(), {});
  const found = at(world.backings.values(), pick);
  if (found === undefined) return;
  const { id, version, ended } = found;
  const taken = new Set(found.taken);
  if (change === "gone") return world.dropBacking(id);
  if (change === "moved") return world.setBacking(id, { version: version + 1 });
  if (change === "ended") return world.setBacking(id, { ended: ended === undefined ? "retired" : undefined });
  if (change === "taken") taken.add(pick % 2);
  else taken.delete(pick % 2);
  world.setBacking(id, { taken });
}

/** What another launcher learns of an offering or a label. */
function changeFailures(world: World, { change, key }: Extract<Step, { kind: "failures" }>): void {
  const { now } = world.fixture;
  const known = world.failures.record(key);
  if (change === "forgotten") return world.failures.forget(key);
  if (change === "works") return world.failures.set(key, undefined);
  if (change === "tries") return world.failures.set(key, known, known && "200-0000000001");
  const isLabel = key === labelKey("small");
  const opens = change === "hopeless" ? 4 : 1;
  const failures = change === "hopeless" ? 5 : 3;
  const level = change === "closes" ? 1 : 3;
  world.failures.set(key, {
    spent: { level, at: now },
    failures,
    since: known?.since ?? now,
    kind: "timeout",
    error: "no answer",
    ...(isLabel ? {} : { pause: { why: "failures", opens, until: now + 15_000 } }),
  });
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
  test("the same after long courses, for any requestor", () => {
    const longer = fc.array(
      step.map((taken) => (taken.kind === "ask" ? { ...taken, tenant: null } : taken)),
      { maxLength: 80, size: "max" },
    );
    fc.assert(
      fc.property(longer, (steps) => compare(steps, { notes: false })),
      { numRuns: 100 },
    );
  });

  test("the same where launches fail, and wait for each other or for a slot", () => {
    fc.assert(
      fc.property(fc.array(launchStep, { maxLength: 80, size: "max" }), (steps) =>
        compare(steps, { notes: false, room: 10 }),
      ),
      { numRuns: 60 },
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

  test("who waits for quota, and has no image any more, waits for that", () => {
    const pair: Step = { kind: "ask", labels: ["image", "image"], tenant: null, reuse: true };
    const image = (isThere: boolean): Step => ({ kind: "image", there: isThere });
    compare([{ kind: "quota", instances: 1 }, pair, image(true), image(false)], { notes: false });
  });

  test("who waits until a label is launched again, and has no image of another any more, waits for that", () => {
    const spent: Step = { kind: "failures", change: "spent", key: labelKey("small") };
    const pair: Step = { kind: "ask", labels: ["image", "small"], tenant: null, reuse: false };
    const image = (isThere: boolean): Step => ({ kind: "image", there: isThere });
    compare([image(true), spent, pair, image(false)], { notes: false });
  });

  test("a label of whose budget less is spent than was known may be tried at once", () => {
    const failures = (change: "spent" | "closes"): Step => ({
      kind: "failures",
      change,
      key: labelKey("small"),
    });
    const one: Step = { kind: "ask", labels: ["small"], tenant: null, reuse: false };
    compare([failures("spent"), one, failures("closes")], { notes: false });
  });

  test("who waits for quota is declined when its label is given up", () => {
    const pair: Step = { kind: "ask", labels: ["small", "small"], tenant: null, reuse: false };
    const hopeless: Step = { kind: "failures", change: "hopeless", key: labelKey("small") };
    compare([{ kind: "quota", instances: 1 }, pair, hopeless], { notes: false });
  });

  test("who waits for an image may still say so when a node of its label comes that the first request keeps", () => {
    const asked = (...labels: ("image" | "small")[]): Step => ({
      kind: "ask",
      labels,
      tenant: null,
      reuse: true,
    });
    compare([asked("image", "small"), { kind: "quota", instances: 1 }, asked("image"), { kind: "stock" }]);
  });

  test("the first request waits for its image when that goes, and delays the others no longer", () => {
    const asked = (...labels: "image"[]): Step => ({ kind: "ask", labels, tenant: null, reuse: true });
    const small: Step = { kind: "ask", labels: ["small"], tenant: null, reuse: false };
    const image = (isThere: boolean): Step => ({ kind: "image", there: isThere });
    const pair = asked("image", "image");
    compare([pair, pair, asked("image"), small, image(true), asked("image"), image(false)], { notes: false });
  });
});

function compare(steps: readonly Step[], { notes = true, room = 1 } = {}): void {
  const world = new World(room);
  for (const taken of steps) {
    apply(world, taken);
    expect(handledTwice(world)).toEqual([]);
    expectDerived(world);
  }
  comeToRest(world);
  // So is for how long a host that went is waited for.
  world.wait(HOST_BACK_MS);
  comeToRest(world);
  const fresh = new SchedulerFixture(world.policy, world.pools.map(componentOf));
  fresh.now = world.fixture.now;
  // So is how long others were waited for.
  for (const id of world.requests.keys())
    fresh.state.requests.at(id).yieldedAt = world.fixture.state.requests.of(id)?.yieldedAt;
  fresh.tell({ type: "image", image: "noble", after: world.image });
  for (const [key, after] of world.failures.known) fresh.tell({ type: "failures", key, after });
  const events = [
    ...[...world.backings].map(([id, after]) => ({ type: "backing" as const, id, after })),
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
  // And for whom the rest of a tenant's limit is kept: that is whoever was looked at first.
  const { waits } = world.fixture.state;
  for (const first of waits.line("tenant", "t1")) fresh.state.waits.join("tenant", "t1", first);
  const actions = fresh.tell(...events, { type: "complete", complete: true });
  expect(actions.filter((action) => action.type !== "pause")).toEqual([]);
  expectWaits(world.fixture.state, fresh.state);
  expect(blockedHeads(world.fixture)).toEqual(blockedHeads(fresh));
  for (const key of [
    "pool cloud/main",
    "provider cloud",
    "provider lab",
    "tenant t1",
    "pool cloud/side",
    "pool slicer/slices",
    "zone cloud/main az1",
    "zone cloud/main az2",
    "launching cloud",
  ]) {
    expect([key, clean(world.fixture.state.usage.of(key))]).toEqual([key, clean(fresh.state.usage.of(key))]);
  }
  for (const key of ["cloud/main", "cloud/side", "lab/desk"]) {
    for (const index of ["idle", "kept"] as const)
      expect([...world.fixture.state[index].ofPool(key)]).toEqual([...fresh.state[index].ofPool(key)]);
  }
  if (notes) expect(codes(world.fixture, fresh)).toEqual(codes(fresh, fresh));
  expect(kept(world)).toEqual(kept({ fixture: fresh, requests: world.requests }));
  expect([...world.fixture.state.requests.pending].sort()).toEqual([...fresh.state.requests.pending].sort());
  expect([...world.fixture.state.requests.handled]).toEqual([]);
  expect(world.fixture.state.requests.size).toBe(world.requests.size);
  expect([...world.fixture.state.requests.claims]).toEqual([]);
  expect([...world.fixture.state.slots.promised()]).toEqual([]);
  expect(world.fixture.state.slots.requests()).toEqual([]);
}

/**
 * Carries out what is open: every launch that begins succeeds. Nodes that others make are made, and slots come for those who wait for
 * one. A closed gate ends before it is compared if somebody is held up by it and may try: a refusal is known to this launcher alone.
 */
function comeToRest(world: World): void {
  for (const [id, { contenders }] of [...world.nodes]) if (contenders.includes("them")) world.drop(id);
  performAll(world, 2_000);
  for (let rounds = 0; world.handlers.size > 0 || !isIdle(world); rounds++) {
    if (rounds > 100) throw new Error("never comes to rest");
    const { waits } = world.fixture.state;
    if (waits.names("slot").length > 0) world.setBacking(world.id(), {});
    else world.wait(LAUNCH_MS);
    performAll(world, 2_000);
    expectDerived(world);
  }
}

function performAll(world: World, most: number): void {
  for (let rounds = 0; world.open.length > 0; rounds++) {
    if (rounds > most) throw new Error(`never comes to rest: ${JSON.stringify(world.open)}`);
    world.perform(0);
  }
}

/** Nobody waits for what is closed and may be tried, or will be soon: it stays so until somebody wants a launch. */
function isIdle({ fixture }: World): boolean {
  const { at, state } = fixture;
  if ([...state.pools.values()].some(({ blocked }) => blocked !== undefined) && isRefused(fixture))
    return false;
  return [...state.gates.closed].every(
    ([key, { until, prober }]) =>
      prober !== undefined || state.waits.line("gate", key).size === 0 || until > at.steady,
  );
}

/** A cloud refused for quota, which a fresh scheduler does not know. */
function isRefused({ state, at }: SchedulerFixture): boolean {
  return [...state.gates.closed.values()].some(
    ({ code, until, trying }) => code === "capacity.refused" && (trying !== undefined || until > at.steady),
  );
}

/** Requests that wait for a handler although they have one, or have more than one. */
function handledTwice({ fixture: { state }, open, handlers }: World): string[] {
  const handled = open.flatMap((action) => ("request" in action ? [action.request] : []));
  handled.push(...handlers.keys());
  return handled.filter(
    (id, index) => state.requests.of(id)?.waiting !== undefined || handled.indexOf(id) !== index,
  );
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

/** Who has a note of its own. Of those behind a blocked head that depends on the past: they may have been looked at before it came. */
function codes(fixture: SchedulerFixture, fresh: SchedulerFixture): string[] {
  const behind = [...fresh.state.pools.values()].flatMap(({ blocked, queue }) =>
    blocked === undefined ? [] : [...queue].map(({ id }) => id).filter((id) => id !== blocked.id),
  );
  return [...fixture.verdicts().keys()].filter((id) => !behind.includes(id)).sort();
}
