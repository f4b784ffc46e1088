import { expect, test } from "vitest";
import { phaseIn } from "../src/control/progress.ts";
import {
  bytesNeeded,
  formatsIn,
  formatsToPrune,
  isFileOf,
  logsToPrune,
  parseIntentName,
} from "../src/core/files.ts";

test("the files of a build are found exactly, the intent last of all", () => {
  const names = [
    "a-b1.raw",
    "a-b1.raw.md5",
    "a-b1.raw.sha256",
    "a-b1.qcow2",
    "a-b1.d",
    "a-b1.build",
    "a-b12.raw",
    "a-b1",
    "x-a-b1.raw",
  ];
  expect(names.filter((name) => isFileOf("a-b1", name))).toEqual(names.slice(0, 5));
  expect(formatsIn("a-b1", names)).toEqual(["raw", "qcow2"]);
  expect(parseIntentName("my-image.v2-0123.build")).toEqual({ image: "my-image.v2", build: "0123" });
  expect(parseIntentName("notes-2024.txt")).toBeUndefined();
});

test("a format is deleted when it is not to be kept and no provider waits for it (check 30)", () => {
  const onDisk = ["qcow2", "raw", "vhd"];
  expect(formatsToPrune({ onDisk, keepFormats: ["qcow2"], awaited: ["vhd"] })).toEqual(["raw"]);
});

test("logs are pruned by exactly the image's name", () => {
  const log = (name: string, mtimeMs: number) => ({ name, mtimeMs });
  const logs = [
    log("fedora-aa.log", 1),
    log("fedora-bb.log", 3),
    log("fedora-cc.log", 2),
    log("fedora-39-dd.log", 0),
    log("fedora-rawhide-ee.log", 0),
    log("notes.log", 0),
  ];
  expect(logsToPrune("fedora", logs, 1)).toEqual(["fedora-cc.log", "fedora-aa.log"]);
  expect(logsToPrune("fedora", logs, Number.POSITIVE_INFINITY)).toEqual([]);
});

test("room for a build, and what it is at", () => {
  expect([bytesNeeded(undefined), bytesNeeded(1_000)]).toEqual([2 ** 30, 1_200]);
  expect(phaseIn("a\n2026-01-01 10:00:00.123 | dib-run-parts Running 50-x\n+ mv a b\n\n")).toBe(
    "dib-run-parts Running 50-x",
  );
  expect(phaseIn("")).toBe("running");
});
