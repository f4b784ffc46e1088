/** Where a path of the tree belongs in the view; anything else is "other". */
export type Place =
  | { readonly kind: "node"; readonly id: string }
  | { readonly kind: "contender"; readonly id: string; readonly name: string }
  | { readonly kind: "request"; readonly id: string }
  | { readonly kind: "component"; readonly componentKind: string; readonly key: string }
  | { readonly kind: "other" };

const other: Place = { kind: "other" };

/** Each literal is checked, not only counted, so that no name in a path can pass for another kind of object. */
export function placeOf(path: string): Place {
  const parts = path.split("/");
  if (parts[0] !== "" || parts[1] !== "nodepool") return other;
  const [, , root, first, second, third] = parts;
  if (first === undefined || first === "") return other;
  switch (root) {
    case "nodes":
      if (parts.length === 4) return { kind: "node", id: first };
      if (parts.length === 6 && second === "lock") return { kind: "contender", id: first, name: third! };
      return other;
    case "requests":
      return parts.length === 4 ? { kind: "request", id: first } : other;
    case "components":
      return parts.length === 5
        ? { kind: "component", componentKind: first, key: `${first}/${second}` }
        : other;
    default:
      return other;
  }
}
