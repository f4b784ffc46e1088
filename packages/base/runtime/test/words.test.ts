import { expect, test } from "vitest";
import { choices, counted, nearest } from "../src/index.ts";

test("one thing is singular", () => {
  expect([0, 1, 2].map((count) => counted(count, "commit"))).toEqual(["0 commits", "1 commit", "2 commits"]);
  expect([1, 2].map((count) => counted(count, "node is", "nodes are"))).toEqual(["1 node is", "2 nodes are"]);
});

test("a name that is not known gets the most similar one, and those that there are", () => {
  const known = ["ubuntu-noble", "debian", "debian", "arm-board"];
  expect(nearest("debain", known)).toBe("debian");
  expect(["raedy", "reay", "redy", "deady", "none"].map((name) => nearest(name, ["ready"]))).toEqual([
    ...Array(4).fill("ready"),
    undefined,
  ]);
  expect(choices("debain", known)).toBe("did you mean debian? known: arm-board, debian, ubuntu-noble");
  expect(choices("windows", known)).toBe("known: arm-board, debian, ubuntu-noble");
  expect(choices("debian", [])).toBe("known: none");
  const many = Array.from({ length: 45 }, (_, at) => `label-${at + 10}`);
  expect(choices("windows", many)).toMatch(/^known: label-10, .*, label-39 and 15 more$/);
});
