import {
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type Document as YamlDocument,
} from "yaml";

/** A place in a file, as people count. */
export interface Position {
  /** From 1. */
  readonly line: number;
  readonly column: number;
}

/** What keeps a file from being read, and where. */
export interface SyntaxProblem extends Position {
  readonly message: string;
}

/**
 * A parsed file of which places can be found by path. Only structure and places are the library's; values are made in
 * yaml/values.ts. Never throws.
 */
export class SourceDocument {
  readonly problems: readonly SyntaxProblem[];
  readonly contents: Node | null;
  readonly #document: YamlDocument.Parsed;
  readonly #lines: LineCounter;
  readonly #targets = new Map<unknown, unknown>();

  constructor(text: string) {
    this.#lines = new LineCounter();
    // Types of scalars are ours (`plainScalar`): the library's YAML 1.1 differs from the old readers' in corners.
    this.#document = parseDocument(text, {
      version: "1.1",
      schema: "failsafe",
      resolveKnownTags: false,
      uniqueKeys: false,
      merge: false,
      lineCounter: this.#lines,
      prettyErrors: false,
    });
    this.contents = this.#document.contents;
    this.problems = this.#document.errors.map((error) => ({
      ...this.at(error.pos[0]),
      message: error.message,
    }));
  }

  /** The place of a character; `offset` counts UTF-16 units from 0. */
  at(offset: number): Position {
    const { line, col } = this.#lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  }

  /** The node itself, or what an alias stands for. */
  resolve(node: unknown): unknown {
    if (!isAlias(node)) return node;
    // The library searches the whole document each time.
    if (!this.#targets.has(node)) this.#targets.set(node, node.resolve(this.#document));
    return this.#targets.get(node);
  }

  /** Lines of the items of a list with dashes, under a key of the top; `column` is that of the dashes, `end` the line after the last item. */
  listUnder(
    key: string,
  ): { readonly lines: readonly number[]; readonly column: number; readonly end: number } | undefined {
    const pair = isMap(this.contents) ? this.contents.items.find((item) => keyText(item) === key) : undefined;
    const list = pair?.value;
    if (!isSeq(list) || list.flow === true || list.items.length === 0) return undefined;
    const end = this.at((list.items.at(-1) as Node).range?.[1] ?? 0);
    return {
      lines: list.items.map((item) => this.at(offsetOf(item) ?? 0).line),
      column: this.at(offsetOf(list) ?? 0).column,
      end: end.column === 1 ? end.line : end.line + 1,
    };
  }

  /** Where the value under `path` stands, or, when it is absent, the nearest mapping or list around it. */
  locate(path: readonly (string | number)[]): Position {
    let node: unknown = this.contents;
    let offset = offsetOf(node) ?? 0;
    for (const step of path) {
      const next = this.#step(this.resolve(node), step);
      if (next === undefined) break;
      node = next.node;
      offset = next.offset;
    }
    return this.at(offset);
  }

  #step(
    node: unknown,
    step: string | number,
    seen = new Set<unknown>(),
  ): { readonly node: unknown; readonly offset: number } | undefined {
    if (isSeq(node) && typeof step === "number") {
      const item = node.items[step];
      return item === undefined ? undefined : { node: item, offset: offsetOf(item) ?? 0 };
    }
    if (!isMap(node)) return undefined;
    // Of several equal keys the last one counts.
    const pair = node.items.findLast((item) => isPair(item) && keyText(item) === String(step));
    if (pair !== undefined) return { node: pair.value, offset: offsetOf(pair.key) ?? 0 };
    // Mappings may merge each other, and themselves.
    if (seen.has(node)) return undefined;
    seen.add(node);
    return this.#throughMerge(node.items, step, seen);
  }

  /** A key that a mapping has by `<<`: of several sources the first that has it. */
  #throughMerge(
    items: readonly Pair[],
    step: string | number,
    seen: Set<unknown>,
  ): { readonly node: unknown; readonly offset: number } | undefined {
    for (const pair of items) {
      if (keyText(pair) !== "<<") continue;
      const merged = this.resolve(pair.value);
      for (const source of isSeq(merged) ? merged.items : [merged]) {
        const found = this.#step(this.resolve(source), step, seen);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  }
}

function keyText(pair: Pair): string | undefined {
  return isScalar(pair.key) ? String(pair.key.value) : undefined;
}

/** Where a node begins; undefined for one that the text does not have. */
export function offsetOf(node: unknown): number | undefined {
  const range = (node as { readonly range?: readonly [number, number, number] | null } | null)?.range;
  return range?.[0];
}
