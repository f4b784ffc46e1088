import { type ErrorUse, errorUses } from "./error-codes.ts";
import type { Workspace } from "./workspace.ts";

/** The reference page of error codes: every code in shipped code, by the package or room that owns it. */
export function errorsPage(workspace: Workspace): string {
  const byCode = new Map<string, ErrorUse>();
  for (const use of errorUses(workspace)) {
    const known = byCode.get(use.code);
    if (known === undefined || (known.doc === undefined && use.doc !== undefined)) byCode.set(use.code, use);
  }
  const uses = [...byCode.values()].sort((a, b) => (a.code < b.code ? -1 : 1));
  const prefixes = [...new Set(uses.map((use) => prefixOf(use.code)))];
  const sections = prefixes.map((prefix) =>
    section(
      prefix,
      uses.filter((use) => prefixOf(use.code) === prefix),
    ),
  );
  return `# Error codes

<!-- Generated from the code by \`npm run generate\`. -->

Every error has a stable \`code\`, meant for programs, and one line of text for people. \`*\` stands for a part that
the error fills in.

${sections.join("\n")}`;
}

function prefixOf(code: string): string {
  return code.slice(0, code.indexOf("."));
}

function section(prefix: string, uses: readonly ErrorUse[]): string {
  const rows = uses.map(
    ({ code, className, doc, message }) => `| \`${code}\` | ${className ?? ""} | ${cell(doc ?? message)} |`,
  );
  return `## ${prefix}\n\n| Code | Class | Meaning |\n|---|---|---|\n${rows.join("\n")}\n`;
}

function cell(text = ""): string {
  return text.replaceAll("|", "\\|");
}
