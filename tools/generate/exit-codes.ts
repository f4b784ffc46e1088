import { EXIT_CODES } from "nodeyard";

/** The page of exit codes. */
export function exitCodesPage(): string {
  const rows = Object.entries(EXIT_CODES).map(([code, meaning]) => `| ${code} | ${meaning} |`);
  return `<!-- Made by \`npm run generate\` from packages/nodeyard/cli/src/errors.ts. -->
# Exit codes

Of every command of \`nodeyard\`. A failure is one line on stderr that begins with \`nodeyard:\`; the [codes](errors.md) that begin with \`cli.\`
stand in the log and the API only. Nothing is printed on stdout in place of a result that could not be had.

| Code | Meaning |
|---|---|
${rows.join("\n")}
`;
}
