import { labelKey } from "@nodeyard/model";
import { expect } from "vitest";
import { hasPlace, isTrusted, places } from "../src/failure-rule.ts";
import type { State } from "../src/index.ts";
import { newTally } from "../src/index.ts";
import { Slots } from "../src/slot-index.ts";
import type { Topic } from "../src/waits.ts";
import { rule } from "./incremental-failures.ts";
import { slicing, type World } from "./incremental-world.ts";
import { SchedulerFixture } from "./world.ts";

const TOPICS: readonly Topic[] = [
  "registry",
  "yield",
  "start",
  "label",
  "tenant",
  "image",
  "gate",
  "quota",
  "launch",
  "slot",
];

/**
 * Everybody waits for what a fresh scheduler has them wait for, or is looked at in the queue of a pool. They may stand in the line of
 * what they waited for before as well: that costs one look. A request that waits for quota meets what closed meanwhile only then. What one of a tenant with a limit waits for depends on who was looked at
 * first.
 */
export function expectWaits({ waits, pools }: State, fresh: State): void {
  const queues = [...pools.values()].map(({ queue }) => queue);
  const forQuota = new Set([...waits.of("quota")].map(({ id }) => id));
  const missing = TOPICS.flatMap((topic) =>
    fresh.waits.names(topic).flatMap((name) => {
      const there = new Set([...waits.line(topic, name)].map(({ id }) => id));
      const lacking = [...fresh.waits.line(topic, name)].filter(
        (waiter) =>
          waiter.record.tenantName === null &&
          !there.has(waiter.id) &&
          !(topic === "gate" && forQuota.has(waiter.id)) &&
          !queues.some((queue) => queue.has(waiter)),
      );
      return lacking.map(({ id }) => `${id} lacks in ${topic} ${name}`);
    }),
  );
  expect(missing).toEqual([]);
}

/** What follows from the records alone, whatever handlers are at: the same as a fresh scheduler derives. */
export function expectDerived(world: World): void {
  expectSlots(world);
  expectLaunches(world);
  expectGates(world);
  const { state } = world.fixture;
  // Who stands in a line of requests waits; who waits for a slot is worked on.
  const wrong = TOPICS.filter((topic) => topic !== "slot").flatMap((topic) =>
    [...state.waits.of(topic)].filter(({ id }) => state.requests.of(id)?.waiting === undefined),
  );
  expect(wrong).toEqual([]);
}

function expectSlots({ fixture: { state, at }, backings, launches, given }: World): void {
  const { slots, waits } = state;
  const fresh = new Slots();
  for (const [id, facts] of backings) fresh.set(id, facts);
  expect(slots.free()).toEqual(fresh.free());
  expect(new Map(slots.promised())).toEqual(given);
  const asked = [...launches.values()].filter((launch) => launch.asked === "slot");
  const wants = slots.requests().flatMap((request) => slots.wanted(request).map(({ node }) => node));
  expect(wants.sort()).toEqual(asked.map(({ wanted }) => wanted.node).sort());
  const waiting = [...new Set(asked.map(({ wanted }) => wanted.request))].sort();
  expect([...waits.of("slot")].map(({ id }) => id)).toEqual(waiting);
  if (waiting.length === 0) return;
  const free = [...backings.values()].flatMap(({ id, taken, ended, launched }) =>
    ended === undefined && at.now - launched * 1000 <= slicing.maxAgeMs
      ? [0, 1].filter((slot) => !taken.has(slot)).map((slot) => `${id}/${slot}`)
      : [],
  );
  expect(free.filter((key) => !given.has(key))).toEqual([]);
}

function expectLaunches({ fixture: { state, at }, nodes, launches, failures }: World): void {
  const making = new Map<string, string[]>();
  for (const [id, { fields }] of [...nodes].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (fields.provider === "slicer" || !["init", "building"].includes(String(fields.state))) continue;
    for (const label of fields.type as string[]) making.set(label, [...(making.get(label) ?? []), id]);
  }
  expect(new Map([...state.launches.making].map(([label, ids]) => [label, [...ids]]))).toEqual(making);
  const asked = [...launches.values()].filter((launch) => launch.asked === "launch");
  const waiting = asked.map(({ wanted }) => wanted.node).sort();
  expect([...state.launches.waiting.keys()].sort()).toEqual(waiting);
  expect([...state.launches.waits.of("launch")].map(({ node }) => node).sort()).toEqual(waiting);
  for (const { wanted } of asked) {
    const { node, label } = wanted;
    expect(state.timers.get("launch", node)).toBeGreaterThan(at.steady);
    const tally = failures.known.get(labelKey(label))?.tally ?? newTally();
    const most = places(tally, at.steady, rule);
    const line = making.get(label) ?? [];
    const ids = { size: line.length, at: (index: number) => line[index] };
    const mayBegin =
      isTrusted(tally, rule) || most === 0 || hasPlace(ids, most, { node, again: false }, rule);
    expect([node, mayBegin]).toEqual([node, false]);
  }
}

/** A refusal for quota is known to this launcher alone; a label that was closed stays so until it works. */
function expectGates({ fixture, failures, policy }: World): void {
  const fresh = new SchedulerFixture(policy);
  fresh.now = fixture.now;
  fresh.jumped = fixture.jumped;
  for (const [key, after] of failures.known) fresh.tell({ type: "failures", key, after });
  const known = new Map(fixture.state.gates.closed);
  for (const [key, { code }] of known) {
    const { tally = newTally() } = failures.known.get(key) ?? {};
    const stays = key.startsWith("label|") && tally.row > 0 && !isTrusted(tally, rule);
    if (code === "capacity.refused" || (stays && !fresh.state.gates.closed.has(key))) known.delete(key);
  }
  const brief = (closed: typeof known) =>
    new Map([...closed].map(([key, { trying: _, until: __, ...facts }]) => [key, facts]));
  expect(brief(known)).toEqual(brief(fresh.state.gates.closed));
}
