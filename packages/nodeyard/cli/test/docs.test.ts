import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { systemMachine } from "@nodeyard/telemetry/machine";
import { describe, expect, test } from "vitest";
import { readWorkspace } from "../../../../tools/structure/workspace.ts";
import { main } from "../src/index.ts";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));

/** In this process: an installed program prints where its site is. */
async function nodeyard(...words: string[]) {
  const printed = { out: "", err: "" };
  const io = {
    out: (text: string) => {
      printed.out += text;
    },
    err: (text: string) => {
      printed.err += text;
    },
    isTerminal: false,
    ask: async () => undefined,
    columns: 80,
  };
  return { code: await main(words, io, systemMachine()), ...printed };
}

describe("nodeyard docs", () => {
  test("prints the path of the first page, and of a page by the end of its name", async () => {
    expect((await nodeyard("docs")).out).toBe(`${ROOT}docs/README.md\n`);
    expect((await nodeyard("docs", "install")).out).toBe(`${ROOT}docs/how-to/install.md\n`);
    expect((await nodeyard("docs", "explanation/slivers")).out).toBe(`${ROOT}docs/explanation/slivers.md\n`);
    expect((await nodeyard("docs", "how-to")).out).toBe(`${ROOT}docs/how-to/README.md\n`);
  });

  test("lists all pages with files that exist", async () => {
    const pages = JSON.parse((await nodeyard("docs", "--json")).out) as { page: string; file: string }[];
    expect(pages.map(({ page }) => page)).toEqual(
      expect.arrayContaining(["README", "tutorial/lab", "reference/cli", "glossary"]),
    );
    expect(pages.filter(({ file }) => !existsSync(file))).toEqual([]);
  });

  test.each([
    ["instal", "did you mean install?"],
    ["slivers", "contract/slivers, explanation/slivers, how-to/slivers"],
  ])("refuses %s", async (name, text) => {
    const { code, err } = await nodeyard("docs", name);
    expect([code, err]).toEqual([1, expect.stringContaining(text)]);
  });

  test("is what texts of the program name pages by, and prints each of them", async () => {
    const strings = readWorkspace(ROOT)
      .files.filter(({ part }) => part === "src")
      .flatMap(({ tokens }) => tokens.filter(({ kind }) => kind === "string").map(({ text }) => text));
    expect(strings.filter((text) => /docs\/[\w/-]+\.md/.test(text))).toEqual([]);
    const named = strings.flatMap((text) => [...text.matchAll(/nodeyard docs ([a-z][\w/-]*)/g)]);
    expect(named.length).toBeGreaterThan(3);
    for (const [, page] of named)
      expect(readFileSync((await nodeyard("docs", page!)).out.trim(), "utf8")).toMatch(/^# /);
  });
});
