import type { Rspec } from "@nodeyard/sliver-protocol";
import { expect, test } from "vitest";
import { remarksOf } from "../src/machines.ts";

const effective = { disk: 65_536, memoryCap: 98_304 } as Rspec;

test("a disk that is nearly full is said, one that has room or no limit is not", () => {
  expect(remarksOf({ effective, usage: { disk: 63 << 20 } })).toEqual([
    "its disk (64 MiB) is nearly full: it uses 63 MiB",
  ]);
  expect(remarksOf({ effective, usage: { disk: 32 << 20 } })).toEqual([]);
  expect(remarksOf({ effective: { ...effective, disk: 0 }, usage: { disk: 1 << 30 } })).toEqual([]);
  expect(remarksOf({ effective })).toEqual([]);
});

test("a sliver that its document holds is said to be suspended", () => {
  expect(remarksOf({ effective, held: true })).toEqual([
    "its document holds it: it is suspended until it is no longer held",
  ]);
});
