import { parseArgs } from "node:util";
import { messageOf } from "@nodeyard/runtime";

/** The request of the command line: a run, or only text: the help, or what is wrong. */
export type DemoArguments =
  | { readonly once: boolean; readonly wantsSlivers: boolean }
  | { readonly help: string }
  | { readonly wrong: string };

const OPTIONS = {
  once: { type: "boolean", default: false },
  "no-slivers": { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

const HELP = `npm start -- [--once] [--no-slivers]

Runs Nodeyard in .nodeyard of this folder, with nodes to try: a fake cloud, and slivers of this machine or SSH servers on loopback.

  --once        request nodes, use one, return them and exit; in a temporary folder
  --no-slivers  make no slivers of this machine, even as root
  -h, --help    show this
`;

/** Reads the words after `npm start --`. */
export function parseDemoArguments(words: readonly string[]): DemoArguments {
  try {
    const { values } = parseArgs({ args: [...words], options: OPTIONS });
    if (values.help) return { help: HELP };
    return { once: values.once, wantsSlivers: !values["no-slivers"] };
  } catch (error) {
    // Its first sentence names the word; the others are about the parser.
    const what = messageOf(error).split(". ")[0];
    return { wrong: `${what}; "npm start -- --help" shows what there is` };
  }
}
