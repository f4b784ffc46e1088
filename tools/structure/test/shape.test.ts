import { describe, expect, it } from "vitest";
import { ownerOf, render } from "../findings.ts";
import { findingsIn, manifest } from "./tree.ts";

describe("shape", () => {
  it("warns above 300 lines and refuses above 500", () => {
    expect(findingsIn({ "packages/base/model/src/long.ts": "//\n".repeat(500) })).toEqual([
      "length packages/base/model/src/long.ts 500 lines, more than 300; one purpose per file",
    ]);
    expect(findingsIn({ "packages/base/model/src/long.ts": "//\n".repeat(501) })).toEqual([
      "length packages/base/model/src/long.ts 501 lines, more than 500; one purpose per file",
    ]);
    expect(findingsIn({ "packages/base/model/src/long.ts": "//\n".repeat(300) })).toEqual([]);
  });

  it("wants kebab-case names", () => {
    expect(findingsIn({ "packages/base/model/src/bigName.ts": "\n", "tools/Upper/a.ts": "\n" })).toEqual([
      "name packages/base/model/src/bigName.ts bigName.ts is not in kebab-case",
      "name tools/Upper/a.ts Upper is not in kebab-case",
    ]);
    expect(findingsIn({ "packages/base/model/test/two-words.sqlite.test.ts": "\n" })).toHaveLength(1);
  });

  it("wants the door and the README of a package, and what it exports", () => {
    const exports = { ".": "./src/index.ts", "./testing": "./src/testing/index.ts" };
    const files = { "packages/base/tree/package.json": JSON.stringify({ name: "@nodeyard/tree", exports }) };
    expect(findingsIn(files)).toEqual([
      "door packages/base/tree has no src/index.ts",
      "door packages/base/tree has no README.md",
      "door packages/base/tree exports . from ./src/index.ts, which does not exist",
      "door packages/base/tree exports ./testing from ./src/testing/index.ts, which does not exist",
    ]);
  });
});

describe("docs", () => {
  it("wants a doc comment for each name that a door exports, where it is declared", () => {
    const files = {
      "packages/base/model/src/index.ts":
        'export { good, bad as renamed } from "./inner.ts";\nexport type * from "./types.ts";\nexport { gone } from "zod";\n',
      "packages/base/model/src/inner.ts":
        "/** Good. */\nexport const good = 1;\nexport function bad() {}\nexport const inner = 2;\n",
      "packages/base/model/src/types.ts": "/** One. */\nexport interface One {}\nexport type Two = One;\n",
    };
    expect(findingsIn(files).filter((line) => line.startsWith("doc "))).toEqual([
      "doc packages/base/model/src/inner.ts:3 bad is exported at a door and has no doc comment",
      "doc packages/base/model/src/types.ts:3 Two is exported at a door and has no doc comment",
    ]);
  });
});

describe("snippets", () => {
  const lab = "export function one() {\n  return 1;\n}\n";
  const page = (block: string, file = " file=tools/lab.ts") =>
    `# Page\n\n\`\`\`ts${file}\n${block}\n\`\`\`\n`;

  it("are parts of the file that they name, whatever their indentation", () => {
    const pages = {
      "docs/a.md": page("export function one() {\n  return 1;"),
      "docs/b.md": page("return 1;"),
    };
    expect(findingsIn({ "tools/lab.ts": lab, ...pages })).toEqual([]);
    expect(findingsIn({ "tools/lab.ts": lab, "docs/a.md": page("return 2;") })).toEqual([
      "snippet docs/a.md:3 differs from tools/lab.ts; copy it again",
    ]);
    expect(findingsIn({ "docs/a.md": page("return 1;") })).toEqual([
      "snippet docs/a.md:3 names the file tools/lab.ts, which does not exist",
    ]);
  });

  it("must name a file on the page about drivers", () => {
    expect(
      findingsIn({ "docs/a.md": page("free", ""), "docs/how-to/write-a-driver.md": page("free", "") }),
    ).toEqual(["snippet docs/how-to/write-a-driver.md:3 does not name its file; write `ts file=PATH`"]);
  });
});

describe("error codes", () => {
  const lost = (name: string) =>
    `export class ${name} extends NodeyardError { constructor() { super("model.lost", "lost"); } }\n`;

  it("refuses a code that two classes share", () => {
    expect(
      findingsIn({
        "packages/base/model/src/a.ts": lost("Lost"),
        "packages/base/model/src/b.ts": lost("Gone"),
      }),
    ).toEqual([
      "error-code packages/base/model/src/b.ts:1 error code model.lost is taken by Lost in packages/base/model/src/a.ts:1",
    ]);
  });

  it("refuses a code that two packages throw without a class", () => {
    const made = 'throw new NodeyardError("model.lost", "lost");\n';
    expect(
      findingsIn({ "packages/base/model/src/a.ts": made, "packages/base/runtime/src/b.ts": made }),
    ).toHaveLength(1);
    expect(
      findingsIn({ "packages/base/model/src/a.ts": made, "packages/base/model/src/b.ts": made }),
    ).toEqual([]);
  });
});

describe("render", () => {
  it("groups findings by folder, errors first", () => {
    const one = { rule: "length", path: "packages/nodeyard/cli/src/view/a.ts", message: "long" } as const;
    const text = render([
      { ...one, severity: "warning" },
      { ...one, severity: "error", line: 3 },
      { ...one, severity: "error", path: "bench/a.ts" },
    ]);
    expect(text.split("\n").map((line) => line.trim())).toEqual([
      "bench",
      "error   length       bench/a.ts: long",
      "",
      "packages/nodeyard/cli",
      "error   length       packages/nodeyard/cli/src/view/a.ts:3: long",
      "warning length       packages/nodeyard/cli/src/view/a.ts: long",
      "",
    ]);
  });

  it("names the package where there is no room", () => {
    expect(ownerOf("packages/base/tree/src/deep/a.ts")).toBe("packages/base/tree");
    expect(ownerOf("packages/nodeyard/cli/src/index.ts")).toBe("packages/nodeyard/cli");
    expect(manifest("a")).toContain('"name":"a"');
  });
});
