import { type ErrorUse, errorUses } from "../error-codes.ts";
import { type Finding, ownerOf } from "../findings.ts";
import type { Workspace } from "../workspace.ts";

/** Programs compare codes, so a code has one meaning: one class, or one package that throws it without a class. */
export function checkErrorCodes(workspace: Workspace): Finding[] {
  const byCode = new Map<string, ErrorUse[]>();
  for (const use of errorUses(workspace)) byCode.set(use.code, [...(byCode.get(use.code) ?? []), use]);
  return [...byCode].flatMap(([code, uses]) => {
    const owners = new Set(uses.map((use) => use.className ?? ownerOf(use.path)));
    if (owners.size < 2) return [];
    const first = uses[0]!;
    return uses.slice(1).map(({ path, line }) => {
      const message = `error code ${code} is taken by ${first.className ?? "an error"} in ${first.path}:${first.line}`;
      return { rule: "error-code", severity: "error" as const, path, line, message };
    });
  });
}
