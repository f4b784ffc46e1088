import { YamlDate, YamlFloat } from "@nodeyard/driver";
import { describe, expect, it } from "vitest";
import { SourceDocument } from "../src/yaml/document.ts";
import { plain, valuesOf } from "../src/yaml/values.ts";

function read(text: string): { value: unknown; problems: string[] } {
  const document = new SourceDocument(text);
  const { value, problems } = valuesOf(document);
  return {
    value,
    problems: [...document.problems, ...problems].map(({ line, message }) => `${line}: ${message}`),
  };
}
const scalar = (text: string) => (read(`[${text}]`).value as unknown[])[0];

/** Each line of docs/contract/config.md, "YAML 1.1". */
describe("YAML 1.1", () => {
  it.each([
    ["yes", true],
    ["Off", false],
    ["TRUE", true],
    ["y", "y"],
    ["n", "n"],
    ["oN", "oN"],
    ["0x1F", 31],
    ["-0x1F", -31],
    ["0b11", 3],
    ["010", 8],
    ["0", 0],
    ["1_000", 1000],
    ["12:30", 750],
    ["-12:30", -750],
    ["0o10", "0o10"],
    ["08", "08"],
    ["1e3", "1e3"],
    ["1e-3", "1e-3"],
    ["12e03", "12e03"],
    ["1.5e3", "1.5e3"],
    ["'5'", "5"],
    ['"yes"', "yes"],
    ["~", null],
    ["null", null],
    ["!!str 5", "5"],
    ['!!int "5"', 5],
    ["1.", new YamlFloat(1)],
    [".5", new YamlFloat(0.5)],
    ["1.5e-3", new YamlFloat(0.0015)],
    ["1.5e+3", new YamlFloat(1500)],
    [".inf", new YamlFloat(Number.POSITIVE_INFINITY)],
    ["-.Inf", new YamlFloat(Number.NEGATIVE_INFINITY)],
    [".nan", new YamlFloat(Number.NaN)],
    ["1:2.5", new YamlFloat(62.5)],
    ["!!float 10", new YamlFloat(10)],
    ["2020-01-01", new YamlDate("2020-01-01")],
    ["2020-01-01T10:00:00Z", new YamlDate("2020-01-01T10:00:00Z")],
    ["2020-1-1 1:02:03", new YamlDate("2020-1-1 1:02:03")],
    ["2020-1-1", "2020-1-1"],
    ["2020-01", "2020-01"],
  ])("%s", (text, value) => {
    expect(scalar(text)).toStrictEqual(value);
  });

  it.each([
    ["two documents", "a: 1\n---\nb: 2"],
    ["tab for indentation", "a:\n\t- b"],
    ["foreign tag", "a: !!python/name:os.system x"],
    ["own tag", "a: !x 1"],
    ["unquoted =", "a: ="],
    ["lone <<", "a: <<"],
    ["a number without digits", "a: 0b_"],
    ["unquoted %", "a: %(FOO)"],
    ["alias of nothing", "a: *nope"],
    ["alias of itself", "a: &a [*a]"],
    ["merge of a scalar", "a: {<<: 1}"],
    ["tag that does not fit", "a: !!int x"],
  ])("refuses %s", (_name, text) => {
    expect(read(text).problems).not.toEqual([]);
  });

  it("takes the last of equal keys, and merges without overriding", () => {
    const { value, problems } = read(
      "a: 1\nb: &b {x: 1, y: 2}\nc: {<<: *b, y: 3}\nd: {<<: [{x: 5}, *b]}\na: 2",
    );
    expect(problems).toEqual([]);
    expect(JSON.parse(JSON.stringify(plain(value)))).toEqual({
      a: 2,
      b: { x: 1, y: 2 },
      c: { x: 1, y: 3 },
      d: { x: 5, y: 2 },
    });
  });

  it("notes a key that a later one replaces, and a number that is rounded, where they stand", () => {
    const { notes, value } = valuesOf(
      new SourceDocument(
        "a: {b: 1, <<: {b: 3}, b: 2}\nc:\n  - 99999999999999999999\n  - -9007199254740991\n",
      ),
    );
    expect(notes).toMatchObject([
      { line: 1, column: 5, path: ["a", "b"], message: expect.stringContaining("line 1 counts") },
      { line: 3, column: 5, path: ["c", 0], message: expect.stringContaining("99999999999999999999") },
    ]);
    expect(JSON.parse(JSON.stringify(value))).toEqual({ a: { b: 2 }, c: [1e20, -9007199254740991] });
  });

  it("lets a mapping merge itself, as the old reader does, and finds places in it", () => {
    const { value, problems } = read("a: &a {<<: [*a, *a], b: 1}");
    expect(problems).toEqual([]);
    expect(JSON.parse(JSON.stringify(value))).toEqual({ a: { b: 1 } });
    expect(new SourceDocument("a: &a {<<: [*a, *a], b: 1}").locate(["a", "missing"])).toEqual({
      line: 1,
      column: 1,
    });
  });

  it("does not let aliases of aliases grow without end", () => {
    const rows = Array.from(
      { length: 12 },
      (_, i) =>
        `k${i}: &k${i} [${Array(10)
          .fill(i === 0 ? "x" : `*k${i - 1}`)
          .join(", ")}]`,
    );
    expect(read(rows.join("\n")).problems[0]).toContain("aliases never end");
  });

  it("keeps __proto__ an ordinary key", () => {
    const { value } = read("__proto__: {polluted: true}");
    expect(Object.keys(value as object)).toEqual(["__proto__"]);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});
