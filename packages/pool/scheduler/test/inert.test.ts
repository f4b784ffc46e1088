import { expect, test } from "vitest";
import { explain } from "../src/index.ts";
import { type pool as makePool, policy, pool, request, SchedulerFixture } from "./world.ts";

const ID = "200-0000000000";

/** Pools of which that of the provider `inert` looks at no request. */
function fixtureOf(other: Partial<Parameters<typeof makePool>[0]>): SchedulerFixture {
  const given = policy([pool({ provider: "inert" }), pool({ provider: "other", ...other })]);
  const inert = { name: "inert", maxConcurrency: 0, quota: {} };
  return new SchedulerFixture({ ...given, providers: new Map([...given.providers, ["inert", inert]]) });
}

test.each([
  { what: "lacks the label", other: { labels: new Set(["large"]) }, declined_by: [] },
  { what: "has declined", other: {}, declined_by: ["launcher-other/main"] },
])(
  "beside a pool that $what, one whose max-concurrency is 0 is what a request waits for",
  ({ other, declined_by }) => {
    const fixture = fixtureOf(other);
    fixture.tell({ type: "request", id: ID, after: request(ID, { declined_by }) });
    expect(explain(fixture.state, ID)).toMatchObject({
      code: "provider.inert",
      facts: { providers: ["inert"] },
    });
  },
);

test("a request that ends while it is looked at is forgotten", () => {
  const fixture = new SchedulerFixture(policy([pool()]));
  fixture.tell({ type: "request", id: ID, after: request(ID, { state: "pending" }) });
  fixture.tell({ type: "sweep" });
  expect([...fixture.state.requests.handled]).toEqual([ID]);
  fixture.tell({ type: "request", id: ID, after: undefined });
  fixture.tell({ type: "handled", request: ID });
  expect([...fixture.state.requests.pending]).toEqual([]);
});
