import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { build } from "../build.ts";
import { builtManifest } from "../manifest.ts";
import { readPackages } from "../packages.ts";
import { pack } from "../release.ts";
import { rewriteTypes, rewriteUrls } from "../specifiers.ts";
import { verify } from "../verify.ts";

const REPOSITORY = fileURLToPath(new URL("../../..", import.meta.url));

/** A workspace of a library with a worker and a program that uses it; `files` join or replace them. */
function workspace(files: Readonly<Record<string, string>> = {}): string {
  const root = mkdtempSync(join(tmpdir(), "nodeyard-build-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const all: Readonly<Record<string, string>> = {
    "tsconfig.json": readFileSync(join(REPOSITORY, "tsconfig.json"), "utf8"),
    LICENSE: "licence",
    "packages/base/library/package.json": JSON.stringify({
      name: "@test/library",
      version: "1.2.3",
      type: "module",
      exports: { ".": "./src/index.ts" },
      devDependencies: { vitest: "1" },
    }),
    "packages/base/library/README.md": "library",
    "packages/base/library/src/table.txt": "a table",
    "packages/base/library/src/index.ts": `
      import { Worker } from "node:worker_threads";
      export type { Answer } from "./answer.ts";
      import type { Answer } from "./answer.ts";
      export function ask(): Promise<Answer> {
        return new Promise((resolve) =>
          new Worker(new URL("./worker.ts", import.meta.url)).once("message", resolve));
      }`,
    "packages/base/library/src/answer.ts": "export interface Answer { readonly text: string }\n",
    "packages/base/library/src/worker.ts": `
      import { parentPort } from "node:worker_threads";
      parentPort?.postMessage({ text: "1.2.3" });`,
    "packages/faces/program/package.json": JSON.stringify({
      name: "program",
      version: "1.2.3",
      type: "module",
      exports: { ".": "./src/index.ts" },
      bin: { program: "./src/bin/program.ts" },
      dependencies: { "@test/library": "1.2.3", "@test/inner": "1.2.3" },
    }),
    "packages/faces/inner/package.json": JSON.stringify({
      name: "@test/inner",
      version: "1.2.3",
      private: true,
      type: "module",
      exports: { ".": "./src/index.ts" },
      dependencies: { "@test/library": "1.2.3" },
    }),
    "packages/faces/inner/src/index.ts": 'export { ask } from "@test/library";\n',
    "packages/faces/program/src/index.ts": 'export { ask } from "@test/inner";\n',
    "packages/faces/program/src/bin/program.ts":
      '#!/usr/bin/env node\nimport { ask } from "../index.ts";\nimport own from "../../package.json" with { type: "json" };\n' +
      "console.log((await ask()).text, own.name);\n",
    ...files,
  };
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  mkdirSync(join(root, "node_modules/@test"), { recursive: true });
  for (const folder of ["base/library", "faces/inner"])
    symlinkSync(`../../packages/${folder}`, join(root, "node_modules/@test", basename(folder)));
  for (const name of ["typescript", "@types", "@typescript", "undici-types"])
    symlinkSync(join(REPOSITORY, "node_modules", name), join(root, "node_modules", name));
  return root;
}

describe("build", () => {
  it("makes packages that work after packing and installing them elsewhere", async () => {
    const root = workspace();
    const dists = await build(root);
    expect(dists).toEqual([
      join(root, "packages/base/library/dist"),
      join(root, "packages/faces/program/dist"),
    ]);
    const read = (path: string) => readFileSync(join(root, "packages", path), "utf8");
    expect(read("base/library/dist/src/table.txt")).toBe("a table");
    expect(read("base/library/dist/LICENSE")).toBe("licence");
    expect(read("base/library/dist/src/index.d.ts")).toContain('from "./answer.js"');
    expect(JSON.parse(read("base/library/dist/package.json"))).toEqual({
      name: "@test/library",
      version: "1.2.3",
      type: "module",
      exports: { ".": { types: "./src/index.d.ts", default: "./src/index.js" } },
    });
    // The private package is inside, so the program needs what that needs.
    expect(JSON.parse(read("faces/program/dist/package.json"))).toMatchObject({
      exports: {},
      dependencies: { "@test/library": "1.2.3" },
    });
    const page = join(root, "page.md");
    const commands = "program --version >said\ntest 1.2.3 = $(cut -d' ' -f1 said)\n";
    writeFileSync(page, `\`\`\`sh run\n${commands}\`\`\`\n`);
    const files = pack(dists, join(root, "packed"));
    const tried = ["import @test/library", "program --version"];
    expect(verify(files, page)).toEqual([...tried, "the commands of page.md"]);
    writeFileSync(page, `\`\`\`sh run\n${commands}program | grep nothing\ntrue\n\`\`\`\n`);
    expect(() => verify(files, page)).toThrow("Command failed");
  });

  it("fails with the compiler's message if a package does not compile", async () => {
    const root = workspace({
      "packages/base/library/src/answer.ts": "export const wrong: number = 'text';\n",
    });
    await expect(build(root)).rejects.toThrow(/answer\.ts.*TS2322/);
  });

  it("refuses a program that a shell could not start", async () => {
    const root = workspace({ "packages/faces/program/src/bin/program.ts": "console.log(1);\n" });
    await expect(build(root)).rejects.toThrow("does not start with #!/usr/bin/env node");
  });
});

describe("builtManifest", () => {
  it.each(readPackages(REPOSITORY))("says of $folder which Node it needs", ({ manifest }) => {
    expect(builtManifest(manifest).engines).toEqual({ node: expect.stringMatching(/^>=24/) });
  });

  it("refuses a door outside src", () => {
    const source = { name: "a", version: "1", exports: { ".": "./lib/index.ts" } };
    expect(() => builtManifest(source)).toThrow("cannot build .: ./lib/index.ts is not below ./src/");
  });
});

describe("specifiers", () => {
  it("rewrites relative imports of types, and no text that looks like one", () => {
    expect(rewriteTypes('export * from "./a.ts"; type B = import("../b.ts").B; import "pkg.ts";')).toBe(
      'export * from "./a.js"; type B = import("../b.js").B; import "pkg.ts";',
    );
  });

  it("rewrites the URLs of workers", () => {
    expect(rewriteUrls('new URL("./w.ts", import.meta.url); "./w.ts"')).toBe(
      'new URL("./w.js", import.meta.url); "./w.ts"',
    );
  });
});
