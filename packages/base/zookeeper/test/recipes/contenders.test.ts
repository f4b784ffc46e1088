import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { contenderPrefix, holderOf, sortContenders } from "../../src/recipes/contenders.ts";

const digits = fc.stringMatching(/^[0-9]{10}$/);
const sequence = fc.oneof(
  digits,
  digits.map((text) => `-${text}`),
);
const contender = fc.tuple(fc.string(), sequence).map(([before, seq]) => `${before}__lock__${seq}`);

describe("contender names", () => {
  test("a prefix is 32 hex digits and the infix that kazoo looks for", () => {
    expect(contenderPrefix("0190AB12-3456-4789-8abc-def012345678")).toBe(
      "0190ab12345647898abcdef012345678__lock__",
    );
    expect(() => contenderPrefix("lock-1")).toThrow(/"lock-1" is not a UUID/);
  });

  test.each([
    ["_c_0190ab12-lock-0000000001"],
    ["lock-0000000001"],
    ["0190ab12345647898abcdef012345678__rlock__0000000001"],
    ["x__lock__000000001"],
    ["x__lock__00000000012"],
    ["x__lock__0000000001.bak"],
    ["x__lock__+000000001"],
    ["lock"],
    [""],
  ])("%s is not in the line", (name) => {
    expect(sortContenders([name])).toEqual([]);
    expect(holderOf([name])).toBeUndefined();
  });

  test("anything may come before the infix", () => {
    const names = ["a__lock__b__lock__-0000000007", "__lock__2147483647"];
    expect(sortContenders(names)).toEqual(names);
  });

  test("sequences are compared as strings, so an overflowed counter comes first and runs backwards", () => {
    const names = [
      "a__lock__2147483647",
      "b__lock__-2147483647",
      "c__lock__-2147483648",
      "d__lock__0000000000",
    ];
    expect(sortContenders(names).map((name) => name[0])).toEqual(["b", "c", "d", "a"]);
    expect(holderOf(names)).toBe("b__lock__-2147483647");
  });

  test("holder and order agree for any mixture of children, in any order", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(contender, fc.string())),
        fc.infiniteStream(fc.nat()),
        (names, chance) => {
          const sorted = sortContenders(names);
          expect(holderOf(names)).toBe(sorted[0]);
          const shuffled = names
            .map((name) => ({ name, at: chance.next().value as number }))
            .sort((a, b) => a.at - b.at)
            .map(({ name }) => name);
          expect(sortContenders(shuffled)).toEqual(sorted);
          for (let i = 1; i < sorted.length; i++) {
            const [before, after] = [sorted[i - 1]!, sorted[i]!].map((name) => /-?\d{10}$/.exec(name)![0]);
            expect(before! <= after!).toBe(true);
          }
        },
      ),
    );
  });
});
