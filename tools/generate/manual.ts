import { USAGES, type Usage } from "@nodeyard/sliver";
import { systemMachine, VERSION } from "@nodeyard/telemetry/machine";
import { type Described, describeProgram, EXIT_CODES } from "nodeyard";
import { configurationSections } from "./configuration.ts";

/** Commands that a system starts: their pages are in section 8. */
const DAEMONS: ReadonlySet<string> = new Set(["up", "launcher", "builder"]);

/** Text by file name. */
export type Pages = Readonly<Record<string, string>>;

/** The manual pages of the package `nodeyard` by file name, in roff: the program, each of its commands, and its configuration. */
export async function manualPages(): Promise<Pages> {
  const program = await describeProgram(systemMachine());
  const commands = program.commands.map((command) => [fileOf(command), commandPage(command)]);
  return {
    "nodeyard.1": programPage(program),
    ...Object.fromEntries(commands),
    "nodepool.yaml.5": configurationPage(),
  };
}

/** Those of the programs of a sliver host. */
export function sliverHostPages(): Pages {
  const pages = Object.entries<Usage>(USAGES).map(([name, { summary, lines, notes }]) => {
    const body = [
      ...heading("Synopsis", listed(lines)),
      ...heading("Description", [text(notes)]),
      ...heading("Exit status", ["0 done, 1 failure, 2 called wrongly."]),
      ...heading("See also", ["nodeyard\\-sliverd(1)"]),
    ];
    return [`${name}.8`, page(name, 8, summary, body)];
  });
  return Object.fromEntries(pages);
}

function fileOf({ path }: Described): string {
  return `nodeyard-${path[0]}.${sectionOf(path[0]!)}`;
}

function sectionOf(command: string): number {
  return DAEMONS.has(command) ? 8 : 1;
}

function programPage(program: Described): string {
  const commands = program.commands.map(({ path, summary }) => [
    `nodeyard-${path[0]}(${sectionOf(path[0]!)})`,
    summary,
  ]);
  return page("nodeyard", 1, "hand out test machines", [
    ...usage(program, []),
    ...heading("Commands", listed(commands)),
    ...heading("Notes", block(program.notes)),
    ...heading("Exit status", listed(Object.entries(EXIT_CODES))),
    ...heading("See also", ["nodepool.yaml(5)"]),
  ]);
}

function commandPage(command: Described): string {
  const [name] = command.path;
  const body = [
    ...usage(command, block(command.notes)),
    ...command.commands.flatMap(subsections),
    ...heading("Exit status", ["As of nodeyard(1)."]),
    ...heading("See also", ["nodeyard(1), nodepool.yaml(5)"]),
  ];
  return page(`nodeyard-${name}`, sectionOf(name!), command.summary, body);
}

function usage(command: Described, notes: readonly string[]): string[] {
  return [
    ...heading("Synopsis", [`.B ${text(command.usage)}`]),
    ...heading("Description", [text(command.summary), ...notes]),
    ...heading("Options", terms(command)),
  ];
}

function subsections(command: Described): string[] {
  const { path, summary, notes, commands } = command;
  return [
    `.SS nodeyard ${text(path.join(" "))}`,
    text(summary),
    ...terms(command),
    ...block(notes),
    ...commands.flatMap(subsections),
  ];
}

function terms({ path, arguments: given, options }: Described): string[] {
  // Every command has --help.
  const own = options.filter(({ flags }) => path.length === 0 || !flags.includes("--help"));
  return listed([...given.map((one) => [one.name, one.text]), ...own.map((one) => [one.term, one.text])]);
}

function configurationPage(): string {
  const { top, providers } = configurationSections();
  const body = [...top, ...providers].flatMap(({ title, keys }) => [
    `.SS ${text(title.replaceAll("`", ""))}`,
    ...listed(
      keys.map(({ key, type, needed, default: value, text }) => {
        const facts = [type, ...(needed ? ["needed"] : []), ...(value === "" ? [] : [`default: ${value}`])];
        return [key, `(${facts.join(", ")}) ${text}`];
      }),
    ),
  ]);
  return page("nodepool.yaml", 5, "configuration of Nodeyard", [
    ...heading("Description", [
      "The file is in YAML 1.1. %(NODEPOOL_NAME) is replaced by the environment variable of that name before the file is parsed.",
      ".B nodeyard \\-c FILE config\\-validate",
      "names every problem with its line.",
    ]),
    ...heading("Keys", body),
    ...heading("See also", ["nodeyard\\-config\\-validate(1)"]),
  ]);
}

function page(name: string, section: number, summary: string, body: readonly string[]): string {
  const first = `.TH ${text(name.toUpperCase())} ${section} "" "Nodeyard ${VERSION}" Nodeyard`;
  // Not spread over the whole width, which tears words apart on a terminal.
  const lines = [first, ".ad l", ...heading("Name", [`${text(name)} \\- ${text(summary)}`]), ...body];
  return `.\\" Generated from the text of --help.\n${lines.join("\n")}\n`;
}

/** Nothing for what has no lines. */
function heading(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`.SH ${title.toUpperCase()}`, ...lines];
}

function listed(entries: readonly (readonly string[])[]): string[] {
  return entries.flatMap(([term, meaning]) => [".TP", `.B ${text(term!)}`, text(meaning!)]);
}

/** As it stands, since its lines are examples and tables. */
function block(notes: string): string[] {
  return notes === "" ? [] : [".PP", ".nf", ...notes.split("\n").map(text), ".fi"];
}

const ESCAPES: Readonly<Record<string, string>> = {
  "\\": "\\e",
  "-": "\\-",
  "'": "\\(aq",
  "`": "\\(ga",
  "^": "\\(ha",
  "~": "\\(ti",
  '"': "\\(dq",
};

/** Words of a line that is no request of roff, which would begin with a dot. */
function text(words: string): string {
  return words.replaceAll(/[\\\-'`^~"]/g, (sign) => ESCAPES[sign]!).replace(/^(?=\.)/, "\\&");
}
