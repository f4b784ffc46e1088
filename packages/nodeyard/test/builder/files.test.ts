import { expect, test } from "vitest";
import { phaseIn } from "../../src/builder/control/progress.ts";
import {
  bytesNeeded,
  formatsIn,
  formatsToPrune,
  isFileOf,
  logsToPrune,
  parseIntentName,
} from "../../src/builder/core/files.ts";
import { commandOf } from "../../src/builder/runs/back-ends.ts";
import type { ImageSettings } from "../../src/config/index.ts";

const image: ImageSettings = {
  name: "noble",
  username: "zuul",
  pythonPath: "auto",
  shellType: null,
  formats: [],
  keepFormats: [],
  deleteAfterUpload: false,
  elements: ["ubuntu-minimal", "vm"],
  env: { DIB_RELEASE: "x", NODEYARD_BUILD: "forged" },
  release: "noble",
  rebuildAgeMs: 1,
  buildTimeoutMs: 1,
  paused: false,
  dibCommand: ["/opt/my dib/disk-image-create", "--quiet"],
  command: null,
  metadata: {},
};
const order = {
  image,
  build: "b1",
  base: "/images of mine/noble-b1",
  formats: ["qcow2", "raw"],
  work: "/images of mine/.work/noble-b1",
  elementsDir: "/elements",
};

test("diskimage-builder is run as the old builder runs it (spec builder.md section 5)", () => {
  expect(commandOf(order)).toEqual({
    argv: [
      "/opt/my dib/disk-image-create",
      "--quiet",
      "-x",
      "-t",
      "qcow2,raw",
      "--checksum",
      "--no-tmpfs",
      "--qemu-img-options",
      "compat=0.10",
      "-o",
      "/images of mine/noble-b1",
      "ubuntu-minimal",
      "vm",
    ],
    env: {
      DIB_RELEASE: "x",
      DIB_IMAGE_NAME: "noble",
      DIB_IMAGE_FILENAME: "/images of mine/noble-b1",
      ELEMENTS_PATH: "/elements",
      NODEYARD_IMAGE_FORMATS: "qcow2 raw",
      TMPDIR: "/images of mine/.work/noble-b1",
      // What a build is found by is nobody's to set.
      NODEYARD_BUILD: "b1",
    },
  });
  const raw = commandOf({ ...order, formats: ["raw"], elementsDir: null });
  expect(raw.argv).not.toContain("--qemu-img-options");
  expect(raw.env).not.toHaveProperty("ELEMENTS_PATH");
  expect(commandOf({ ...order, image: { ...image, command: ["/bin/make", "a b"] } }).argv).toEqual([
    "/bin/make",
    "a b",
  ]);
});

test("files of a build are its own and nobody else's, the intent last of all", () => {
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

test("a format goes when nobody keeps it and no provider waits for it (black-box check 30)", () => {
  const onDisk = ["qcow2", "raw", "vhd"];
  expect(formatsToPrune({ onDisk, keepFormats: ["qcow2"], awaited: ["vhd"] })).toEqual(["raw"]);
});

test("logs are pruned by exactly the image's name (spec builder.md section 6)", () => {
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
