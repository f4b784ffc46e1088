import { z } from "zod";
import {
  childrenOf,
  isStatement,
  isSyntax,
  type Place,
  parse,
  placesOf,
  type Syntax,
  wordsOf,
} from "./syntax.ts";

const words = z.string().optional();
const code = z.union([z.string(), z.number(), z.boolean(), z.null()]).transform(String).optional();

/**
 * One change of a function. Words that stand in a place name it (identifiers, `#private` names, operators, texts, with spaces between them):
 * the smallest statement, condition or term that has all of them. Several may only fit if one of them has no other words.
 */
export const change = z.strictObject({
  /** The function, by the end of its name: `Leases.#expire` or `#expire`. Absent: anywhere in the file. */
  in: words,
  /** A statement is left out; an `if` has the words of its condition. */
  drop: words,
  /** A term of an expression, or an entry of a list or an object, is left out. */
  without: words,
  /** A condition becomes its contrary, true, or false. */
  negate: words,
  always: words,
  never: words,
  /** A variable or field (its name), or a result (`return` and words of it), gets another value. */
  set: words,
  to: code,
  /** A call of the function with this name, or an expression (in any format), is replaced. */
  call: words,
  replace: words,
  by: code,
  /** Another statement stands instead of a statement, or before it. */
  instead: words,
  before: words,
  do: code,
});
export type Change = z.input<typeof change>;

/** A piece of source and what it becomes. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** A change fits no place, or several. */
export class NoSuchPlace extends Error {
  readonly code = "mutants.no_such_place";
}

export function applied({ start, end, text }: Edit, source: string): string {
  return source.slice(0, start) + text + source.slice(end);
}

/** Throws NoSuchPlace unless the change fits exactly one place. */
export function editOf(change: Change, source: string): Edit {
  const places = inFunction(placesOf(source), change.in);
  const code = ({ start, end }: Syntax) => source.slice(start, end);
  const named = (words: string, kind: Kind, naming?: (node: Syntax) => Syntax) =>
    onlyNamed(places.filter(kind), words.split(" "), naming);
  const { drop, call, replace } = change;
  if (drop !== undefined) return instead(named(drop, isWhole).node, "{}");
  if (change.without !== undefined) return without(named(change.without, isTerm), code);
  const condition = change.negate ?? change.always ?? change.never;
  if (condition !== undefined) {
    const { node } = named(condition, isCondition);
    return instead(node, change.negate === undefined ? `${change.always !== undefined}` : `!(${code(node)})`);
  }
  if (change.set !== undefined) {
    const isResult = change.set.startsWith("return");
    const { node } = isResult ? named(change.set, isReturn) : named(change.set, isSet, targetOf);
    return instead(whatIsSet(node)!, `(${change.to})`);
  }
  if (call !== undefined) return instead(only(places.filter(isCallOf(call)), call).node, `(${change.by})`);
  if (replace !== undefined)
    return instead(only(places.filter(says(replace)), replace).node, `(${change.by})`);
  const { node } = named((change.instead ?? change.before)!, isWhole);
  return instead(node, `{ ${change.do}${change.before === undefined ? "" : ` ${code(node)}`} }`);
}

function instead({ start, end }: Syntax, text: string): Edit {
  return { start, end, text };
}

function without({ node, within: [outer] }: Place, code: (node: Syntax) => string): Edit {
  const { left, right } = outer!;
  if (isSyntax(left) && isSyntax(right)) return instead(outer!, `(${code(left === node ? right : left)})`);
  const all = childrenOf(outer!);
  const [before, after] = [all[all.indexOf(node) - 1], all[all.indexOf(node) + 1]];
  if (after !== undefined) return { start: node.start, end: after.start, text: "" };
  return { start: before?.end ?? node.start, end: node.end, text: "" };
}

function inFunction(places: readonly Place[], name: string | undefined): readonly Place[] {
  if (name === undefined) return places;
  const names = new Set(
    places.map((place) => place.function).filter((each) => `.${each}`.endsWith(`.${name}`)),
  );
  const [whole] = names;
  if (names.size !== 1) throw new NoSuchPlace(`${names.size} functions are called ${name}, not one`);
  return places.filter((place) => `${place.function}.`.startsWith(`${whole}.`));
}

function onlyNamed(
  places: readonly Place[],
  words: readonly string[],
  naming = (node: Syntax) => node,
): Place {
  const found = places.filter(({ node }) => {
    const own = wordsOf(naming(node));
    return words.every((word) => own.has(word));
  });
  const smallest = found.filter(({ node }) => !found.some(({ within }) => within.includes(node)));
  const exact = smallest.filter(({ node }) => wordsOf(naming(node)).size === words.length);
  return only(exact.length === 1 ? exact : smallest, words.join(" "));
}

function only(places: readonly Place[], text: string): Place {
  const [place] = places;
  if (place === undefined || places.length > 1)
    throw new NoSuchPlace(`${JSON.stringify(text)} fits ${places.length} places, not one`);
  return place;
}

type Kind = (place: Place) => boolean;

const isWhole: Kind = ({ node }) => isStatement(node);

const isTerm: Kind = ({ node, within: [outer] }) =>
  /^(Logical|Binary|Array|Object|Call)Expression$/.test(outer?.type ?? "") && outer!.callee !== node;

const isCondition: Kind = ({ node, within: [outer] }) =>
  outer?.test === node || /^(LogicalExpression|ReturnStatement)$/.test(outer?.type ?? "");

const isReturn: Kind = ({ node }) => node.type === "ReturnStatement" && whatIsSet(node) !== undefined;

const isSet: Kind = ({ node }) =>
  /^(VariableDeclarator|AssignmentExpression|Property|PropertyDefinition)$/.test(node.type) &&
  whatIsSet(node) !== undefined &&
  node.shorthand !== true;

function targetOf({ id, left, key }: Syntax): Syntax {
  return (id ?? left ?? key) as Syntax;
}

function whatIsSet({ init, right, argument, value }: Syntax): Syntax | undefined {
  const found = init ?? right ?? argument ?? value;
  return isSyntax(found) ? found : undefined;
}

function isCallOf(name: string): Kind {
  return ({ node: { type, callee } }) => {
    if (type !== "CallExpression" || !isSyntax(callee)) return false;
    const last = (callee.property ?? callee) as Syntax;
    return /Identifier$/.test(last.type) && wordsOf(last).has(name);
  };
}

function says(text: string): Kind {
  const [statement] = parse(`(${text})`).body as readonly Syntax[];
  const wanted = statement!.expression as Syntax;
  return ({ node }) => node.type === wanted.type && shapeOf(node) === shapeOf(wanted);
}

/** A node's text without its format. */
function shapeOf(node: Syntax): string {
  return JSON.stringify(node, (key, value) => (["start", "end", "raw"].includes(key) ? undefined : value));
}
