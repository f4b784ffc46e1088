import type { ImageFacts } from "@nodeyard/view";
import { describe, expect, test } from "vitest";
import type { LocalPool, State } from "../src/index.ts";
import { component, policy, pool, SchedulerFixture } from "./world.ts";

const MINUTE = 60_000;
const id = (number: number) => `100-${String(number).padStart(10, "0")}`;
const nodeId = (number: number) => String(number).padStart(10, "0");
const withImage = (fields: Partial<LocalPool> = {}) =>
  pool({ images: new Map([["small", "noble"]]), ...fields });
const facts = (fields: Partial<ImageFacts> = {}): ImageFacts => ({
  ready: new Map(),
  uploading: new Set(),
  builds: { building: 0, ready: 0, failed: 0 },
  paused: false,
  ...fields,
});
const builder = component("builder/b1", { kind: "builder" });
const registered = { ...builder, kind: "builder" as const };

/** A fixture with a builder, of which nobody knows what it builds. */
function fixtureWithBuilder(fields: object = {}): SchedulerFixture {
  const fixture = new SchedulerFixture(policy([withImage()], fields));
  fixture.tell({ type: "component", key: registered.key, after: registered });
  return fixture;
}

describe("a request for an image that no registered builder makes", () => {
  test("is declined once builders were idle for ten minutes, and those after it at once", () => {
    const fixture = fixtureWithBuilder();
    expect(fixture.request(id(1))).toEqual([]);
    expect(fixture.state.requests.of(id(1))?.verdict).toMatchObject({
      code: "image.waits",
      nextTry: 10 * MINUTE,
    });
    expect(fixture.wait(9 * MINUTE)).toEqual([]);
    expect(fixture.wait(MINUTE)).toMatchObject([
      { type: "decline", request: id(1), reason: expect.stringContaining("no registered builder builds it") },
    ]);
    expect(fixture.request(id(2))).toMatchObject([{ type: "decline", request: id(2) }]);
  });

  test("waits on while it is tried and fails", () => {
    const fixture = fixtureWithBuilder();
    fixture.tell({
      type: "image",
      image: "noble",
      after: facts({ builds: { building: 0, ready: 0, failed: 2 } }),
    });
    fixture.request(id(1));
    for (let count = 0; count < 12; count++) expect(fixture.wait(10 * MINUTE)).toEqual([]);
    expect(fixture.code(id(1))).toBe("image.waits");
  });

  test("another builder, or the image, gives new requests new hope", () => {
    const fixture = fixtureWithBuilder();
    fixture.request(id(1));
    fixture.wait(10 * MINUTE);
    fixture.tell({ type: "component", key: "builder/b2", after: { ...registered, key: "builder/b2" } });
    expect(fixture.request(id(2))).toEqual([]);
    fixture.wait(10 * MINUTE);
    fixture.tell({
      type: "image",
      image: "noble",
      after: facts({ builds: { building: 1, ready: 0, failed: 0 } }),
    });
    expect(fixture.request(id(3))).toEqual([]);
    expect(fixture.code(id(3))).toBe("image.waits");
  });
});

test("a nodeset above its tenant's limit is declined at once, and keeps nothing from others of the tenant", () => {
  const limits = { tenantLimits: new Map([["t1", { instances: 4 }]]) };
  const fixture = new SchedulerFixture(policy([pool()], limits));
  const many = (count: number) => ({ node_types: Array(count).fill("small"), tenant_name: "t1" });
  expect(fixture.request(id(1), many(5))).toMatchObject([
    { type: "decline", request: id(1), reason: expect.stringContaining("the tenant's limit is 4") },
  ]);
  expect(fixture.request(id(2), many(4))).toMatchObject([{ type: "accept", request: id(2) }]);
});

/** How much each part of the state holds. */
function sizes(state: State): Record<string, number> {
  const found: Record<string, number> = {};
  const look = (name: string, value: unknown) => {
    if (typeof value !== "object" || value === null) return;
    if ("size" in value) found[name] = Number(value.size);
    else for (const [part, inner] of Object.entries(value)) look(`${name}.${part}`, inner);
  };
  for (const [name, value] of Object.entries(state)) if (name !== "policy") look(name, value);
  return found;
}

test("what has gone leaves nothing behind: requests that waited, their tenants, nodes of labels and pools", () => {
  const image = withImage();
  const plain = pool({ name: "plain", limits: { instances: 1 } });
  const fixture = new SchedulerFixture(
    policy([image, plain], { tenantLimits: new Map([["t1", { instances: 1 }]]) }),
  );
  fixture.tell({ type: "component", key: registered.key, after: registered });
  const before = sizes(fixture.state);
  for (let number = 1; number <= 200; number++) {
    const tenant_name = number % 2 === 0 ? `tenant ${number}` : "t1";
    fixture.request(id(number), { tenant_name, requestor: number % 3 === 0 ? "NodePool:min-ready" : "zuul" });
    fixture.node(
      nodeId(number),
      {
        tenant_name,
        type: [`label ${number}`],
        pool: `pool ${number}`,
        allocated_to: number % 5 === 0 ? null : id(number),
        requestor: "NodePool:min-ready",
        state: number % 7 === 0 ? "deleting" : "ready",
      },
      ["c"],
    );
  }
  for (let number = 1; number <= 200; number++) {
    fixture.gone("request", id(number));
    fixture.tell({ type: "handled", request: id(number) });
    fixture.gone("node", nodeId(number));
  }
  fixture.wait(60 * MINUTE);
  expect(sizes(fixture.state)).toEqual(before);
});
