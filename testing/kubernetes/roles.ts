import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";

const PAGE = fileURLToPath(new URL("../../docs/how-to/connect-a-kubernetes.md", import.meta.url));

/** The cluster roles of the page on Kubernetes, as an administrator would apply them. */
export const ROLES: readonly object[] = parseAllDocuments(
  /```yaml\n([\s\S]*?)```/.exec(readFileSync(PAGE, "utf8"))![1]!,
).map((document) => document.toJS() as object);
