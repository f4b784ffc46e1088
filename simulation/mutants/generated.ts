import type { Edit } from "./change.ts";
import type { Mutant } from "./mutant.ts";
import { isSyntax, type Place, placesOf, type Syntax, wordsOf } from "./syntax.ts";

/**
 * The rooms that decide about nodes and write to the tree, and the seeds that are run before tests: a seed costs a few seconds, as much as most
 * tests of the scheduler, and less than those of the launcher.
 */
export const ROOMS: Readonly<Record<string, { readonly first: number }>> = {
  scheduler: { first: 0 },
  launcher: { first: 3 },
  coordination: { first: 3 },
};

/** Folders of tests that may catch faults of these rooms. */
export const TESTS: readonly string[] = ["scheduler/", "launcher/", "coordination/", "rules/"];

interface Fault {
  readonly operator: "no guard" | "negated" | "not done" | "not awaited";
  /** The piece of source that tells it from others. */
  readonly about: Syntax;
  readonly edit: Edit;
}

/** What is told to people and to programs that watch. A fault in it decides nothing. */
const TOLD = /^#?(log|logger|trace|counters|journal)$/;

/**
 * Mechanical faults of a source, by their names: function, operator, and the text without its format. A guard is left out, a condition
 * negated, a statement that writes left out, an `await` left out.
 */
export function faultsOf(source: string): ReadonlyMap<string, Edit> {
  const faults = new Map<string, Edit>();
  for (const place of placesOf(source))
    for (const { operator, about, edit } of faultsAt(place)) {
      const text = source
        .slice(about.start, about.end)
        .replaceAll(/\/\/.*|\s+/g, " ")
        .replaceAll(/ +/g, " ");
      const name = `${place.function} ${operator}: ${text}`;
      let free = name;
      for (let times = 2; faults.has(free); times++) free = `${name} (${times})`;
      faults.set(free, edit);
    }
  return faults;

  function* faultsAt({ node }: Place): Generator<Fault> {
    const { test, argument, expression } = node;
    const at = ({ start, end }: Syntax, text: string): Edit => ({ start, end, text });
    const code = (part: Syntax) => source.slice(part.start, part.end);
    if (isGuard(node)) yield { operator: "no guard", about: test as Syntax, edit: at(node, "{}") };
    if (isSyntax(test)) yield { operator: "negated", about: test, edit: at(test, `!(${code(test)})`) };
    if (node.type === "ExpressionStatement" && isSyntax(expression) && hasEffect(expression))
      yield { operator: "not done", about: node, edit: at(node, "{}") };
    if (node.type === "AwaitExpression" && isSyntax(argument))
      yield { operator: "not awaited", about: argument, edit: at(node, code(argument)) };
  }
}

function isGuard({ type, consequent, alternate }: Syntax): boolean {
  if (type !== "IfStatement" || isSyntax(alternate) || !isSyntax(consequent)) return false;
  const [only, ...others] = (
    consequent.type === "BlockStatement" ? consequent.body : [consequent]
  ) as readonly Syntax[];
  return others.length === 0 && /^(Return|Throw|Continue|Break)Statement$/.test(only?.type ?? "");
}

function hasEffect(expression: Syntax): boolean {
  const isWrite = /^(Call|Chain|Await|Assignment|Update|Unary)Expression$/.test(expression.type);
  return isWrite && ![...wordsOf(expression)].some((word) => TOLD.test(word));
}

/** The room of a file, by the end of its path. */
export function roomOf(at: string): (typeof ROOMS)[string] {
  return ROOMS[at.split("/")[0]!]!;
}

/** The function that a fault is in, by the fault's name. */
export function functionOf(name: string): string {
  return name.split(/ ?(?:no guard|negated|not done|not awaited): /, 1)[0]!;
}

/** A generated mutant by its name: the end of a file's path, and the fault's own name. */
export function generatedMutant(name: string): Mutant {
  const [at = "", ...words] = name.split(" ");
  return {
    name,
    breaks: "",
    at,
    tests: [],
    edit: (source) => faultsOf(source).get(words.join(" "))!,
  };
}
