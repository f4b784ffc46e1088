import { describe, expect, it } from "vitest";
import { findingsIn, manifest } from "./tree.ts";

const program = (dependencies: Readonly<Record<string, string>>) => ({
  "packages/nodeyard/cli/package.json": manifest("nodeyard", dependencies),
});

describe("boundaries", () => {
  it("finds nothing in a clean repository", () => {
    expect(findingsIn({})).toEqual([]);
  });

  it("refuses a package on a higher floor, in a circle, and one that its table forbids", () => {
    const files = {
      "packages/base/model/package.json": manifest("@nodeyard/model", { nodeyard: "1" }),
      "packages/base/model/src/index.ts": 'export { three } from "nodeyard";\n',
      "packages/pool/scheduler/package.json": manifest("@nodeyard/scheduler", { "@nodeyard/tree": "1" }),
      "packages/pool/scheduler/README.md": "scheduler",
      "packages/pool/scheduler/src/index.ts": 'import "@nodeyard/tree";\n',
      "packages/pool/view/package.json": manifest("@nodeyard/view", { "@nodeyard/config": "1" }),
      "packages/pool/view/README.md": "view",
      "packages/pool/view/src/index.ts": 'import "@nodeyard/config";\n',
      "packages/pool/config/package.json": manifest("@nodeyard/config", { "@nodeyard/view": "1" }),
      "packages/pool/config/README.md": "config",
      "packages/pool/config/src/index.ts": "\n",
      "packages/pool/config/src/other.ts": 'import "@nodeyard/view";\n',
      "packages/base/tree/package.json": manifest("@nodeyard/tree"),
      "packages/base/tree/README.md": "tree",
      "packages/base/tree/src/index.ts": "\n",
    };
    expect(findingsIn(files)).toEqual([
      "boundary packages/base/model/package.json needs nodeyard, which stands on a higher floor, nodeyard",
      "boundary packages/pool/config/package.json needs @nodeyard/view, which needs it, too",
      "boundary packages/pool/scheduler/package.json must not need @nodeyard/tree",
      "boundary packages/pool/view/package.json needs @nodeyard/config, which needs it, too",
    ]);
  });

  it("refuses a package that stands on no floor", () => {
    const files = {
      "packages/attic/extra/package.json": manifest("@nodeyard/extra"),
      "packages/attic/extra/README.md": "extra",
      "packages/attic/extra/src/index.ts": "export {};\n",
    };
    expect(findingsIn(files)).toEqual([
      expect.stringContaining("packages/attic/extra/package.json attic is no floor of the house"),
    ]);
  });

  it("refuses ways past a package's door; tests look inside their own floor and those below", () => {
    const files = {
      ...program({ "@nodeyard/model": "1" }),
      "packages/nodeyard/cli/src/index.ts":
        'export { two } from "@nodeyard/model/src/index.ts";\nexport { one } from "../../../base/runtime/src/index.ts";\n',
      "packages/nodeyard/cli/test/a.test.ts": 'import "../../../base/runtime/src/index.ts";\n',
      "packages/base/runtime/test/a.test.ts": 'import "../../../nodeyard/cli/src/index.ts";\n',
      "packages/base/runtime/test/b.test.ts":
        'import "../../../nodeyard/cli/test/a.test.ts";\nimport "../../../../tools/a.ts";\n',
      "tools/a.ts": 'import "../packages/base/model/src/index.ts";\n',
    };
    expect(findingsIn(files)).toEqual([
      expect.stringContaining(
        "runtime/test/a.test.ts:1 reaches into packages/nodeyard/cli/src/index.ts; import the package by its name",
      ),
      expect.stringContaining(
        "cli/src/index.ts:1 @nodeyard/model/src/index.ts is no door of @nodeyard/model",
      ),
      expect.stringContaining("cli/src/index.ts:2 reaches into packages/base/runtime/src/index.ts"),
      expect.stringContaining("tools/a.ts:1 reaches into packages/base/model/src/index.ts"),
    ]);
  });
});

describe("dependencies", () => {
  it("wants what is imported declared, and what is declared imported", () => {
    const files = {
      "packages/nodeyard/cli/package.json": JSON.stringify({
        ...JSON.parse(manifest("nodeyard", { yaml: "1", zod: "4" })),
        devDependencies: { "only-types": "1" },
      }),
      "packages/nodeyard/cli/src/index.ts":
        'import "zod";\nimport "pino";\nimport "node:path";\nimport type { A } from "only-types";\nimport { b } from "only-types";\n',
      "packages/nodeyard/cli/test/a.test.ts":
        'import "vitest";\nimport "fast-check";\nimport "@nodeyard/model";\n',
    };
    expect(findingsIn(files)).toEqual([
      "dependency packages/nodeyard/cli/src/index.ts:2 imports pino, which packages/nodeyard/cli/package.json does not declare in dependencies",
      "dependency packages/nodeyard/cli/src/index.ts:5 imports only-types, which packages/nodeyard/cli/package.json does not declare in dependencies",
      "dependency packages/nodeyard/cli/test/a.test.ts:2 imports fast-check, which packages/nodeyard/cli/package.json does not declare in devDependencies",
      "dependency packages/nodeyard/cli/package.json declares yaml, which nothing imports",
    ]);
  });

  it("lets the program declare drivers that it loads by name", () => {
    expect(findingsIn(program({ "@nodeyard/driver-fake": "1" }))).toEqual([]);
  });
});

describe("cycles", () => {
  it("shows a cycle of values, through packages too", () => {
    const files = {
      "packages/base/model/src/index.ts": 'import "./a.ts";\n',
      "packages/base/model/src/a.ts": 'import "./b.ts";\n',
      "packages/base/model/src/b.ts": 'import { a } from "./a.ts";\n',
    };
    expect(findingsIn(files)).toEqual([
      "cycle packages/base/model/src/a.ts imports form a cycle: packages/base/model/src/a.ts -> packages/base/model/src/b.ts -> packages/base/model/src/a.ts",
    ]);
  });

  it("shows a cycle that only types close", () => {
    const files = {
      "packages/base/model/src/a.ts": 'import { b } from "./deep/b.ts";\n',
      "packages/base/model/src/deep/b.ts": 'import type { A } from "../a.ts";\n',
    };
    expect(findingsIn(files)).toEqual([
      "cycle packages/base/model/src/a.ts imports form a cycle: packages/base/model/src/a.ts -> packages/base/model/src/deep/b.ts -> packages/base/model/src/a.ts",
    ]);
  });
});
