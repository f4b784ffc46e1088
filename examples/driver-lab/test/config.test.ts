import type { ConfigFinding } from "@nodeyard/driver";
import { expect, test } from "vitest";
import { labDriver } from "../src/index.ts";

function load(fields: object, labels: readonly string[] = ["board"]) {
  const found: ConfigFinding[] = [];
  const raw = { name: "desk", driver: "lab", folder: "/boards", ...fields };
  const context = {
    labels: new Set(labels),
    diskimages: new Map(),
    report: (one: ConfigFinding) => void found.push(one),
  };
  return { config: labDriver.config.load(raw, context), found };
}

test("defaults are applied once, here", () => {
  const { config, found } = load({ pools: [{ name: "main", labels: [{ name: "board" }] }] });
  expect(found).toEqual([]);
  expect(config).toMatchObject({
    launchTimeoutMs: 30_000,
    bootTimeoutMs: 10_000,
    launchAttempts: 3,
    own: { folder: "/boards", maxBoards: Number.POSITIVE_INFINITY },
  });
  expect(config?.pools[0]?.labels.get("board")).toMatchObject({
    own: { greeting: "board" },
    connection: { type: "raw" },
  });
});

test("a value that cannot be used is reported at its place", () => {
  expect(load({ folder: undefined })).toMatchObject({ config: undefined, found: [{ path: ["folder"] }] });
  expect(load({ folder: "boards" }).found).toEqual([
    {
      severity: "error",
      path: ["folder"],
      message: 'is "boards"; write an absolute path',
    },
  ]);
  expect(load({ pools: [{ name: "main", labels: [{ name: "desk" }] }] }).found).toMatchObject([
    { severity: "error", path: ["pools", 0, "labels", 0, "name"] },
  ]);
});
