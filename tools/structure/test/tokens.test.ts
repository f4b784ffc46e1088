import { describe, expect, it } from "vitest";
import { importsOf } from "../imports.ts";
import { tokenize } from "../tokens.ts";

const words = (source: string) =>
  tokenize(source)
    .filter((token) => token.kind === "word")
    .map((token) => token.text);

describe("tokenize", () => {
  it("drops comments and keeps strings apart from code", () => {
    expect(words('a // b\n/* c */ d; \'e\'; "f\\" g"; h')).toEqual(["a", "d", "h"]);
  });

  it("reads the code inside a template's substitutions, nested ones too", () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text
    expect(words("`text ${a + `${b}` + {c: 1}.c} text` + d")).toEqual(["a", "b", "c", "c", "d"]);
  });

  it("tells regular expressions from divisions", () => {
    expect(words("x = a / b / c; y = /d`[/]'/u.exec(e); return /f/; z = (g) / h / i")).toEqual(
      "x a b c y exec e return z g h i".split(" "),
    );
  });

  it("counts lines through comments, templates and strings", () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text
    const lines = tokenize("/* \n\n */ a\n`\n${b}\n`\nc").filter((token) => token.kind === "word");
    expect(lines.map((token) => [token.text, token.line])).toEqual([
      ["a", 3],
      ["b", 5],
      ["c", 7],
    ]);
  });

  it("gives the doc comment to the token after it", () => {
    expect(tokenize("/** One\n * two. */\nexport class A {}")[0]).toMatchObject({
      text: "export",
      doc: "One two.",
    });
  });
});

describe("importsOf", () => {
  it("finds every way to import, and which are types only", () => {
    const source = `
      import "./a.ts";
      import b, { c as d, type e } from "./b.ts";
      import * as f from "node:fs";
      import type { G } from "./g.ts";
      import type from "./type.ts";
      export * from "./h.ts";
      export type { I } from "./i.ts";
      export { j };
      const k = await import("./k.ts");
      // import "./comment.ts";
      const text = 'import "./text.ts"';
      export const from = "./l.ts";
    `;
    expect(importsOf(tokenize(source)).map((one) => [one.specifier, one.typeOnly, one.names])).toEqual([
      ["./a.ts", false, []],
      ["./b.ts", false, ["default", "c", "e"]],
      ["node:fs", false, ["*"]],
      ["./g.ts", true, ["G"]],
      ["./type.ts", false, ["default"]],
      ["./h.ts", false, ["*"]],
      ["./i.ts", true, ["I"]],
      ["./k.ts", false, ["*"]],
    ]);
  });
});
