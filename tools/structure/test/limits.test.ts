import { describe, expect, it } from "vitest";
import { findingsIn } from "./tree.ts";

const limitsIn = (source: string, path = "packages/base/model/test/a.test.ts") =>
  findingsIn({ [path]: `${source}\n` }).filter((finding) => finding.startsWith("limit "));

describe("limits of time in tests", () => {
  it.each([
    'test("a", { timeout: 60_000 }, run);',
    'execFile("ssh", words, { timeout: 20000 });',
    "const signal = AbortSignal.timeout(30_000);",
    "  }, 120_000);",
    "  afterAll(() => rig.stop(), 60_000);",
    "const PATIENCE_MS = 45_000;",
  ])("%s is refused", (source) => {
    expect(limitsIn(source)).toEqual([expect.stringContaining("packages/base/model/test/a.test.ts:1 ")]);
  });

  it.each([
    'test("a", { timeout: patient(60_000) }, run);',
    "      600_000,",
    "const yaml = `boot-timeout: 3600`;",
    "        }, 5_000);",
  ])("%s is none", (source) => {
    expect(limitsIn(source)).toEqual([]);
  });

  it("is no matter of what is shipped", () => {
    expect(limitsIn("const LIMIT_MS = 60_000;", "packages/base/model/src/a.ts")).toEqual([]);
  });
});
