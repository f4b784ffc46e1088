import type { Dialect, Method } from "../method.ts";
import { DOCUMENT_METHODS } from "./documents.ts";
import { SLIVER_METHODS } from "./slivers.ts";

const ORDER: readonly Dialect["name"][] = ["r0", "v2", "native"];

const help: Method = {
  since: "r0",
  params: [],
  doc: "get a list of functions currently supported.",
  run: ({ dialect }) =>
    dialect.help(
      namesIn(dialect).map((name) => {
        const { params, doc } = METHODS.get(name)!;
        return { name, doc: `${name}(${params.join(", ")}): ${doc}` };
      }),
    ),
};

/** All methods by name. A dialect has a part of them. */
export const METHODS: ReadonlyMap<string, Method> = new Map(
  Object.entries<Method>({ ...SLIVER_METHODS, ...DOCUMENT_METHODS, Help: help }),
);

/** The methods of a dialect, sorted by name. */
export function namesIn(dialect: Dialect): string[] {
  const has = ({ since }: Method) => ORDER.indexOf(since) <= ORDER.indexOf(dialect.name);
  return [...METHODS].flatMap(([name, method]) => (has(method) ? [name] : [])).sort();
}
