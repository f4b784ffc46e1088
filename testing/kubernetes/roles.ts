import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";

const PAGE = fileURLToPath(new URL("../../docs/how-to/connect-a-kubernetes.md", import.meta.url));

const text = readFileSync(PAGE, "utf8");

/** A rule of a role (PolicyRule of rbac.authorization.k8s.io). */
export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

const blocks = [...text.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, block]) =>
  parseAllDocuments(block!).map((document) => document.toJS() as object),
);
/** The cluster roles of the page on Kubernetes, as an administrator would apply them. */
export const ROLES: readonly object[] = blocks[0]!;
/** The policy of the page that keeps a launcher in its namespaces. */
export const POLICY: readonly object[] = blocks[1]!;

export const VERBS = ["get", "list", "watch", "create", "update", "patch", "delete"] as const;
export type Verb = (typeof VERBS)[number];
export type Column = "`type: pod`" | "`type: namespace`" | "`openshift`" | "`openshiftpods`, its own pod";

/** The page's table of what a job may do: the verbs of each resource, which is named as kubectl names it (`jobs.batch`). */
export function rightsOf(column: Column): ReadonlyMap<string, readonly Verb[]> {
  const [head, , ...rows] = /^\| Resource [\s\S]*?(?=\n\n)/m
    .exec(text)![0]
    .split("\n")
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  const index = head!.indexOf(column);
  return new Map(
    rows.flatMap((cells) => {
      const [, names = "", group] = /^([^(]+?)(?: \((.*)\))?$/.exec(cells[0]!)!;
      const words = cells[index]!.split(", ");
      const verbs = VERBS.filter((verb) => words[0] === "all" || words.includes(verb));
      return names.split(", ").map((name) => [group ? `${name}.${group}` : name, verbs] as const);
    }),
  );
}
