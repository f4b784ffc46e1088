import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../../..");
const PAGE = readFileSync(join(ROOT, "docs/explanation/life-of-a-request.md"), "utf8");
/** Packages that a page counts as one room. */
const TREE: ReadonlySet<string> = new Set(["tree", "zookeeper"]);

interface Row {
  /** Of the crossing into its room; undefined: a call returned, or the walk begins. */
  readonly crossing: number | undefined;
  readonly room: string;
  readonly files: readonly string[];
}

/** The tables of a page whose rows are stays in rooms. */
function walksOf(page: string): readonly (readonly Row[])[] {
  return page
    .split("| # | Room |")
    .slice(1)
    .map((part) => {
      const lines = part.split("\n\n")[0]!.split("\n").slice(2);
      return lines.map((line) => {
        const [, crossing = "", room = "", functions = ""] = line.split("|").map((cell) => cell.trim());
        const files = [...functions.matchAll(/\]\(\.\.\/\.\.\/([^)]+)\)/g)].map(([, file]) => file!);
        return { crossing: crossing === "" ? undefined : Number(crossing), room, files };
      });
    });
}

function roomOf(file: string): string {
  const manifest = join(ROOT, file.split("/").slice(0, 3).join("/"), "package.json");
  const name = JSON.parse(readFileSync(manifest, "utf8")).name.replace("@nodeyard/", "");
  return TREE.has(name) ? "tree" : name;
}

// That a file declares the functions that it is linked for is what `npm run structure` checks.
describe("the walks of the life of a request", () => {
  const walks = walksOf(PAGE);

  it("are of a request, a slot, its backing node and a sliver", () => {
    expect(walks.map((walk) => walk.length > 4)).toEqual([true, true, true, true]);
  });

  it("name rooms that have the functions", () => {
    for (const { room, files } of walks.flat()) {
      expect(files, room).not.toEqual([]);
      for (const file of files) expect([file, roomOf(file)]).toEqual([file, room]);
    }
  });

  it("number each crossing, and nothing else", () => {
    for (const walk of walks) {
      const crossings = walk.flatMap(({ crossing }) => crossing ?? []);
      expect(crossings).toEqual(crossings.map((_, index) => index + 1));
      for (const [index, { crossing, room }] of walk.entries())
        if (crossing !== undefined) expect(room).not.toBe(walk[index - 1]?.room);
    }
  });

  it("have as many crossings for a request as the page says, and five commits", () => {
    const [request = []] = walks;
    expect(Number(/has (\d+) crossings/.exec(PAGE.replaceAll("\n", " "))?.[1])).toBe(
      Math.max(...request.map(({ crossing }) => crossing ?? 0)),
    );
    expect(request.filter(({ files }) => files.some((file) => file.endsWith("tree-calls.ts")))).toHaveLength(
      5,
    );
  });
});
