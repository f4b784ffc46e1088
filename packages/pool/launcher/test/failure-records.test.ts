import { dirname } from "node:path/posix";
import { decodeFailures, decodeNode, failurePath, labelKey, offeringKey } from "@nodeyard/model";
import { seededRandom } from "@nodeyard/runtime";
import { type Failures, failureRule } from "@nodeyard/scheduler";
import { memoryJournal, memoryLog } from "@nodeyard/telemetry";
import { ensurePath } from "@nodeyard/tree";
import type { NodeEntry, ViewEvent } from "@nodeyard/view";
import { expect, test } from "vitest";
import { FailureRecords, type Permit } from "../src/failure-records.ts";
import { World } from "./rules/world.ts";

const offering = { provider: "cloud", az: null, type: "small" };
const key = offeringKey(offering);
const label = labelKey("small");

/** Failure records of a launcher whose view hears of what happened when the test says so. */
function started() {
  const world = new World();
  const own = new Map<string, { readonly data: Uint8Array; readonly version: number }>();
  const listeners: ((event: ViewEvent) => void)[] = [];
  const known = new Map<string, Failures | undefined>();
  const nodes = { byId: new Map(), byLabel: { get: () => [] } };
  const handles = {
    view: { own, nodes, follow: (listener: (event: ViewEvent) => void) => listeners.push(listener) },
    tree: world.cluster.connect({ name: "launcher", sessionTimeoutMs: 10_000 }),
    ages: {
      ...{ stored: (_: string, instant: number) => instant, treeTimeOf: (instant: number) => instant },
      forget: () => {},
    },
    ...{ log: memoryLog(), journal: memoryJournal(), counters: { add: () => {} } },
    ...{ clock: world.clock, random: seededRandom(1) },
  };
  const records = new FailureRecords(
    handles as unknown as ConstructorParameters<typeof FailureRecords>[0],
    (changed, failures) => known.set(changed, failures),
    () => failureRule(60),
  );
  const tell = (event: object) => {
    for (const listener of listeners) listener(event as ViewEvent);
  };
  const data = () => world.cluster.znodes.data(failurePath(key));
  /** The view catches up with the record of the offering. */
  const see = () => {
    const [path, before, now] = [failurePath(key), own.get(failurePath(key)), data()];
    const after = now && { data: now, version: 0 };
    if (after === undefined) own.delete(path);
    else own.set(path, after);
    tell({ type: "own", path, before, after });
  };
  const permit = (of: string | null = null): Permit => ({
    ...{ offering, label: of, request: "100-1", began: world.clock.monotonic() },
  });
  const fail = (kind: "capacity" | "transient", of: string | null = null) =>
    records.failed(permit(of), { kind, error: "no" }, false);
  const level = () => decodeFailures(key, data()!).spent.level;
  return {
    tree: handles.tree,
    records,
    known,
    tell,
    see,
    permit,
    fail,
    level,
    settle: world.settle.bind(world),
  };
}

test("each success makes good one failure of its offering, whatever is written or deleted at that moment, and none of its label", async () => {
  const { tree, records, known, see, permit, fail, level, settle } = started();
  await settle(ensurePath(tree, dirname(failurePath(key))));
  for (let n = 0; n < 3; n++) await settle(fail("transient", "small"));
  const labelLevel = () => known.get(label)?.tally.spent.level;
  const before = labelLevel();
  expect(before).toBeGreaterThan(2.9);
  // The offering closes while a launch of it succeeds.
  const closing = fail("capacity");
  await new Promise<void>(setImmediate);
  await settle(records.succeeded(permit("small")));
  await settle(closing);
  expect(level()).toBeCloseTo(4, 1);
  see();
  // This one opens it. The view hears last of all that the record is gone.
  await settle(records.succeeded(permit()));
  see();
  await settle(fail("capacity"));
  expect(level()).toBeCloseTo(3, 1);
  // A failure of a closed offering is counted on top of the record, less what launches made good that began before it closed.
  see();
  for (let n = 0; n < 2; n++) await settle(records.succeeded({ ...permit(), began: -1 }));
  await settle(fail("capacity"));
  await settle(records.succeeded(permit()));
  see();
  await settle(fail("capacity"));
  expect(level()).toBeCloseTo(2, 1);
  expect(labelLevel()).toBeCloseTo(before!, 1);
});

test("a node that was up before says nothing of launches of its label", async () => {
  const { known, tell, fail, settle } = started();
  const entry = (state: string, fields: object = {}): NodeEntry => {
    const record = { state, type: ["small"], external_id: "m", ...fields };
    const read = decodeNode("0000000001", new TextEncoder().encode(JSON.stringify(record)));
    return { id: "0000000001", record: read, contenders: [] } as unknown as NodeEntry;
  };
  const up = { interface_ip: "10.0.0.1" };
  const row = async (...states: NodeEntry[]) => {
    await settle(fail("transient", "small"));
    states.slice(1).map((after, at) => tell({ type: "node", id: after.id, before: states[at], after }));
    return known.get(label)?.tally.row;
  };
  const checking = { nodeyard: { reuse: { settings: "a", since: 1, times: 1, checking: true } } };
  expect(
    await row(entry("used", up), entry("building", { ...up, driver_data: checking }), entry("ready", up)),
  ).toBe(1);
  expect(await row(entry("hold", up), entry("building", up), entry("ready", up))).toBe(2);
  expect(await row(entry("building", { external_id: null }), entry("building"), entry("ready", up))).toBe(0);
});
