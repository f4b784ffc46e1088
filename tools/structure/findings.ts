export type Severity = "error" | "warning";

export interface Finding {
  readonly rule: string;
  readonly severity: Severity;
  /** Relative to the root of the repository. */
  readonly path: string;
  readonly line?: number;
  /** What is wrong and how to fix it, in one line. */
  readonly message: string;
}

/** The folder to which the finding belongs: a package, or a folder of the root. */
export function ownerOf(path: string): string {
  const parts = path.split("/");
  if (parts[0] !== "packages") return parts.length > 1 ? parts[0]! : ".";
  return parts.slice(0, 3).join("/");
}

/** One block per folder, errors first. */
export function render(findings: readonly Finding[]): string {
  const groups = new Map<string, Finding[]>();
  for (const finding of findings) {
    const owner = ownerOf(finding.path);
    groups.set(owner, [...(groups.get(owner) ?? []), finding]);
  }
  const blocks = [...groups]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([owner, group]) => block(owner, group));
  return blocks.join("\n");
}

function block(owner: string, findings: readonly Finding[]): string {
  const rank = (one: Finding) => `${one.severity}\0${one.path}\0${String(one.line ?? 0).padStart(6, "0")}`;
  const sorted = [...findings].sort((a, b) => (rank(a) < rank(b) ? -1 : 1));
  const lines = sorted.map((one) => {
    const place = one.line === undefined ? one.path : `${one.path}:${one.line}`;
    return `  ${one.severity.padEnd(7)} ${one.rule.padEnd(12)} ${place}: ${one.message}`;
  });
  return `${owner}\n${lines.join("\n")}\n`;
}
