import { accessSync, appendFileSync, constants, existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Names the file in which the processes of a run of tests note what they skip; unset where nobody asks. */
export const NOTES = "NODEYARD_TESTS_SKIPPED";

/** A command, or the path of a file, and the Debian package that brings it. */
const PACKAGES: ReadonlyMap<string, string> = new Map(
  readFileSync(join(import.meta.dirname, "packages.txt"), "utf8")
    .trim()
    .split("\n")
    .map((line) => line.split(" ") as [string, string]),
);

interface Note {
  readonly line: string;
  readonly packages: readonly string[];
}

/**
 * For `describe.skipIf(requireTools("tests of TLS", "openssl"))`: the reason to skip tests that need commands or files of
 * `testing/packages.txt`, or undefined.
 *
 * @throws where `skip` does.
 */
export function requireTools(tests: string, ...tools: readonly string[]): string | undefined {
  const missing = tools.filter((tool) => !isThere(tool));
  return missing.length === 0 ? undefined : skip(`${tests} need ${missing.join(", ")}`, ...missing);
}

/** Throws unless all of the tools are there, with the command that installs the others. `work`: what needs them. */
export function demandTools(work: string, ...tools: readonly string[]): void {
  const missing = tools.filter((tool) => !isThere(tool));
  if (missing.length > 0)
    throw new Error(
      `${work} needs ${missing.join(", ")}. Run: ${installation([...new Set(missing.map(packageOf))])}`,
    );
}

/** As `requireTools`, for what only root may do. */
export function requireRoot(): string | undefined {
  return process.getuid?.() === 0 ? undefined : skip("tests of what only root may do need root");
}

/**
 * Returns the reason, after it is written to stderr and noted for the last lines of the run, with the packages that bring
 * what is missing of `tools`.
 *
 * @throws in CI, so that no test is lost silently.
 */
export function skip(reason: string, ...tools: readonly string[]): string {
  const packages = [...new Set(tools.filter((tool) => !isThere(tool)).map(packageOf))];
  const line = packages.length === 0 ? reason : `${reason}. Run: ${installation(packages)}`;
  if (process.env.CI) throw new Error(line);
  process.stderr.write(`SKIPPED: ${line}\n`);
  const notes = process.env[NOTES];
  if (notes !== undefined) appendFileSync(notes, `${JSON.stringify({ line: reason, packages })}\n`);
  return line;
}

/** What `notes`, a text of the file that `NOTES` names, says that was skipped, once each, and one command that installs what was missing. */
export function skippedText(notes: string): string {
  const all = notes.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Note]));
  if (all.length === 0) return "";
  const reasons = [...new Set(all.map(({ line }) => `  ${line}\n`))].sort();
  const packages = [...new Set(all.flatMap((note) => note.packages))].sort();
  const remedy = packages.length === 0 ? "" : `To run them: ${installation(packages)}\n`;
  return `Skipped on this machine:\n${reasons.join("")}${remedy}`;
}

function packageOf(tool: string): string {
  const found = PACKAGES.get(tool);
  if (found === undefined) throw new Error(`testing/packages.txt does not say which package brings ${tool}`);
  return found;
}

function installation(packages: readonly string[]): string {
  const sudo = process.getuid?.() === 0 ? "" : "sudo ";
  return `${sudo}apt-get install --no-install-recommends ${packages.join(" ")}`;
}

function isThere(tool: string): boolean {
  if (tool.startsWith("/")) return existsSync(tool);
  // Some users' PATH lacks the programs of administrators, which are there all the same.
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/sbin"];
  return folders.some((folder) => {
    try {
      accessSync(join(folder, tool), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
