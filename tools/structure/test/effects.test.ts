import { describe, expect, it } from "vitest";
import { findingsIn } from "./tree.ts";

const effectsIn = (source: string, path = "packages/base/model/src/inner.ts") =>
  findingsIn({ [path]: `${source}\n` });

describe("effects", () => {
  it.each([
    ["Date.now()", "Date.now"],
    ["const at = new Date();", "new Date()"],
    ["const at = new Date;", "new Date()"],
    ["const at = Date();", "new Date()"],
    ["performance.now();", "performance"],
    ["const r = Math.random();", "Math.random"],
    ["crypto.randomUUID();", "crypto.randomUUID"],
    ["setTimeout(f, 1);", "setTimeout"],
    ["new Promise((r) => setImmediate(r));", "setImmediate"],
    ["AbortSignal.timeout(5);", "AbortSignal.timeout"],
    ["const a = await fetch(url);", "fetch"],
    ["fetch(url);", "fetch"],
    ["const now = { ...process.env };", "process"],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text
    ["const t = `${Date.now()}`;", "Date.now"],
    ['import { connect } from "node:net";', "node:net"],
    ['import { readFile } from "fs/promises";', "fs/promises"],
    ['import { setTimeout as sleep } from "node:timers/promises";', "node:timers/promises"],
    ['import { createHash, randomBytes } from "node:crypto";', "node:crypto"],
    ['const m = await import("node:worker_threads");', "node:worker_threads"],
  ])("refuses %s", (source, what) => {
    expect(effectsIn(source)).toContainEqual(expect.stringMatching(/^effect /));
    expect(effectsIn(source).join()).toContain(what);
  });

  it.each([
    "// Date.now()",
    "const text = 'Math.random()';",
    "const at = new Date(record.time);",
    "const at: Date = made;",
    "clock.setTimeout(1); this.fetch(url); context.process.end();",
    "class A { async fetch(url: string): Promise<void> {} }",
    "interface B { fetch(url: string): void; performance: number; process?: string }",
    "function load(fetch: typeof globalThis.fetch) { return fetch(url); }",
    "const load = ({ fetch }) => fetch(url);",
    'import type { Socket } from "node:net";',
    'import { createHash } from "node:crypto";',
    'import { join } from "node:path";',
    "queueMicrotask(f);",
  ])("allows %s", (source) => {
    expect(effectsIn(source)).toEqual([]);
  });

  it("permits effects in edges, entry points and tests", () => {
    for (const path of [
      "packages/base/model/src/edge/clock.ts",
      "packages/base/model/src/deep/edge/clock.ts",
      "packages/base/model/src/testing/clock.ts",
      "packages/base/model/test/clock.test.ts",
      "packages/nodeyard/cli/src/bin/main.ts",
      "tools/main.ts",
    ])
      expect(effectsIn("Date.now();", path)).toEqual([]);
  });
});
