import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { checkWorkspace } from "../check.ts";
import type { Finding } from "../findings.ts";
import { readWorkspace, type Workspace } from "../workspace.ts";

/** Files of a clean repository of two packages and the program; `files` are added or replace them. */
const CLEAN: Readonly<Record<string, string>> = {
  "package.json": JSON.stringify({ name: "root", devDependencies: { vitest: "1" } }),
  "packages/base/runtime/package.json": manifest("@nodeyard/runtime"),
  "packages/base/runtime/README.md": "runtime",
  "packages/base/runtime/src/index.ts": "/** A number. */\nexport const one = 1;\n",
  "packages/base/model/package.json": manifest("@nodeyard/model"),
  "packages/base/model/README.md": "model",
  "packages/base/model/src/index.ts": "/** A number. */\nexport const two = 2;\n",
  "packages/nodeyard/cli/package.json": manifest("nodeyard", {}),
  "packages/nodeyard/cli/README.md": "nodeyard",
  "packages/nodeyard/cli/src/index.ts": "/** A number. */\nexport const three = 3;\n",
};

export function manifest(name: string, dependencies: Readonly<Record<string, string>> = {}): string {
  return JSON.stringify({ name, exports: { ".": "./src/index.ts" }, dependencies });
}

/** Writes a repository into a temporary folder that is deleted after the test, and reads it. */
export function workspaceOf(files: Readonly<Record<string, string>>): Workspace {
  const root = mkdtempSync(join(tmpdir(), "nodeyard-structure-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const [path, text] of Object.entries({ ...CLEAN, ...files })) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return readWorkspace(root);
}

/** The findings on a repository that is clean except for `files`, each as `rule path:line message`. */
export function findingsIn(files: Readonly<Record<string, string>>): string[] {
  return checkWorkspace(workspaceOf(files)).map(text);
}

function text({ rule, path, line, message }: Finding): string {
  return `${rule} ${path}${line === undefined ? "" : `:${line}`} ${message}`;
}
