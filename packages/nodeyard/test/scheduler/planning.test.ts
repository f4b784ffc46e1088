import { describe, expect, test } from "vitest";
import { explain } from "../../src/scheduler/index.ts";
import type { ImageFacts, ImageUploadEntry } from "../../src/view/index.ts";
import { component, componentOf, Desk, node, policy, pool, request } from "./world.ts";

const accepted = (actions: readonly { type: string }[]) =>
  actions.flatMap((action) =>
    action.type === "accept" ? [(action as unknown as { request: string }).request] : [],
  );
const id = (number: number) => `100-${String(number).padStart(10, "0")}`;
const nodeId = (number: number) => String(number).padStart(10, "0");

describe("zones", () => {
  const zoned = (fields: object = {}) => pool({ zones: ["az1", "az2"], ...fields });

  test("a nodeset gets one, the least used; what is planned counts at once", () => {
    const desk = new Desk(policy([zoned()]));
    const [first] = desk.request(id(1), { node_types: ["small", "large"] });
    expect(first).toMatchObject({ type: "accept", zone: "az1" });
    expect(desk.request(id(2))[0]).toMatchObject({ zone: "az2" });
    expect(desk.request(id(3))[0]).toMatchObject({ zone: "az2" });
    desk.node(nodeId(1), { az: "az2", state: "in-use" }, ["c"]);
    desk.node(nodeId(2), { az: "az2", state: "in-use" }, ["c"]);
    expect(desk.request(id(4))[0]).toMatchObject({ zone: "az1" });
  });

  test("the first reused node that has one decides it; ready nodes of other zones are left", () => {
    const desk = new Desk(policy([zoned()]));
    desk.node(nodeId(1), { az: "az2" });
    desk.node(nodeId(2), { az: "az1", type: ["large"] });
    desk.node(nodeId(3), { az: "az2", type: ["large"] });
    const [action] = desk.request(id(1), { node_types: ["small", "large", "large"] });
    expect(action).toMatchObject({
      zone: "az2",
      nodes: [{ reuse: nodeId(1) }, { reuse: nodeId(3) }, { label: "large", launch: {} }],
    });
  });

  test("an idle node of the label in another zone than the nodeset's makes room for it", () => {
    const desk = new Desk(policy([zoned({ limits: { instances: 4 } })]));
    for (const [number, az] of ["az1", "az1", "az2", "az2"].entries()) desk.node(nodeId(number + 1), { az });
    const actions = desk.request(id(1), { node_types: ["small", "small", "small"] });
    expect(desk.code(id(1))).toBe("capacity.pool");
    expect(actions.filter(({ type }) => type === "delete")).toEqual([
      { type: "delete", node: nodeId(3), state: "ready", why: `makes room for ${id(1)}` },
    ]);
    expect(desk.gone("node", nodeId(3))).toContainEqual(
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
    type: "offering" as const,
    key: `cloud|${az}|small`,
    after: {
      why: "failures" as const,
      until: 60_000,
      prober: null,
      hopeless: false,
      since: 0,
      failures: 1,
      kind: "capacity",
      error: "no room",
    },
  });

  test("one without room is given up for the whole nodeset, its ready nodes too", () => {
    const desk = new Desk(policy([zoned()]));
    desk.node(nodeId(1), { az: "az1", type: ["large"] });
    desk.tell(closed("az1"));
    const [action] = desk.request(id(1), { node_types: ["large", "small"] });
    expect(action).toMatchObject({
      zone: "az2",
      nodes: [
        { label: "large", launch: {} },
        { label: "small", launch: {} },
      ],
    });
    desk.tell(closed("az2"));
    expect(desk.request(id(2))).toEqual([]);
    expect(desk.code(id(2))).toBe("offering.failing");
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
    const desk = new Desk(policy([booting]));
    desk.tell(image(now));
    expect(desk.request(id(1))).toEqual([]);
    expect(desk.state.verdicts.get(id(1))).toMatchObject({
      code: "image.waits",
      facts: { image: "noble", provider: "cloud", stage },
    });
    expect(accepted(desk.request(id(2), { node_types: ["large"] }))).toEqual([id(2)]);
    const elsewhere = { ...now, ready: new Map([["elsewhere", upload]]) };
    expect(desk.tell(image(elsewhere))).toEqual([]);
    const actions = desk.tell(image({ ...now, ready: new Map([["cloud", upload]]) }));
    expect(accepted(actions)).toEqual([id(1)]);
  });

  test("nobody makes it: declined; a registered builder may: waited for until it goes", () => {
    const desk = new Desk(policy([booting]));
    expect(desk.request(id(1))).toMatchObject([
      { type: "decline", reason: expect.stringMatching(/noble has no upload at cloud/) },
    ]);
    const builder = { ...component("builder/b"), kind: "builder" };
    desk.tell({ type: "component", key: "builder/b", after: builder });
    expect(desk.request(id(2))).toEqual([]);
    expect(desk.code(id(2))).toBe("image.waits");
    expect(desk.tell({ type: "component", key: "builder/b" })).toMatchObject([
      { type: "decline", request: id(2) },
    ]);
  });

  test("a ready node needs none; one that comes free serves who waits for the image", () => {
    const desk = new Desk(policy([booting]));
    desk.tell(image(facts({ builds: { building: 1, ready: 0, failed: 0 } })));
    desk.request(id(1));
    expect(accepted(desk.node(nodeId(1)))).toEqual([id(1)]);
  });

  test("stock is not asked for before it can boot", () => {
    const labels = new Map([["small", { name: "small", minReady: 1, maxReadyAgeMs: 1e9 }]]);
    const desk = new Desk(policy([booting], { labels }));
    expect(desk.tell(image(facts({ builds: { building: 1, ready: 0, failed: 0 } })))).toEqual([]);
    const ready = desk.tell(image(facts({ ready: new Map([["cloud", upload]]) })));
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
  const busy = (desk: Desk, number: number, resources: object, fields: object = {}) =>
    desk.node(nodeId(number), { state: "in-use", resources, ...fields }, ["c"]);

  test("small work passes only when it takes nothing that the head is short of", () => {
    const main = pool({ labels, needs: cores, limits: { cores: 10 } });
    const desk = new Desk(policy([main]));
    busy(desk, 1, { instances: 1, cores: 4 });
    desk.request(id(1), { node_types: ["large"] });
    expect(desk.code(id(1))).toBe("capacity.pool");
    expect(desk.request(id(2), { node_types: ["small"] })).toEqual([]);
    expect(accepted(desk.request(id(3), { node_types: ["disk"] }))).toEqual([id(3)]);
    expect(accepted(desk.gone("node", nodeId(1)))).toEqual([id(1), id(2)]);
  });

  test("other pools of the provider leave the quota of which it is short, and say for whom", () => {
    const [a, b] = [
      pool({ labels, needs: cores }),
      pool({ name: "b", labels: new Set(["disk", "arm"]), needs: cores }),
    ];
    const desk = new Desk(policy([a, b], { providers: quota({ instances: 4 }) }));
    for (const number of [1, 2, 3]) busy(desk, number, { instances: 1 });
    desk.request(id(1), { node_types: ["large", "large"] });
    expect(desk.code(id(1))).toBe("capacity.provider");
    expect(desk.request(id(2), { node_types: ["arm"] })).toMatchObject([{ type: "pause", pool: "cloud/b" }]);
    expect(desk.state.verdicts.get(id(2))).toMatchObject({
      code: "capacity.reserved",
      facts: { kept_for: id(1) },
    });
    // A better request does not wait for the head of another pool.
    expect(accepted(desk.request("050-0000000001", { node_types: ["arm"] }))).toEqual(["050-0000000001"]);
    // What was kept is free again when the head withdraws.
    desk.gone("node", nodeId(1));
    expect(accepted(desk.gone("request", id(1)))).toEqual([id(2)]);
  });

  test("a pool at its own limit holds up nobody else", () => {
    const [a, b] = [pool({ limits: { instances: 1 } }), pool({ name: "b", labels: new Set(["arm"]) })];
    const desk = new Desk(policy([a, b], { providers: quota({ instances: 2 }) }));
    busy(desk, 1, { instances: 1 });
    desk.request(id(1));
    expect(desk.code(id(1))).toBe("capacity.pool");
    expect(accepted(desk.request(id(2), { node_types: ["arm"] }))).toEqual([id(2)]);
  });

  test("far behind a blocked head, what it can serve or must decline is looked at all the same", () => {
    const providers = new Map([["cloud", { name: "cloud", maxConcurrency: 1, quota: {} }]]);
    const desk = new Desk(policy([pool({ limits: { instances: 5 } })], { providers }));
    desk.node(nodeId(1), { state: "building", resources: { instances: 1 } }, ["c"]);
    for (let number = 1; number <= 200; number++) desk.request(id(number));
    desk.request(id(201), { node_types: ["large"] });
    expect(desk.request(id(202), { node_types: Array(6).fill("small") })).toMatchObject([
      { type: "decline", request: id(202) },
    ]);
    expect(accepted(desk.node(nodeId(3), { type: ["large"] }))).toEqual([id(201)]);
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
    const desk = new Desk(policy([pool()], { providers }));
    expect(desk.request(id(1), { node_types: Array(5).fill("small") })).toEqual([]);
    expect(desk.state.verdicts.get(id(1))).toMatchObject({
      code: "capacity.provider",
      facts: { used_by_others: 17, need: 5 },
    });
    expect(accepted(desk.request(id(2)))).toEqual([id(2)]);
    expect(desk.wait(30_000)).toEqual([{ type: "ask-quota", provider: "cloud" }]);
    const more = quota({ instances: 10 });
    expect(accepted(desk.tell({ type: "policy", policy: policy([pool()], { providers: more }) }))).toEqual([
      id(1),
    ]);
    expect(desk.wait(60_000)).toEqual([]);
  });

  test("ignore-provider-quota: only the pool's limits count", () => {
    const desk = new Desk(policy([pool({ ignoresQuota: true })], { providers: quota({ instances: 0 }) }));
    expect(accepted(desk.request(id(1)))).toEqual([id(1)]);
  });
});

describe("tenants", () => {
  const limits = { tenantLimits: new Map([["t1", { instances: 4 }]]) };
  const many = (count: number) => ({ node_types: Array(count).fill("small"), tenant_name: "t1" });
  const busy = (desk: Desk, count: number) => {
    for (let number = 1; number <= count; number++)
      desk.node(nodeId(number), { state: "in-use", tenant_name: "t1", allocated_to: id(99) }, ["c"]);
  };

  test("a large request is not starved by small ones of its tenant", () => {
    const desk = new Desk(policy([pool()], limits));
    busy(desk, 2);
    desk.request(id(1), many(4));
    desk.request(id(2), many(1));
    expect(desk.state.verdicts.get(id(2))).toMatchObject({
      code: "capacity.tenant",
      facts: { kept_for: id(1) },
    });
    desk.gone("node", nodeId(1));
    expect(accepted(desk.gone("node", nodeId(2)))).toEqual([id(1)]);
  });

  test("what was kept for a request that waits for a host now is its others'", () => {
    const lab = pool({
      provider: "lab",
      launches: false,
      labels: new Set(["board"]),
      inventory: new Map([["board", 2]]),
    });
    const desk = new Desk(policy([pool(), lab], limits));
    busy(desk, 3);
    desk.request(id(1), { node_types: ["board", "board"], tenant_name: "t1" });
    desk.request(id(2), many(2));
    expect(desk.code(id(2))).toBe("capacity.tenant");
    expect(accepted(desk.gone("node", nodeId(1)))).toEqual([id(2)]);
  });

  test("a withdrawn one gives way", () => {
    const desk = new Desk(policy([pool()], limits));
    busy(desk, 2);
    expect(accepted(desk.request(id(2), many(1)))).toEqual([id(2)]);
    desk.request(id(3), many(3));
    desk.request(id(4), many(1));
    expect(desk.code(id(4))).toBe("capacity.tenant");
    expect(accepted(desk.gone("request", id(3)))).toEqual([id(4)]);
  });
});

describe("a cloud that refuses for quota although it seems to have some", () => {
  test("is asked by one request at a time, with a growing pause; who waits is told until when", () => {
    const desk = new Desk(policy([pool()]));
    for (const number of [1, 2, 3]) expect(accepted(desk.request(id(number)))).toEqual([id(number)]);
    for (let each = 0; each < 3; each++) desk.tell({ type: "quota-refused", provider: "cloud" });
    for (const number of [1, 2, 3]) desk.tell({ type: "handled", request: id(number), retryMs: 100 });
    expect(accepted(desk.wait(100))).toEqual([]);
    expect(desk.state.verdicts.get(id(1))).toMatchObject({ code: "capacity.refused", nextTry: 2_000 });
    expect(accepted(desk.wait(1_900))).toEqual([id(1)]);
    desk.tell({ type: "quota-refused", provider: "cloud" });
    desk.tell({ type: "handled", request: id(1), retryMs: 100 });
    expect(accepted(desk.wait(3_999))).toEqual([]);
    expect(accepted(desk.wait(1))).toEqual([id(1)]);
    // It worked: all go on.
    expect(accepted(desk.tell({ type: "handled", request: id(1) })).sort()).toContain(id(2));
    expect(desk.state.refusals.size).toBe(0);
  });

  test("a machine that goes opens it at once; a record whose launch was refused does not", () => {
    const desk = new Desk(policy([pool()]));
    desk.node(nodeId(1), { state: "in-use", external_id: "m" }, ["c"]);
    desk.node(nodeId(2), { state: "aborted" }, ["c"]);
    desk.tell({ type: "quota-refused", provider: "cloud" });
    desk.request(id(1));
    expect(desk.code(id(1))).toBe("capacity.refused");
    expect(desk.gone("node", nodeId(2))).toEqual([]);
    expect(accepted(desk.gone("node", nodeId(1)))).toEqual([id(1)]);
  });
});

describe("pools that go first", () => {
  test("one that is alive and never serves is waited for 60 s, and the verdict says so", () => {
    const ours = pool();
    const better = component("better", { priority: 50 });
    const desk = new Desk(policy([ours]), [componentOf(ours), better]);
    desk.request(id(1));
    expect(desk.state.verdicts.get(id(1))).toMatchObject({ code: "yield.priority", nextTry: 60_000 });
    desk.wait(30_000);
    // News of the registry do not begin the wait anew.
    desk.tell({ type: "component", key: "third", after: component("third", { priority: 200 }) });
    expect(accepted(desk.wait(29_999))).toEqual([]);
    expect(accepted(desk.wait(1))).toEqual([id(1)]);
  });

  test("a preferred provider that never serves, too", () => {
    const ours = pool();
    const desk = new Desk(policy([ours]), [componentOf(ours), component("them", { providerName: "p2" })]);
    desk.request(id(1), { provider: "p2" });
    expect(accepted(desk.wait(60_000))).toEqual([id(1)]);
  });

  test("one of our own that has set the request aside is not waited for at all", () => {
    const lab = pool({
      provider: "lab",
      launches: false,
      priority: 50,
      inventory: new Map([["small", 1]]),
      labels: new Set(["small"]),
    });
    const desk = new Desk(policy([pool(), lab]));
    expect(accepted(desk.request(id(1)))).toEqual([id(1)]);
  });

  test("one whose max-concurrency is 0 neither", () => {
    const off = pool({ provider: "off", priority: 50 });
    const providers = new Map([
      ["off", { name: "off", maxConcurrency: 0, quota: {} }],
      ["cloud", { name: "cloud", maxConcurrency: Number.POSITIVE_INFINITY, quota: {} }],
    ]);
    const desk = new Desk(policy([off, pool()], { providers }));
    expect(accepted(desk.request(id(1)))).toEqual([id(1)]);
  });
});

describe("min-ready of several launchers", () => {
  const labels = new Map([
    ["small", { name: "small", minReady: 2, maxReadyAgeMs: Number.POSITIVE_INFINITY }],
  ]);
  const asked = (actions: readonly { type: string }[]) => actions.filter(({ type }) => type === "min-ready");
  const ours = pool();
  const us = { ...componentOf(ours), key: "pool/b0000000002" };
  const them = component("pool/a0000000001");

  test("the one that is registered longest asks; the next only when it is still short later", () => {
    const desk = new Desk(policy([ours], { labels }), [them, us]);
    expect(asked(desk.tell({ type: "tick" }))).toEqual([]);
    expect(asked(desk.wait(9_999))).toEqual([]);
    expect(asked(desk.wait(1))).toEqual([{ type: "min-ready", label: "small", count: 2 }]);
  });

  test("the turns begin anew when a label can be made again", () => {
    const desk = new Desk(policy([ours], { labels }), [them, us]);
    const closed = (unavailable: ReadonlyMap<string, string>) =>
      asked(desk.tell({ type: "policy", policy: policy([{ ...ours, unavailable }], { labels }) }));
    expect(asked(desk.tell({ type: "tick" }))).toEqual([]);
    expect(closed(new Map([["small", "its image is gone"]]))).toEqual([]);
    expect(asked(desk.wait(60_000))).toEqual([]);
    expect(closed(new Map())).toEqual([]);
    expect(asked(desk.wait(9_999))).toEqual([]);
    expect(asked(desk.wait(1))).toHaveLength(1);
  });

  test("what the first asked for is not asked for again; when it goes, the next asks at once", () => {
    const desk = new Desk(policy([ours], { labels }), [them, us]);
    const minReady = { requestor: "NodePool:min-ready", reuse: false, state: "pending" };
    for (const number of [1, 2])
      desk.tell({
        type: "request",
        id: `900-${nodeId(number)}`,
        after: request(`900-${nodeId(number)}`, minReady),
      });
    expect(asked(desk.wait(60_000))).toEqual([]);
    desk.gone("request", `900-${nodeId(1)}`);
    expect(asked(desk.tell({ type: "component", key: them.key }))).toEqual([
      { type: "min-ready", label: "small", count: 1 },
    ]);
  });

  test("idle nodes of a request that another launcher may get are replaced when it is ours", () => {
    const desk = new Desk(policy([ours], { labels }), [us]);
    for (const number of [1, 2]) desk.tell({ type: "node", id: nodeId(number), after: node(nodeId(number)) });
    expect(asked(desk.request(id(1)))).toEqual([]);
    // Whatever lets it look at the label again.
    expect(asked(desk.tell({ type: "min-ready-requested", label: "small" }))).toEqual([]);
    expect(asked(desk.tell({ type: "started", request: id(1) }))).toEqual([
      { type: "min-ready", label: "small", count: 1 },
    ]);
  });

  test("after everybody declined, nothing is asked for a while", () => {
    const desk = new Desk(policy([ours], { labels }), [us]);
    const failed = { requestor: "NodePool:min-ready", reuse: false, state: "failed" };
    desk.request("900-0000000001", failed);
    expect(asked(desk.tell({ type: "min-ready-requested", label: "small" }))).toEqual([]);
    expect(asked(desk.gone("request", "900-0000000001"))).toEqual([]);
    expect(asked(desk.wait(14_999))).toEqual([]);
    expect(asked(desk.wait(1))).toHaveLength(1);
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
  const desk = new Desk(policy([booting, lab]));
  const facts = {
    ready: new Map(),
    uploading: new Set(["cloud"]),
    builds: { building: 0, ready: 1, failed: 0 },
  };
  desk.tell({ type: "image", image: "noble", after: { ...facts, paused: false } });
  desk.request(id(1));
  const free = { ...node(nodeId(1), { provider: "lab" }) };
  expect(accepted(desk.tell({ type: "node", id: nodeId(1), after: free }))).toEqual([id(1)]);
});

test("a node that the first who waits for an image cannot use is offered to the next one", () => {
  const booting = pool({ images: new Map([["small", "noble"]]) });
  const desk = new Desk(policy([booting]));
  const facts = {
    ready: new Map(),
    uploading: new Set(["cloud"]),
    builds: { building: 0, ready: 1, failed: 0 },
  };
  desk.tell({ type: "image", image: "noble", after: { ...facts, paused: false } });
  // One wants two, one a new node; the others are served by any that is idle, in order.
  desk.request(id(1), { node_types: ["small", "small"] });
  desk.request(id(2), { reuse: false });
  desk.request(id(4));
  desk.request(id(3));
  expect(accepted(desk.node(nodeId(1)))).toEqual([id(3)]);
  expect(accepted(desk.node(nodeId(2)))).toEqual([id(4)]);
});

test("who waited for an image and waits behind a blocked head now is told so", () => {
  const booting = pool({ limits: { instances: 1 }, images: new Map([["large", "noble"]]) });
  const desk = new Desk(policy([booting]));
  const facts = {
    uploading: new Set(["cloud"]),
    builds: { building: 0, ready: 1, failed: 0 },
    paused: false,
  };
  desk.tell({ type: "image", image: "noble", after: { ...facts, ready: new Map() } });
  desk.node(nodeId(1), { state: "in-use" }, ["user"]);
  desk.request(id(2), { node_types: ["large"] });
  desk.request(id(1));
  const there = new Map([["cloud", {} as ImageUploadEntry]]);
  desk.tell({ type: "image", image: "noble", after: { ...facts, ready: there } });
  expect(explain(desk.state, id(2))).toMatchObject({ code: "queue.behind", facts: { head: id(1) } });
});
