import { describe, expect, it } from "vitest";
import { findingsIn, manifest } from "./tree.ts";

const program = (dependencies: Readonly<Record<string, string>>) => ({
  "packages/nodeyard/package.json": manifest("nodeyard", dependencies),
});

describe("boundaries", () => {
  it("finds nothing in a clean repository", () => {
    expect(findingsIn({})).toEqual([]);
  });

  it("refuses a package that the table does not grant", () => {
    const files = {
      "packages/model/package.json": manifest("@nodeyard/model", { "@nodeyard/runtime": "1" }),
      "packages/model/src/index.ts": 'export { one } from "@nodeyard/runtime";\n',
    };
    expect(findingsIn(files)).toEqual([
      "boundary packages/model/src/index.ts:1 @nodeyard/model must not import @nodeyard/runtime; it may import nothing of ours",
    ]);
  });

  it("refuses a package that is in no table", () => {
    const files = {
      "packages/extra/package.json": manifest("@nodeyard/extra"),
      "packages/extra/README.md": "extra",
      "packages/extra/src/index.ts": "export {};\n",
    };
    expect(findingsIn(files)).toEqual([expect.stringContaining("package @nodeyard/extra is in no table")]);
  });

  it("refuses ways past a package's door", () => {
    const files = {
      ...program({ "@nodeyard/model": "1" }),
      "packages/nodeyard/src/index.ts":
        'export { two } from "@nodeyard/model/src/index.ts";\nexport { one } from "../../runtime/src/index.ts";\n',
      "bench/main.ts":
        'import "../packages/model/src/index.ts";\nimport "../packages/nodeyard/src/view/index.ts";\n',
    };
    expect(findingsIn(files)).toEqual([
      expect.stringContaining(
        "nodeyard/src/index.ts:1 @nodeyard/model/src/index.ts is no door of @nodeyard/model",
      ),
      expect.stringContaining("nodeyard/src/index.ts:2 leaves packages/nodeyard"),
      expect.stringContaining("bench/main.ts:1 reaches into packages/model/src/index.ts"),
    ]);
  });

  it("holds rooms to their table and to their doors", () => {
    const files = {
      ...program({ "@nodeyard/tree": "1" }),
      "packages/tree/package.json": manifest("@nodeyard/tree"),
      "packages/tree/README.md": "tree",
      "packages/tree/src/index.ts": "/** A tree. */\nexport type Tree = string;\n",
      "packages/nodeyard/src/view/index.ts": "/** A view. */\nexport const view = 1;\n",
      "packages/nodeyard/src/view/inner.ts": "export const inner = 1;\n",
      "packages/nodeyard/src/bin/main.ts": 'import "../view/index.ts";\n',
      "packages/nodeyard/src/scheduler/index.ts":
        'import "../view/index.ts";\nimport "../view/inner.ts";\nimport "../bin/main.ts";\nimport type { Tree } from "@nodeyard/tree";\n',
      "packages/nodeyard/src/telemetry/index.ts": 'import "../view/index.ts";\n',
    };
    const at = "boundary packages/nodeyard/src";
    expect(findingsIn(files)).toEqual([
      `${at}/scheduler/index.ts:2 goes past the door of view; import view/index.ts`,
      `${at}/scheduler/index.ts:3 nothing imports bin`,
      `${at}/scheduler/index.ts:4 room scheduler must not import @nodeyard/tree; it may import @nodeyard/driver, @nodeyard/model, @nodeyard/runtime`,
      `${at}/telemetry/index.ts:1 room telemetry must not import room view; it may import nothing of ours`,
    ]);
  });
});

describe("dependencies", () => {
  it("wants what is imported declared, and what is declared imported", () => {
    const files = {
      ...program({ yaml: "1", zod: "4" }),
      "packages/nodeyard/src/index.ts": 'import "zod";\nimport "pino";\nimport "node:path";\n',
      "packages/nodeyard/test/a.test.ts":
        'import "vitest";\nimport "fast-check";\nimport "@nodeyard/model";\n',
    };
    expect(findingsIn(files)).toEqual([
      "dependency packages/nodeyard/src/index.ts:2 imports pino, which packages/nodeyard/package.json does not declare in dependencies",
      "dependency packages/nodeyard/test/a.test.ts:2 imports fast-check, which packages/nodeyard/package.json does not declare in devDependencies",
      "dependency packages/nodeyard/package.json declares yaml, which nothing imports",
    ]);
  });

  it("lets the program declare drivers that it loads by name", () => {
    expect(findingsIn(program({ "@nodeyard/driver-fake": "1" }))).toEqual([]);
  });
});

describe("cycles", () => {
  it("shows a cycle of values, through packages too", () => {
    const files = {
      "packages/model/src/index.ts": 'import "./a.ts";\n',
      "packages/model/src/a.ts": 'import "./b.ts";\n',
      "packages/model/src/b.ts": 'import { a } from "./a.ts";\n',
    };
    expect(findingsIn(files)).toEqual([
      "cycle packages/model/src/a.ts imports form a cycle: packages/model/src/a.ts -> packages/model/src/b.ts -> packages/model/src/a.ts",
    ]);
  });

  it("allows a cycle that only types close inside a folder, and shows it across folders", () => {
    const inside = {
      "packages/model/src/a.ts": 'import { b } from "./b.ts";\n',
      "packages/model/src/b.ts": 'import type { A } from "./a.ts";\n',
    };
    expect(findingsIn(inside)).toEqual([]);
    const across = {
      "packages/model/src/a.ts": 'import { b } from "./deep/b.ts";\n',
      "packages/model/src/deep/b.ts": 'import type { A } from "../a.ts";\n',
    };
    expect(findingsIn(across)).toEqual([
      expect.stringContaining("imports of types form a cycle across folders"),
    ]);
  });

  it("shows a cycle across folders behind a shorter one inside a folder", () => {
    const files = {
      "packages/model/src/a.ts": 'import type { B } from "./b.ts";\nimport type { C } from "./deep/c.ts";\n',
      "packages/model/src/b.ts": 'import type { A } from "./a.ts";\n',
      "packages/model/src/deep/c.ts": 'import type { A } from "../b.ts";\n',
    };
    expect(findingsIn(files)).toEqual([
      "cycle packages/model/src/a.ts imports of types form a cycle across folders: packages/model/src/a.ts -> packages/model/src/deep/c.ts -> packages/model/src/b.ts -> packages/model/src/a.ts",
    ]);
  });
});
