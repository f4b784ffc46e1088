import { isDeepStrictEqual } from "node:util";
import type { ConfigInput } from "./load.ts";
import { readSource, substitute } from "./source.ts";
import { SourceDocument } from "./yaml/document.ts";

/**
 * The text with only some of its providers, by their indexes. Whole lines are cut out, so that comments, anchors and placeholders of the
 * environment stay as they are written. Undefined where that does not come to the same file without the other providers: a list in
 * brackets, or an anchor that stands in a provider which goes.
 */
export function withProviders(
  { text, env }: Pick<ConfigInput, "text" | "env">,
  stays: (index: number) => boolean,
): string | undefined {
  const filled = substitute(text, env);
  const lines = text.split("\n");
  const list = new SourceDocument(filled).listUnder("providers");
  // A variable of several lines moves everything behind it.
  if (list === undefined || filled.split("\n").length !== lines.length) return undefined;
  const firsts = list.lines.map((line) => firstLineOf(line, list.column, lines));
  const goes = new Set<number>();
  firsts.forEach((first, index) => {
    for (let line = first; line < (firsts[index + 1] ?? list.end) && !stays(index); line++) goes.add(line);
  });
  const rest = lines.filter((_, index) => !goes.has(index + 1)).join("\n");
  const [before, after] = [text, rest].map((one) => readSource("", one, env).raw);
  if (!Array.isArray(before?.providers)) return undefined;
  const providers = before.providers.filter((_, index) => stays(index));
  // The result is read again and compared: only what is proven to be the same file without the other providers is written.
  return isDeepStrictEqual({ ...before, providers }, { ...after }) ? rest : undefined;
}

/**
 * The text with only the keys of ZooKeeper, each in its line: of a file with mistakes elsewhere, for a command that needs the tree alone.
 * Undefined where such a key stands in another form, as in braces.
 */
export function zookeeperPart(text: string): string | undefined {
  let isWanted = false;
  let isWhole = true;
  const lines = text.split("\n").map((line) => {
    // Anything else goes on below the key before it: an indented line, an item of a list, a comment.
    if (!/^(\s|-|#|$)/.test(line)) isWanted = /^zookeeper-[a-z]+\s*:/.test(line);
    if (!isWanted && /^[^#]*zookeeper-(servers|tls)/.test(line)) isWhole = false;
    return isWanted ? line : "";
  });
  const part = lines.join("\n");
  return !isWhole ? undefined : part.trim() === "" ? "{}" : part;
}

/** The line of the dash of an item, or of the comments above it; lines are counted from 1. */
function firstLineOf(line: number, column: number, lines: readonly string[]): number {
  const at = (number: number) => lines[number - 1] ?? "";
  let first = line;
  while (first > 1 && !/^-(\s|$)/.test(at(first).slice(column - 1))) first--;
  while (/^\s*#/.test(at(first - 1))) first--;
  return first;
}
