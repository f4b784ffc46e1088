import { labelKey, offeringKey } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { type Failures, failureRule, type LaunchWanted, newTally } from "../src/index.ts";
import { policy, pool, SchedulerFixture } from "./world.ts";

const offering = { provider: "cloud", az: null, type: "small" };
const key = offeringKey(offering);
const id = (number: number) => String(number).padStart(10, "0");

/** The answers to launches among what the scheduler does. */
const answers = (actions: ReturnType<SchedulerFixture["tell"]>) =>
  actions.flatMap((action) => {
    if (action.type === "launch")
      return [`${Number(action.node)} begins${action.probe ? ", as a probe" : ""}`];
    return action.type === "refuse-launch" ? [`${Number(action.node)} refused: ${action.why}`] : [];
  });

/** A world with one pool, in which three failed launches of a label are its budget. */
class World extends SchedulerFixture {
  constructor(launches = pool({ limits: { instances: 100 } })) {
    super(policy([launches], { failures: failureRule(3) }));
  }

  wants(number: number, fields: Partial<LaunchWanted> = {}): string[] {
    const node = id(number);
    const launch = {
      node,
      request: `100-${node}`,
      pool: "cloud/main",
      label: "small",
      offering,
      again: false,
      counted: true,
    };
    return answers(this.tell({ type: "launch-wanted", launch: { ...launch, limitMs: 60_000, ...fields } }));
  }

  makes(number: number, state = "building"): string[] {
    return answers(this.node(id(number), { state, external_id: null }, ["c"]));
  }

  ends(number: number): string[] {
    return answers(this.gone("node", id(number)));
  }

  fails(row: number, fields: Partial<Failures> = {}): string[] {
    const last = { kind: "timeout", error: "no answer" };
    const tally = { ...newTally(), spent: { level: row, at: this.now }, row, last };
    return answers(this.tell({ type: "failures", key: labelKey("small"), after: { tally, ...fields } }));
  }

  works(): string[] {
    return answers(this.tell({ type: "failures", key: labelKey("small"), after: { tally: newTally(true) } }));
  }
}

describe("a plan", () => {
  /** Whether the plan of a new request permits its launch. */
  const permits = (world: World) =>
    world.request("100-0000000900", { node_types: ["small"] }).flatMap((action) => {
      if (action.type !== "accept") return [];
      return action.nodes.map((node) => "launch" in node && node.permitted);
    });

  test("of a label that has not worked here leaves it to the order of the nodes", () => {
    expect(permits(new World())).toEqual([false]);
  });

  test("of a closed offering that it tries leaves it to the one who makes the probe", () => {
    const world = new World();
    world.works();
    const tally = { ...newTally(true), row: 5, last: { kind: "timeout", error: "no answer" } } as const;
    const pause = { why: "failures", opens: 1, until: world.now - 1 } as const;
    world.tell({ type: "failures", key, after: { tally, pause } });
    expect(permits(world)).toEqual([false]);
  });
});

describe("launches of a label that has not worked yet", () => {
  test("as many launches begin as the budget allows, the oldest nodes first, in any order of asking", () => {
    const world = new World();
    for (const number of [1, 2, 3, 4, 5]) world.makes(number);
    expect(world.wants(5)).toEqual([]);
    expect(world.wants(4)).toEqual([]);
    for (const number of [3, 1, 2]) expect(world.wants(number)).toEqual([`${number} begins`]);
    // One was aborted, and says nothing: its place is the next one's.
    expect(world.ends(2)).toEqual(["4 begins"]);
  });

  test("all begin as soon as one has succeeded", () => {
    const world = new World();
    for (const number of [1, 2, 3, 4, 5]) world.makes(number);
    for (const number of [1, 2, 3, 4, 5]) world.wants(number);
    expect(world.works()).toEqual(["4 begins", "5 begins"]);
    expect(world.wants(9)).toEqual(["9 begins"]);
  });

  test("none waits for a budget that is spent, and the label is reported once", () => {
    const world = new World();
    for (const number of [1, 2, 3, 4]) world.makes(number);
    for (const number of [1, 2, 3, 4]) world.wants(number);
    expect(world.fails(3)).toEqual([
      expect.stringMatching(/^4 refused: .*3 launches failed in a row.*no answer/),
    ]);
    expect(world.wants(1, { again: true })).toEqual([expect.stringContaining("1 refused")]);
    const reported = () =>
      world
        .tell({ type: "failures", key: labelKey("small"), after: undefined })
        .flatMap((action) => (action.type === "label-changed" ? [action.change] : []));
    expect(reported()).toEqual(["works"]);
    expect(reported()).toEqual([]);
  });

  test("one that failed has used its place up: it is given up rather than kept waiting", () => {
    const world = new World();
    for (const number of [1, 2, 3]) world.makes(number);
    for (const number of [1, 2, 3]) world.wants(number);
    world.fails(1);
    expect(world.wants(1, { again: true })).toEqual([expect.stringContaining("as many are under way")]);
    world.ends(2);
    world.ends(3);
    expect(world.wants(1, { again: true })).toEqual(["1 begins"]);
  });

  test("no launch begins while the view of the tree is incomplete: it may lack older nodes", () => {
    const world = new World();
    world.makes(1);
    world.tell({ type: "complete", complete: false });
    expect(world.wants(1)).toEqual([]);
    expect(answers(world.tell({ type: "complete", complete: true }))).toEqual(["1 begins"]);
  });

  test("one waits as long as a launch may take, and one that is given up is not answered", () => {
    const world = new World();
    for (const number of [1, 2, 3, 4, 5]) world.makes(number);
    for (const number of [1, 2, 3, 4, 5]) world.wants(number);
    world.tell({ type: "launch-given-up", node: id(5) });
    expect(answers(world.wait(59_999))).toEqual([]);
    expect(answers(world.wait(1))).toEqual([expect.stringMatching(/^4 refused: .*within 60000 ms/)]);
    expect(world.state.launches.waiting.size).toBe(0);
    expect(world.works()).toEqual([]);
  });

  test("slots cost no machine: neither do they wait, nor do they take places", () => {
    const slots = pool({ limits: { instances: 100 } });
    const world = new World(slots);
    const providers = new Map([
      ["cloud", { name: "cloud", maxConcurrency: 100, quota: {}, outlivesNodes: true }],
    ]);
    for (const number of [1, 2, 3]) world.makes(number);
    // Failures from before the provider was known count no longer.
    world.tell({ type: "policy", policy: policy([slots], { providers, failures: failureRule(3) }) });
    expect(world.state.launches.making.size).toBe(0);
    for (const number of [4, 5]) world.makes(number);
    world.fails(3);
    expect(world.wants(4, { counted: false })).toEqual(["4 begins"]);
    for (const number of [1, 2, 3, 4, 5]) world.ends(number);
    expect(world.state.launches.made.size).toBe(0);
  });
});

describe("a launch of an offering that is closed", () => {
  const closed = (world: World, prober?: string) => {
    const pause = { why: "failures" as const, opens: 1, until: 60_000 };
    return world.tell({ type: "failures", key, after: { tally: { ...newTally(), row: 5 }, pause, prober } });
  };

  test("is refused before its time; then one request is the probe, and others are refused", () => {
    const world = new World();
    world.works();
    closed(world);
    expect(world.wants(1)).toEqual([expect.stringContaining("1 refused: no launches of small in cloud")]);
    world.wait(60_000);
    expect(world.wants(1)).toEqual(["1 begins, as a probe"]);
    closed(world, `100-${id(1)}`);
    expect(world.wants(2)).toEqual([expect.stringContaining("another request is testing it")]);
    // Another node of the same request belongs to the same try.
    expect(world.wants(3, { request: `100-${id(1)}` })).toEqual(["3 begins"]);
    world.tell({ type: "failures", key });
    expect(world.wants(2)).toEqual(["2 begins"]);
  });
});
