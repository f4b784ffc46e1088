import type { Rspec } from "@nodeyard/sliver-protocol";
import { expect, test } from "vitest";
import { remarksOf, updatesOf } from "../src/remarks.ts";

const effective = { disk: 65_536, memoryCap: 98_304 } as Rspec;

test("a disk that is nearly full is said, one that has room or no limit is not", () => {
  expect(remarksOf({ effective, usage: { disk: 63 << 20 } })).toEqual([
    "its disk (64 MiB) is nearly full: it uses 63 MiB",
  ]);
  expect(remarksOf({ effective, usage: { disk: 32 << 20 } })).toEqual([]);
  expect(remarksOf({ effective: { ...effective, disk: 0 }, usage: { disk: 1 << 30 } })).toEqual([]);
  expect(remarksOf({ effective })).toEqual([]);
});

test("a sliver of a version of its image that was on trial is said to be that", () => {
  expect(remarksOf({ effective, triedVersion: "0123456789abcdef" })).toEqual([
    "it was made of a version of its image that was on trial (sha256:0123456789ab)",
  ]);
});

test("a sliver that its document holds is said to be suspended", () => {
  expect(remarksOf({ effective, held: true })).toEqual([
    "its document holds it: it is suspended until it is no longer held",
  ]);
});

test("updates of a machine's images are one line each, and none where none is tried", () => {
  const version = "0123456789abcdef";
  const end = { image: "job", version, why: "3 of 3 launches failed", at: 0 };
  expect(
    updatesOf({
      images: [
        { ...end, verdict: "rolled-back" },
        { ...end, verdict: "on-trial", why: "0 of 2 launches failed" },
      ],
    }),
  ).toEqual([
    "a new version of image job (sha256:0123456789ab) was rolled back: 3 of 3 launches failed",
    "a new version of image job (sha256:0123456789ab) is on trial: 0 of 2 launches failed",
  ]);
  expect(updatesOf({})).toEqual([]);
});
