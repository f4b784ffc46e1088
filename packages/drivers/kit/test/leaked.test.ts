import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { leaked, type Resource, resourceKey } from "../src/index.ts";

const OURS = { installation: "ours", provider: "cloud" };

function resource(nodeId: string | null, more: Partial<typeof OURS> = {}, type = "instance"): Resource {
  const tag = nodeId === null ? null : { ...OURS, ...more, pool: "main", nodeId };
  return { type, id: `${type}-${nodeId}-${more.installation ?? ""}`, tag, resources: {} };
}

const sweep = (
  resources: readonly Resource[],
  known: ReadonlySet<string>,
  previous: ReadonlySet<string> = new Set(),
) => leaked(resources, known, { ...OURS, previous });

describe("leaked", () => {
  test("suspects at the first look, deletes at the second, forgets what got a record between", () => {
    const resources = [resource("1"), resource("2"), resource("3")];
    const first = sweep(resources, new Set(["1"]));
    expect([first.remove, first.suspects.size]).toEqual([[], 2]);
    const second = sweep(resources, new Set(["1", "2"]), first.suspects);
    expect(second.remove).toEqual([resource("3")]);
  });

  test("never judges what is not wholly ours", () => {
    const foreign = [
      resource(null),
      resource("9", { installation: "theirs" }),
      resource("9", { provider: "other" }),
    ];
    const first = sweep(foreign, new Set());
    expect(first.suspects.size).toBe(0);
  });

  test("brakes above max(3, 10 %) of ours; foreign resources do not loosen it", () => {
    const lost = (count: number) => Array.from({ length: count }, (_, node) => resource(String(node)));
    const kept = Array.from({ length: 60 }, (_, node) => resource(`k${node}`));
    const known = new Set(kept.map(({ tag }) => tag!.nodeId));
    const twice = (resources: readonly Resource[]) =>
      sweep(resources, known, sweep(resources, known).suspects);
    expect(twice(lost(3)).remove).toHaveLength(3);
    expect(twice(lost(4))).toMatchObject({ remove: [], braked: true, wouldRemove: 4 });
    expect(twice([...kept, ...lost(6)]).remove).toHaveLength(6);
    expect(twice([...kept, ...lost(8)]).braked).toBe(true);
    const foreign = Array.from({ length: 500 }, () => resource(null));
    expect(twice([...foreign, ...lost(4)]).braked).toBe(true);
  });

  test("an id that the cloud gives to another node is a new suspect; the order of an object's fields is not", () => {
    const one = { ...resource("1"), id: { zone: "a", name: "x" } };
    expect(resourceKey(one)).toBe(resourceKey({ ...one, id: { name: "x", zone: "a" } }));
    expect(resourceKey(one)).not.toBe(resourceKey({ ...one, tag: resource("2").tag }));
  });

  test("whatever is listed and known: only ours, unknown, seen twice, and within the brake", () => {
    const node = fc.constantFrom("1", "2", "3", "4", "5", "6");
    const one = fc.record({
      node: fc.option(node),
      installation: fc.constantFrom("ours", "theirs"),
      provider: fc.constantFrom("cloud", "other"),
      type: fc.constantFrom("instance", "port"),
    });
    fc.assert(
      fc.property(fc.array(one, { maxLength: 40 }), fc.array(node), fc.array(one), (now, known, before) => {
        const make = (all: typeof now) =>
          all.map(({ node: id, type, ...owner }) => resource(id, owner, type));
        const ids = new Set<string>(known);
        const previous = sweep(make(before), ids).suspects;
        const { remove } = sweep(make(now), ids, previous);
        for (const item of remove) {
          expect(item.tag).toMatchObject(OURS);
          expect(ids.has(item.tag!.nodeId)).toBe(false);
          expect(previous.has(resourceKey(item))).toBe(true);
        }
        expect(remove.length).toBeLessThanOrEqual(Math.max(3, now.length * 0.1));
      }),
    );
  });
});
