import { describe, expect, it } from "vitest";
import { findingsIn } from "./tree.ts";

describe("links", () => {
  it("lead to files that exist, or outside", () => {
    const page = "# Here\n[a](docs/a.md#a-part-1) [b](docs/b.md)\n[c](https://example.org) [d](#here)\n";
    expect(findingsIn({ "README.md": page, "docs/a.md": "## A part: 1\n[back](../README.md)" })).toEqual([
      "link README.md:2 links to docs/b.md, which does not exist",
    ]);
  });

  it("are tried in the pages of every folder, but not in what is installed or built", () => {
    const page = "[a](none.md)\n";
    const files = ["a/b/c/d.md", "packages/x/test/e.md", "node_modules/f/g.md", "packages/x/dist/h.md"];
    expect(findingsIn(Object.fromEntries(files.map((file) => [file, page])))).toEqual([
      "link a/b/c/d.md:1 links to none.md, which does not exist",
      "link packages/x/test/e.md:1 links to none.md, which does not exist",
    ]);
  });

  it("of the README of a folder in docs/ lead to each of its pages", () => {
    const files = {
      "docs/x/README.md": "[a](a.md#one)\n",
      "docs/x/a.md": "# One\n",
      "docs/x/b.md": "",
      "docs/c.md": "",
    };
    expect(findingsIn(files)).toEqual(["link docs/x/b.md:1 is not in the README of its folder"]);
  });

  it("lead to headings that exist, code aside", () => {
    const page = "# Part\n[a](docs/a.md#part) [b](#there)\n";
    expect(findingsIn({ "README.md": page, "docs/a.md": "```text\n# part\n```\n" })).toEqual([
      "link README.md:2 links to docs/a.md#part, which has no such heading",
      "link README.md:2 links to #there, which has no such heading",
    ]);
  });
});

describe("paths that a page names", () => {
  it("exist; patterns are not tried", () => {
    const page = "`tools/one.ts` `tools/two.ts` `packages/base/model` `tools/rule-01-*` `src/three.ts`\n";
    expect(findingsIn({ "docs/a.md": page, "tools/one.ts": "export {};\n" })).toEqual([
      "link docs/a.md:1 names tools/two.ts, which does not exist",
    ]);
  });
});

describe("tests that a page cites", () => {
  it("exist, by the end of their path and with each title in quotes", () => {
    const page = '`x/one.test.ts` "adds", "divides" `one.test.ts` `two.test.ts` "adds"\n';
    const tests = 'test("adds", () => {});\n';
    expect(findingsIn({ "docs/a.md": page, "packages/base/x/one.test.ts": tests })).toEqual([
      'link docs/a.md:1 cites x/one.test.ts, which has no test "divides"',
      "link docs/a.md:1 cites two.test.ts, which does not exist",
    ]);
  });
});

describe("commands of a page", () => {
  it("are run by a test, or say what they need; text and generated pages are not tried", () => {
    const page = [
      ...[
        "```sh needs=site",
        "    nodeyard list",
        "```",
        "```sh by=tools/one.ts",
        "ls",
        "```",
        "```text",
        "ls",
        "```",
      ],
      ...[
        "```sh",
        "ls",
        "```",
        "```sh needs=luck",
        "ls",
        "```",
        "```sh by=tools/two.ts",
        "ls",
        "```",
        "```sh run",
        "ls",
      ],
      ...["```", "   ```console", "   $ ls", "   ```", "", "    nodeyard list"],
    ].join("\n");
    const files = { "docs/a.md": page, "docs/reference/b.md": page, "tools/one.ts": "export {};\n" };
    const lines = findingsIn(files).map(
      (text) => /^command docs\/a.md:(\d+) a block of commands/.exec(text)?.[1],
    );
    expect(lines).toEqual(["10", "13", "16", "19", "22", "26"]);
  });
});

describe("what a link to a source names", () => {
  it("is declared there; file names and phrases are not tried", () => {
    const source =
      "export class One {\n  async two() {}\n  #three() {}\n}\nfunction* four() {\n  five();\n}\n";
    const names = ["One", "One.two", "One.#three", "four", "one.ts", "any words", "One.four", "five"];
    const page = names.map((name) => `[\`${name}\`](one.ts)`).join(" ");
    expect(findingsIn({ "docs/a.md": page, "docs/one.ts": source })).toEqual([
      "link docs/a.md:1 links One.four to one.ts, which does not declare it",
      "link docs/a.md:1 links five to one.ts, which does not declare it",
    ]);
  });
});

describe("what comments cite", () => {
  const pages = { "docs/a.md": "# Title\n\n## One part\n" };
  const source = (...lines: string[]) => ({ ...pages, "tools/one.ts": `${lines.join("\n")}\n` });

  it("is a page, and a heading of it", () => {
    const lines = [
      '/** As docs/a.md, "One part", says; see docs/a.md. */',
      "/**",
      ' * Also over the end of a line (docs/a.md, "One',
      ' * part").',
      " */",
      ["export const one = 1;", '// docs/a.md, "Title"'].join(" "),
    ];
    expect(findingsIn(source(...lines))).toEqual([]);
  });

  it("is reported with its line if it is missing", () => {
    const lines = ["// docs/b.md", "/**", " * For ever (docs/a.md,", ' * "Other"). docs/c.md', " */"];
    expect(findingsIn(source(...lines))).toEqual([
      "citation tools/one.ts:1 cites docs/b.md, which does not exist",
      'citation tools/one.ts:3 cites docs/a.md, which has no heading "Other"',
      "citation tools/one.ts:4 cites docs/c.md, which does not exist",
    ]);
  });

  it("is not searched in code", () => {
    expect(findingsIn(source('export const page = "docs/b.md";'))).toEqual([]);
  });
});
