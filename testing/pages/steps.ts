import { fencesOf } from "../../tools/pages/fences.ts";

/** What a reader of a tutorial does next. */
export interface Step {
  /** Of the page, from 1. */
  readonly line: number;
  /** Commands for a shell. */
  readonly commands: string;
  /** Runs on in a terminal of this name, while the reader continues in the first one. */
  readonly terminal?: string;
  /** Commands are repeated until the output is this one. */
  readonly again: boolean;
  /** Exit code of the last command. */
  readonly code: number;
  /** Lines that the page prints below; undefined: the page says nothing about the output. */
  readonly output?: string;
}

export interface Tutorial {
  /** Ports that the page uses, which may be in use on the machine of the tests. */
  readonly ports: readonly string[];
  readonly steps: readonly Step[];
}

/**
 * The blocks of a page that begin with ```sh run, each with the block ```text that follows directly. Words after `run`: `terminal=NAME`,
 * `again`, `code=N`. `<!-- ports: 2222 -->` names ports that stand for free ones.
 */
export function tutorialOf(page: string): Tutorial {
  const fences = fencesOf(page);
  const steps = fences.flatMap(({ line, language, words, lines }, index): Step[] => {
    if (language !== "sh" || words[0] !== "run") return [];
    const next = fences[index + 1];
    const between = page.split("\n").slice(line + lines.length + 1, (next?.line ?? line) - 1);
    const follows = next?.language === "text" && between.every((text) => text.trim() === "");
    const value = (name: string) => words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1);
    const terminal = value("terminal");
    return [
      {
        line,
        commands: lines.join("\n"),
        ...(terminal === undefined ? {} : { terminal }),
        again: words.includes("again"),
        code: Number(value("code") ?? 0),
        ...(follows ? { output: next.lines.join("\n") } : {}),
      },
    ];
  });
  const ports = /<!-- ports: ([\d ]+) -->/.exec(page)?.[1]?.split(" ") ?? [];
  return { ports, steps };
}
