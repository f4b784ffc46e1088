import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { ERRORS } from "../src/errors.ts";

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const PAGE = readFileSync(at("../../../../docs/how-to/connect-an-openstack.md"), "utf8");

/** What stands in the page's table of errors: kind, and a pattern for each text in its second column. */
const rows = PAGE.split("\n").flatMap((line) => {
  const [, kind, texts] = /^\| (\w[\w-]*) \| (.*?) \| /.exec(line) ?? [];
  return kind === undefined || kind === "Kind"
    ? []
    : [...texts!.matchAll(/`([^`]+)`/g)].map(([, text]) => ({ kind, pattern: patternOf(text!) }));
});

/** Capitals and dots stand for what the program fills in. */
function patternOf(text: string): RegExp {
  const literal = text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(literal.replaceAll(/\b[A-Z]+\b(, [A-Z]+)*| ?(\\\.){3}/g, ".*"));
}

/** Classes of errors, the kind that each becomes (src/errors.ts), and which of its arguments is what people read. */
const CLASSES = {
  CloudConfigError: "access",
  OddAnswer: "transient",
  DriverError: undefined,
} as const;
const LITERAL = /"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g;

/** Every text that the driver's own code gives to an error, with what is filled in as "X". */
const texts = globSync("**/*.ts", { cwd: at("../src") }).flatMap((file) => {
  const source = readFileSync(at(`../src/${file}`), "utf8");
  const made = Object.entries(CLASSES).flatMap(([name, kind]) =>
    [...source.matchAll(new RegExp(`new ${name}\\(`, "g"))].flatMap(({ index }) => {
      const literals = literalsOf(argumentsAt(source, index + `new ${name}`.length));
      const own = kind ?? (/^[a-z-]+$/.test(literals[0]!) ? literals[0] : undefined);
      return literals.filter((text) => /\w \w/.test(text)).map((text) => ({ file, kind: own, text }));
    }),
  );
  // Why nothing was chosen: a text that becomes a configuration error in lookups.ts.
  const chosen = file === "lookups/choose.ts" ? literalsOf(source).filter((text) => /\w \w/.test(text)) : [];
  return [...made, ...chosen.map((text) => ({ file, kind: "configuration", text }))];
});

function argumentsAt(source: string, open: number): string {
  let depth = 0;
  for (let at = open; at < source.length; at++) {
    if (source[at] === "(") depth++;
    if (source[at] === ")" && --depth === 0) return source.slice(open, at);
  }
  return "";
}

/** Strings and templates, with what a template fills in as "X"; pieces that begin with a space belong to another text. */
function literalsOf(code: string): string[] {
  const plain = filled(code.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, ""));
  const literals = [...plain.matchAll(LITERAL)].map(([, quoted, template]) => (quoted ?? template)!);
  return literals.filter((text) => !text.startsWith(" "));
}

function filled(code: string): string {
  for (;;) {
    const next = code.replaceAll(/\$\{[^{}]*\}/g, "X").replaceAll(/(\$\{[^{}`]*)\{[^{}]*\}/g, "$1");
    if (next === code) return code;
    code = next;
  }
}

test("the page of errors has every text that this driver's code can say", () => {
  expect(texts.length).toBeGreaterThan(25);
  const missing = texts.filter(
    ({ kind, text }) =>
      !rows.some((row) => (kind === undefined || row.kind === kind) && row.pattern.test(text)),
  );
  expect(missing).toEqual([]);
});

test("and every name of a fault, and every status, by which the driver tells kinds apart", () => {
  const faults = ERRORS.flatMap(({ kind, codes = [] }) => codes.map((fault) => ({ fault, kind })));
  expect(faults.length).toBeGreaterThan(3);
  for (const { fault, kind } of faults) expect(PAGE).toMatch(new RegExp(`^\\| ${kind} \\|.*${fault}`, "m"));
  for (const status of ["400", "401", "403", "404", "409", "413", "429", "500", "504"])
    expect(PAGE).toMatch(new RegExp(`^\\|.*\\b${status}\\b`, "m"));
});
