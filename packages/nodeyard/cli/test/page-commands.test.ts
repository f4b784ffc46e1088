import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { systemMachine } from "@nodeyard/telemetry/machine";
import { expect, test } from "vitest";
import { fencesOf } from "../../../../tools/pages/fences.ts";
import { type Described, describeProgram } from "../src/index.ts";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));
const PAGES = ["*.md", "docs/**/*.md", "examples/**/*.md"];
const WORD = String.raw`(?:"[^"]*"|'[^']*'|[^\s|;&()<>"'#]+)`;
/** Where a shell would look for a command: first in a line, after its variables, or after `|`, `(` and the like. */
const COMMAND = new RegExp(
  String.raw`(?:^(?:\$ )?(?:\w+=\S+ )*(?:exec )?|[(;&|']\s*)nodeyard((?:[ \t]+${WORD})*)`,
  "gm",
);

/** Every command line of nodeyard in the code blocks of the pages, whether a test runs it or not. */
function commandLines(): { readonly at: string; readonly words: readonly string[] }[] {
  return globSync(PAGES, { cwd: ROOT, exclude: (path) => path.includes("node_modules") }).flatMap((page) =>
    fencesOf(readFileSync(`${ROOT}/${page}`, "utf8"))
      .filter(({ language }) => language === "sh" || language === "console")
      .flatMap(({ line, language, lines }) => {
        const typed = language === "sh" ? lines : lines.filter((text) => text.startsWith("$ "));
        const text = typed
          .join("\n")
          .replaceAll("\\\n", "")
          .replaceAll(/^\s*#.*$/gm, "");
        return [...text.matchAll(COMMAND)].map(([, words]) => ({
          at: `${page}:${line}:${words}`,
          words: words!.match(new RegExp(WORD, "g")) ?? [],
        }));
      }),
  );
}

/** The first word that the command line does not know; undefined: it knows all. */
function unknownIn(words: readonly string[], program: Described): string | undefined {
  let command = program;
  for (let at = 0; at < words.length && words[at] !== "--"; at++) {
    const [flag] = words[at]!.split("=");
    if (!flag!.startsWith("-")) {
      const inner = command.commands.find(({ path }) => path.at(-1) === flag);
      if (inner === undefined && command.commands.length > 0) return flag;
      command = inner ?? command;
      continue;
    }
    const option = [...command.options, ...program.options].find(({ flags }) => flags.includes(flag!));
    if (option === undefined) return flag;
    if (option.value !== null && !words[at]!.includes("=")) at++;
  }
  return undefined;
}

test("pages show only commands and options that there are", async () => {
  const program = await describeProgram(systemMachine());
  const lines = commandLines();
  expect(lines.length).toBeGreaterThan(80);
  expect(lines.filter(({ words }) => unknownIn(words, program) !== undefined)).toEqual([]);
});
