import type { ImageFacts, ImageUploadEntry } from "@nodeyard/view";
import { describe, expect, test } from "vitest";
import { explain, newTally } from "../src/index.ts";
import { component, componentOf, node, policy, pool, SchedulerFixture } from "./world.ts";

const accepted = (actions: readonly { type: string }[]) =>
  actions.flatMap((action) =>
    action.type === "accept" ? [(action as unknown as { request: string }).request] : [],
  );
const id = (number: number) => `100-${String(number).padStart(10, "0")}`;
const nodeId = (number: number) => String(number).padStart(10, "0");

describe("zones", () => {
  const zoned = (fields: object = {}) => pool({ zones: ["az1", "az2"], ...fields });

  test("a nodeset gets one, the least used; what is planned counts at once", () => {
    const fixture = new SchedulerFixture(policy([zoned()]));
    const [first] = fixture.request(id(1), { node_types: ["small", "large"] });
    expect(first).toMatchObject({ type: "accept", zone: "az1" });
    expect(fixture.request(id(2))[0]).toMatchObject({ zone: "az2" });
    expect(fixture.request(id(3))[0]).toMatchObject({ zone: "az2" });
    fixture.node(nodeId(1), { az: "az2", state: "in-use" }, ["c"]);
    fixture.node(nodeId(2), { az: "az2", state: "in-use" }, ["c"]);
    expect(fixture.request(id(4))[0]).toMatchObject({ zone: "az1" });
  });

  test("the first reused node that has one decides it; ready nodes of other zones are left", () => {
    const fixture = new SchedulerFixture(policy([zoned()]));
    fixture.node(nodeId(1), { az: "az2" });
    fixture.node(nodeId(2), { az: "az1", type: ["large"] });
    fixture.node(nodeId(3), { az: "az2", type: ["large"] });
    const [action] = fixture.request(id(1), { node_types: ["small", "large", "large"] });
    expect(action).toMatchObject({
      zone: "az2",
      nodes: [{ reuse: nodeId(1) }, { reuse: nodeId(3) }, { label: "large", launch: {} }],
    });
  });

  test("an idle node of the label in another zone than the nodeset's makes room for it", () => {
    const fixture = new SchedulerFixture(policy([zoned({ limits: { instances: 4 } })]));
    for (const [number, az] of ["az1", "az1", "az2", "az2"].entries())
      fixture.node(nodeId(number + 1), { az });
    const actions = fixture.request(id(1), { node_types: ["small", "small", "small"] });
    expect(fixture.code(id(1))).toBe("capacity.pool");
    expect(actions.filter(({ type }) => type === "delete")).toEqual([
      { type: "delete", node: nodeId(3), version: 0, why: `makes room for ${id(1)}` },
    ]);
    expect(fixture.gone("node", nodeId(3))).toContainEqual(
      expect.objectContaining({
        type: "accept",
        zone: "az1",
        nodes: [
          { reuse: nodeId(1), label: "small" },
          { reuse: nodeId(2), label: "small" },
          expect.anything(),
        ],
      }),
    );
  });

  const closed = (az: string) => ({
    type: "failures" as const,
    key: `cloud|${az}|small`,
    after: {
      tally: { ...newTally(), row: 1, last: { kind: "capacity", error: "no room" } },
      pause: { why: "failures" as const, opens: 1, until: 60_000 },
    },
  });

  test("one without room is given up for the whole nodeset, its ready nodes too", () => {
    const fixture = new SchedulerFixture(policy([zoned()]));
    fixture.node(nodeId(1), { az: "az1", type: ["large"] });
    fixture.tell(closed("az1"));
    const [action] = fixture.request(id(1), { node_types: ["large", "small"] });
    expect(action).toMatchObject({
      zone: "az2",
      nodes: [
        { label: "large", launch: {} },
        { label: "small", launch: {} },
      ],
    });
    fixture.tell(closed("az2"));
    expect(fixture.request(id(2))).toEqual([]);
    expect(fixture.code(id(2))).toBe("offering.failing");
  });
});

describe("images", () => {
  const booting = pool({ images: new Map([["small", "noble"]]) });
  const upload = { provider: "cloud" } as ImageUploadEntry;
  const facts = (fields: Partial<ImageFacts> = {}): ImageFacts => ({
    ready: new Map(),
    uploading: new Set(),
    builds: { building: 0, ready: 0, failed: 0 },
    paused: false,
    ...fields,
  });
  const image = (after: ImageFacts | undefined) => ({ type: "image" as const, image: "noble", after });

  test.each([
    ["building", facts({ builds: { building: 1, ready: 0, failed: 2 } })],
    ["built", facts({ builds: { building: 0, ready: 1, failed: 0 } })],
    ["uploading", facts({ uploading: new Set(["cloud"]) })],
  ])("one that is %s is waited for, with its state, and boots as soon as it is there", (stage, now) => {
    const fixture = new SchedulerFixture(policy([booting]));
    fixture.tell(image(now));
    expect(fixture.request(id(1))).toEqual([]);
    expect(fixture.state.requests.of(id(1))?.verdict).toMatchObject({
      code: "image.waits",
      facts: { image: "noble", provider: "cloud", stage },
    });
    expect(accepted(fixture.request(id(2), { node_types: ["large"] }))).toEqual([id(2)]);
    const elsewhere = { ...now, ready: new Map([["elsewhere", upload]]) };
    expect(fixture.tell(image(elsewhere))).toEqual([]);
    const actions = fixture.tell(image({ ...now, ready: new Map([["cloud", upload]]) }));
    expect(accepted(actions)).toEqual([id(1)]);
  });

  test("no builder makes it: declined; a registered builder may make it: waited for until that builder goes", () => {
    const fixture = new SchedulerFixture(policy([booting]));
    expect(fixture.request(id(1))).toMatchObject([
      { type: "decline", reason: expect.stringMatching(/noble has no upload at cloud/) },
    ]);
    const builder = { ...component("builder/b"), kind: "builder" };
    fixture.tell({ type: "component", key: "builder/b", after: builder });
    expect(fixture.request(id(2))).toEqual([]);
    expect(fixture.code(id(2))).toBe("image.waits");
    expect(fixture.tell({ type: "component", key: "builder/b" })).toMatchObject([
      { type: "decline", request: id(2) },
    ]);
  });

  test("stock is not asked for before it can boot", () => {
    const labels = new Map([["small", { name: "small", minReady: 1, maxReadyAgeMs: 1e9 }]]);
    const fixture = new SchedulerFixture(policy([booting], { labels }));
    expect(fixture.tell(image(facts({ builds: { building: 1, ready: 0, failed: 0 } })))).toEqual([]);
    const ready = fixture.tell(image(facts({ ready: new Map([["cloud", upload]]) })));
    expect(ready).toEqual([{ type: "min-ready", label: "small", count: 1 }]);
  });
});

describe("what is kept for the head of a queue", () => {
  const cores = new Map([
    ["small", { instances: 1, cores: 1 }],
    ["large", { instances: 1, cores: 8 }],
    ["disk", { instances: 1, volumes: 1 }],
  ]);
  const labels = new Set(["small", "large", "disk"]);
  const quota = (limits: object) =>
    new Map([["cloud", { name: "cloud", maxConcurrency: Number.POSITIVE_INFINITY, quota: { ...limits } }]]);
  const busy = (fixture: SchedulerFixture, number: number, resources: object, fields: object = {}) =>
    fixture.node(nodeId(number), { state: "in-use", resources, ...fields }, ["c"]);

  test("small work passes only when it takes nothing that the head is short of", () => {
    const main = pool({ labels, needs: cores, limits: { cores: 10 } });
    const fixture = new SchedulerFixture(policy([main]));
    busy(fixture, 1, { instances: 1, cores: 4 });
    fixture.request(id(1), { node_types: ["large"] });
    expect(fixture.code(id(1))).toBe("capacity.pool");
    expect(fixture.request(id(2), { node_types: ["small"] })).toEqual([]);
    expect(accepted(fixture.request(id(3), { node_types: ["disk"] }))).toEqual([id(3)]);
    expect(accepted(fixture.gone("node", nodeId(1)))).toEqual([id(1), id(2)]);
  });

  test("other pools of the provider reserve the quota that the head lacks, and name the head", () => {
    const [a, b] = [
      pool({ labels, needs: cores }),
      pool({ name: "b", labels: new Set(["disk", "arm"]), needs: cores }),
    ];
    const fixture = new SchedulerFixture(policy([a, b], { providers: quota({ instances: 4 }) }));
    for (const number of [1, 2, 3]) busy(fixture, number, { instances: 1 });
    fixture.request(id(1), { node_types: ["large", "large"] });
    expect(fixture.code(id(1))).toBe("capacity.provider");
    expect(fixture.request(id(2), { node_types: ["arm"] })).toMatchObject([
      { type: "pause", pool: "cloud/b" },
    ]);
    expect(fixture.state.requests.of(id(2))?.verdict).toMatchObject({
      code: "capacity.reserved",
      facts: { kept_for: id(1) },
    });
    // A better request does not wait for the head of another pool.
    expect(accepted(fixture.request("050-0000000001", { node_types: ["arm"] }))).toEqual(["050-0000000001"]);
    // What was kept is free again when the head withdraws.
    fixture.gone("node", nodeId(1));
    expect(accepted(fixture.gone("request", id(1)))).toEqual([id(2)]);
  });

  test("a pool at its own limit delays no other pool", () => {
    const [a, b] = [pool({ limits: { instances: 1 } }), pool({ name: "b", labels: new Set(["arm"]) })];
    const fixture = new SchedulerFixture(policy([a, b], { providers: quota({ instances: 2 }) }));
    busy(fixture, 1, { instances: 1 });
    fixture.request(id(1));
    expect(fixture.code(id(1))).toBe("capacity.pool");
    expect(accepted(fixture.request(id(2), { node_types: ["arm"] }))).toEqual([id(2)]);
  });

  test("far behind a blocked request, those that the pool can serve or must decline are looked at, too", () => {
    const providers = new Map([["cloud", { name: "cloud", maxConcurrency: 1, quota: {} }]]);
    const fixture = new SchedulerFixture(policy([pool({ limits: { instances: 5 } })], { providers }));
    fixture.node(nodeId(1), { state: "building", resources: { instances: 1 } }, ["c"]);
    for (let number = 1; number <= 200; number++) fixture.request(id(number));
    fixture.request(id(201), { node_types: ["large"] });
    expect(fixture.request(id(202), { node_types: Array(6).fill("small") })).toMatchObject([
      { type: "decline", request: id(202) },
    ]);
    expect(accepted(fixture.node(nodeId(3), { type: ["large"] }))).toEqual([id(201)]);
  });

  test("what others use of a quota holds up only who wants it, and it is asked for again", () => {
    const providers = new Map([
      [
        "cloud",
        {
          name: "cloud",
          maxConcurrency: Number.POSITIVE_INFINITY,
          quota: { instances: 3 },
          limits: { instances: 20 },
        },
      ],
    ]);
    const fixture = new SchedulerFixture(policy([pool()], { providers }));
    expect(fixture.request(id(1), { node_types: Array(5).fill("small") })).toEqual([]);
    expect(fixture.state.requests.of(id(1))?.verdict).toMatchObject({
      code: "capacity.provider",
      facts: { used_by_others: 17, need: 5 },
    });
    expect(accepted(fixture.request(id(2)))).toEqual([id(2)]);
    expect(fixture.wait(30_000)).toEqual([{ type: "ask-quota", provider: "cloud" }]);
    const more = quota({ instances: 10 });
    expect(accepted(fixture.tell({ type: "policy", policy: policy([pool()], { providers: more }) }))).toEqual(
      [id(1)],
    );
    expect(fixture.wait(60_000)).toEqual([]);
  });

  test("ignore-provider-quota: only the pool's limits count", () => {
    const providers = quota({ instances: 0 });
    const fixture = new SchedulerFixture(policy([pool({ ignoresQuota: true })], { providers }));
    expect(accepted(fixture.request(id(1)))).toEqual([id(1)]);
  });
});

describe("tenants", () => {
  const limits = { tenantLimits: new Map([["t1", { instances: 4 }]]) };
  const many = (count: number) => ({ node_types: Array(count).fill("small"), tenant_name: "t1" });
  const busy = (fixture: SchedulerFixture, count: number) => {
    for (let number = 1; number <= count; number++)
      fixture.node(nodeId(number), { state: "in-use", tenant_name: "t1", allocated_to: id(99) }, ["c"]);
  };

  test("a large request is not starved by small ones of its tenant", () => {
    const fixture = new SchedulerFixture(policy([pool()], limits));
    busy(fixture, 2);
    fixture.request(id(1), many(4));
    fixture.request(id(2), many(1));
    expect(fixture.state.requests.of(id(2))?.verdict).toMatchObject({
      code: "capacity.tenant",
      facts: { kept_for: id(1) },
    });
    fixture.gone("node", nodeId(1));
    expect(accepted(fixture.gone("node", nodeId(2)))).toEqual([id(1)]);
  });

  test("what was kept for a request that waits for a host now is its others'", () => {
    const lab = pool({
      provider: "lab",
      launches: false,
      labels: new Set(["board"]),
      inventory: new Map([["board", 2]]),
    });
    const fixture = new SchedulerFixture(policy([pool(), lab], limits));
    busy(fixture, 3);
    fixture.request(id(1), { node_types: ["board", "board"], tenant_name: "t1" });
    fixture.request(id(2), many(2));
    expect(fixture.code(id(2))).toBe("capacity.tenant");
    expect(accepted(fixture.gone("node", nodeId(1)))).toEqual([id(2)]);
  });

  test("a withdrawn one gives way", () => {
    const fixture = new SchedulerFixture(policy([pool()], limits));
    busy(fixture, 2);
    expect(accepted(fixture.request(id(2), many(1)))).toEqual([id(2)]);
    fixture.request(id(3), many(3));
    fixture.request(id(4), many(1));
    expect(fixture.code(id(4))).toBe("capacity.tenant");
    expect(accepted(fixture.gone("request", id(3)))).toEqual([id(4)]);
  });
});

describe("a cloud that refuses for quota although it seems to have some", () => {
  test("is tested by one request at a time, with growing pauses; the others know the time of the next test", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    for (const number of [1, 2, 3]) expect(accepted(fixture.request(id(number)))).toEqual([id(number)]);
    for (let each = 0; each < 3; each++) fixture.tell({ type: "quota-refused", provider: "cloud" });
    for (const number of [1, 2, 3]) fixture.tell({ type: "handled", request: id(number), retryMs: 100 });
    expect(accepted(fixture.wait(100))).toEqual([]);
    expect(fixture.state.requests.of(id(1))?.verdict).toMatchObject({
      code: "capacity.refused",
      nextTry: 2_000,
    });
    expect(accepted(fixture.wait(1_900))).toEqual([id(1)]);
    fixture.tell({ type: "quota-refused", provider: "cloud" });
    fixture.tell({ type: "handled", request: id(1), retryMs: 100 });
    expect(accepted(fixture.wait(3_999))).toEqual([]);
    expect(accepted(fixture.wait(1))).toEqual([id(1)]);
    // It worked: all go on.
    expect(accepted(fixture.tell({ type: "handled", request: id(1) })).sort()).toContain(id(2));
    expect(fixture.state.gates.closed.size).toBe(0);
  });

  test("a machine that goes opens it at once; a record whose launch was refused does not", () => {
    const fixture = new SchedulerFixture(policy([pool()]));
    fixture.node(nodeId(1), { state: "in-use", external_id: "m" }, ["c"]);
    fixture.node(nodeId(2), { state: "aborted" }, ["c"]);
    fixture.tell({ type: "quota-refused", provider: "cloud" });
    fixture.request(id(1));
    expect(fixture.code(id(1))).toBe("capacity.refused");
    expect(fixture.gone("node", nodeId(2))).toEqual([]);
    expect(accepted(fixture.gone("node", nodeId(1)))).toEqual([id(1)]);
  });
});

describe("pools that go first", () => {
  test("one that is alive and never serves is waited for 60 s, and the verdict says so", () => {
    const ours = pool();
    const better = component("better", { priority: 50 });
    const fixture = new SchedulerFixture(policy([ours]), [componentOf(ours), better]);
    fixture.request(id(1));
    expect(fixture.state.requests.of(id(1))?.verdict).toMatchObject({
      code: "yield.priority",
      nextTry: 60_000,
    });
    fixture.wait(30_000);
    // News of the registry do not begin the wait anew.
    fixture.tell({ type: "component", key: "third", after: component("third", { priority: 200 }) });
    expect(accepted(fixture.wait(29_999))).toEqual([]);
    expect(accepted(fixture.wait(1))).toEqual([id(1)]);
  });

  test("a preferred provider that never serves, too", () => {
    const ours = pool();
    const them = component("them", { providerName: "p2" });
    const fixture = new SchedulerFixture(policy([ours]), [componentOf(ours), them]);
    fixture.request(id(1), { provider: "p2" });
    expect(accepted(fixture.wait(60_000))).toEqual([id(1)]);
  });

  test("one of our own that has set the request aside is not waited for at all", () => {
    const lab = pool({
      provider: "lab",
      launches: false,
      priority: 50,
      inventory: new Map([["small", 1]]),
      labels: new Set(["small"]),
    });
    const fixture = new SchedulerFixture(policy([pool(), lab]));
    expect(accepted(fixture.request(id(1)))).toEqual([id(1)]);
  });
});

test("facts of an image reach requests that were parked under another pool's label line as well", () => {
  // One request, two pools: without image in one, without a node in the other.
  const booting = pool({ images: new Map([["small", "noble"]]) });
  const lab = pool({
    provider: "lab",
    launches: false,
    labels: new Set(["small"]),
    inventory: new Map([["small", 1]]),
  });
  const fixture = new SchedulerFixture(policy([booting, lab]));
  const facts = {
    ready: new Map(),
    uploading: new Set(["cloud"]),
    builds: { building: 0, ready: 1, failed: 0 },
  };
  fixture.tell({ type: "image", image: "noble", after: { ...facts, paused: false } });
  fixture.request(id(1));
  const free = { ...node(nodeId(1), { provider: "lab" }) };
  expect(accepted(fixture.tell({ type: "node", id: nodeId(1), after: free }))).toEqual([id(1)]);
});

test("a node that the first who waits for an image cannot use is offered to the next one", () => {
  const booting = pool({ images: new Map([["small", "noble"]]) });
  const fixture = new SchedulerFixture(policy([booting]));
  const facts = {
    ready: new Map(),
    uploading: new Set(["cloud"]),
    builds: { building: 0, ready: 1, failed: 0 },
  };
  fixture.tell({ type: "image", image: "noble", after: { ...facts, paused: false } });
  // One wants two, one a new node; the others are served by any that is idle, in order.
  fixture.request(id(1), { node_types: ["small", "small"] });
  fixture.request(id(2), { reuse: false });
  fixture.request(id(4));
  fixture.request(id(3));
  expect(accepted(fixture.node(nodeId(1)))).toEqual([id(3)]);
  expect(accepted(fixture.node(nodeId(2)))).toEqual([id(4)]);
});

test("a request that waited for an image and now stands behind a blocked head gets a new verdict", () => {
  const booting = pool({ limits: { instances: 1 }, images: new Map([["large", "noble"]]) });
  const fixture = new SchedulerFixture(policy([booting]));
  const facts = {
    uploading: new Set(["cloud"]),
    builds: { building: 0, ready: 1, failed: 0 },
    paused: false,
  };
  fixture.tell({ type: "image", image: "noble", after: { ...facts, ready: new Map() } });
  fixture.node(nodeId(1), { state: "in-use" }, ["user"]);
  fixture.request(id(2), { node_types: ["large"] });
  fixture.request(id(1));
  const there = new Map([["cloud", {} as ImageUploadEntry]]);
  fixture.tell({ type: "image", image: "noble", after: { ...facts, ready: there } });
  expect(explain(fixture.state, id(2))).toMatchObject({ code: "queue.behind", facts: { head: id(1) } });
});
