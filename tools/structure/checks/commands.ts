import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fencesOf } from "../../pages/fences.ts";
import type { Finding } from "../findings.ts";
import { NEEDS, PAGE_SCRIPTS } from "../rules.ts";
import type { Workspace } from "../workspace.ts";

/** Indented, which has no place for a mark. */
const INDENTED =
  /^ {4,}(?:\$ |(?:sudo )?(?:nodeyard|sliverd|npm|npx|apt-get|systemctl|curl|openssl|sh|kill|kubectl|helm|skopeo|podman|docker|aws|git) )/;

/** Every block of commands in docs/ is run by a test, or says what tests would need to run it. */
export function checkCommands({ root }: Workspace): Finding[] {
  // docs/reference is generated: what it shows is usage.
  const pages = globSync("docs/**/*.md", { cwd: root }).filter((path) => !path.startsWith("docs/reference/"));
  return pages.sort().flatMap((path) => {
    const text = readFileSync(join(root, path), "utf8");
    const fences = fencesOf(text);
    const unknown = fences
      .filter(
        ({ language, words }) => /^(?:sh|console)$/.test(language) && !isKnown(root, path, words[0] ?? ""),
      )
      .map(({ line }) => line);
    const indented = text
      .split("\n")
      .flatMap((line, index) => (INDENTED.test(line) && !inside(index + 1, fences) ? [index + 1] : []));
    return [...unknown, ...indented].map(
      (line): Finding => ({ rule: "command", severity: "error", path, line, message: MESSAGE }),
    );
  });
}

const MESSAGE = `a block of commands begins with \`\`\`sh or \`\`\`console and says which test runs it (by=FILE) or what it needs (${Object.keys(
  NEEDS,
)
  .map((name) => `needs=${name}`)
  .join(", ")})`;

function isKnown(root: string, path: string, word: string): boolean {
  const [key, value = ""] = word.split("=");
  if (key === "needs") return Object.hasOwn(NEEDS, value);
  if (key === "by") return existsSync(join(root, value));
  const scripts = Object.entries(PAGE_SCRIPTS).find(([start]) => path.startsWith(start))?.[1] ?? [];
  return word !== "" && scripts.some((file) => readFileSync(join(root, file), "utf8").includes(`"${word}"`));
}

function inside(line: number, fences: ReturnType<typeof fencesOf>): boolean {
  return fences.some((fence) => line > fence.line && line <= fence.line + fence.lines.length);
}
