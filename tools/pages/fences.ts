export interface Fence {
  /** Of its first line, from 1. */
  readonly line: number;
  readonly language: string;
  /** What follows the language: `run` in ```sh run. */
  readonly words: readonly string[];
  /** Without the indentation of the list that it stands in. */
  readonly lines: readonly string[];
}

const OPENING = /^(?<indent> *)```(?<language>[a-z]*)(?<words>.*)$/;

/** The code blocks of a Markdown page, in order. A block without an end goes to the end of the page. */
export function fencesOf(text: string): Fence[] {
  const lines = text.split("\n");
  const found: Fence[] = [];
  for (let at = 0; at < lines.length; at++) {
    const { indent, language, words } = OPENING.exec(lines[at]!)?.groups ?? {};
    if (indent === undefined) continue;
    const end = lines.indexOf(`${indent}\`\`\``, at + 1);
    const inside = lines.slice(at + 1, end < 0 ? undefined : end);
    found.push({
      line: at + 1,
      language: language!,
      words: words!.split(" ").filter((word) => word !== ""),
      lines: inside.map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line)),
    });
    at += inside.length + 1;
  }
  return found;
}
