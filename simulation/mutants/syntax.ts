import { parseAst } from "rolldown/parseAst";

/** A node of the syntax tree: ESTree with TypeScript. */
export interface Syntax {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly name?: unknown;
  readonly value?: unknown;
  readonly operator?: unknown;
  readonly id?: unknown;
  readonly key?: unknown;
  readonly init?: unknown;
  readonly left?: unknown;
  readonly right?: unknown;
  readonly argument?: unknown;
  readonly callee?: unknown;
  readonly property?: unknown;
  readonly test?: unknown;
  readonly consequent?: unknown;
  readonly alternate?: unknown;
  readonly shorthand?: unknown;
  readonly body?: unknown;
  readonly expression?: unknown;
}

/** A node, the nodes that contain it (the nearest first), and the function that it is in. */
export interface Place {
  readonly node: Syntax;
  readonly within: readonly Syntax[];
  /** With what contains it: `Leases.#expire`; empty outside of any function or class. */
  readonly function: string;
}

let last: { readonly source: string; readonly places: readonly Place[] } | undefined;

/** All places of a source, each before those inside it. Throws when the source is no program. */
export function placesOf(source: string): readonly Place[] {
  // The mutants of a file follow one another.
  if (last?.source !== source) last = { source, places: [...placesIn(parse(source), [], "")] };
  return last.places;
}

export function parse(source: string): Syntax {
  return parseAst(source, { lang: "ts" }) as unknown as Syntax;
}

function* placesIn(node: Syntax, within: readonly Syntax[], outer: string): Generator<Place> {
  const name = [outer, nameOf(node)].filter(Boolean).join(".");
  yield { node, within, function: name };
  const inside = [node, ...within];
  for (const child of childrenOf(node)) yield* placesIn(child, inside, name);
}

export function childrenOf(node: Syntax): readonly Syntax[] {
  return Object.values(node).flat().filter(isSyntax);
}

export function isSyntax(value: unknown): value is Syntax {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

/** A statement that can be left out or replaced. */
export function isStatement({ type }: Syntax): boolean {
  return type === "VariableDeclaration" || (type.endsWith("Statement") && type !== "BlockStatement");
}

/**
 * The words of a node: its identifiers, `#private` names, operators, texts and numbers. Statements inside it have their own: the words of an
 * `if` are those of its condition.
 */
export function wordsOf(node: Syntax): ReadonlySet<string> {
  const words = new Set<string>();
  const collect = (each: Syntax): void => {
    const word = wordOf(each);
    if (word !== undefined) words.add(word);
    for (const child of childrenOf(each)) if (!isStatement(child)) collect(child);
  };
  collect(node);
  return words;
}

function wordOf({ type, name, value, operator }: Syntax): string | undefined {
  if (type === "Identifier") return String(name);
  if (type === "PrivateIdentifier") return `#${name}`;
  if (type === "Literal") return String(value);
  if (type === "ReturnStatement") return "return";
  if (type === "ThrowStatement") return "throw";
  if (type === "ThisExpression") return "this";
  return typeof operator === "string" ? operator : undefined;
}

/** The name of a class, a method, or a function that has one or is the value of a variable or field. */
function nameOf(node: Syntax): string | undefined {
  const { type } = node;
  if (type === "FunctionDeclaration" || type === "ClassDeclaration") return textOf(node.id);
  if (type === "MethodDefinition") return textOf(node.key);
  const value = node.init ?? node.value;
  if (!isSyntax(value) || !/^(Arrow)?FunctionExpression$/.test(value.type)) return undefined;
  return textOf(node.id ?? node.key);
}

function textOf(name: unknown): string | undefined {
  return isSyntax(name) ? wordOf(name) : undefined;
}
