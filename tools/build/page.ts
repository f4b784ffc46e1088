import { readFileSync } from "node:fs";
import { fencesOf } from "../pages/fences.ts";

/**
 * The shell commands of a page, in order: its code blocks that begin with ```sh and `mark`. A command that ends in `&` is a daemon: what
 * follows waits until it says that it is up, as a reader does.
 */
export function scriptOf(page: string, mark: string): string {
  const blocks = fencesOf(readFileSync(page, "utf8")).filter(({ words: [first] }) => first === mark);
  if (blocks.length === 0) throw new Error(`${page} has no code block that begins with \`\`\`sh ${mark}`);
  const commands = blocks.map(({ lines }) => `${lines.join("\n")}\n`).join("");
  return commands.replace(/^(.*) &$/gm, untilUp);
}

function untilUp(_: string, command: string): string {
  return `${command} 2>up.log &
trap 'kill $! && wait $!' EXIT
until grep -q "is up" up.log; do kill -0 $! 2>/dev/null || { cat up.log >&2; exit 1; }; sleep 0.1; done`;
}
