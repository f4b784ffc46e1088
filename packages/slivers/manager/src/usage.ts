/** Texts of one program for `--help` and its manual page. */
export interface Usage {
  readonly summary: string;
  /** A command line and its description. */
  readonly lines: readonly (readonly [words: string, text: string])[];
  readonly notes: string;
}

/** Usage of the programs for operators of sliver hosts, for --help and the manual pages. */
export const USAGES = {
  sliverd: {
    summary: "sliver manager of Nodeyard",
    lines: [
      ["sliverd --config FILE", "run the sliver manager"],
      [
        "sliverd --dismantle --config FILE [--json]",
        "end every sliver and remove everything that slivers put on this machine",
      ],
      ["sliverd --dismantle --dry-run --config FILE [--json]", "list what that would remove"],
      [
        "sliverd --forget-writer --config FILE [--dry-run]",
        "trust the configuration's keys and accept any writer's next document again; stop sliverd before",
      ],
      [
        "sliverd --exec SLIVER --config FILE [-- COMMAND...]",
        "run a command, or a shell, as root of a sliver; SLIVER is its name or its node",
      ],
      ["sliverd --freeze SLIVER --config FILE", "stop its processes where they are"],
      ["sliverd --thaw SLIVER --config FILE", "let them go on"],
      [
        "sliverd --snapshot SLIVER --config FILE -- IMAGE",
        "make what a sliver has now an image of that name",
      ],
      [
        "sliverd --forget-snapshot IMAGE --config FILE",
        "remove that image; its blocks go with the last sliver that was made of it",
      ],
      ["sliverd --version", "print the version"],
    ],
    notes: "Slivers keep running while it is stopped or restarted. SIGUSR2 writes its state to the log.",
  },
  "sliver-enrol": {
    summary: "make a machine a host of slivers, or take that back",
    lines: [
      ["sliver-enrol plan < settings.json", "list what would be changed"],
      ["sliver-enrol apply < settings.json", "make this machine a sliver host"],
      ["sliver-enrol withdraw [--dry-run]", "take it back"],
      ["sliver-enrol --version", "print the version"],
    ],
    notes: "The answer is one line of JSON. Run as root.",
  },
} as const satisfies Readonly<Record<string, Usage>>;

/** The text for --help and for wrong arguments. */
export function usageText({ lines, notes }: Usage): string {
  const width = Math.max(...lines.map(([words]) => words.length));
  const rows = lines.map(
    ([words, text], at) => `${at === 0 ? "usage:" : "      "} ${words.padEnd(width)}  ${text}\n`,
  );
  return `${rows.join("")}${notes}\n`;
}
