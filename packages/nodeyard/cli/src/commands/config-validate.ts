import { join } from "node:path";
import {
  type ConfigInput,
  type Finding,
  formatFinding,
  loadConfig,
  pathProblem,
  readConfig,
  type ValidationResult,
  validateConfig,
  withProviders,
} from "@nodeyard/config";
import { type MoveSurvey, migrationReport, surveyMove } from "@nodeyard/legacy";
import { plain } from "@nodeyard/operations/listing";
import {
  anyDriver,
  Drivers,
  defaultConfig,
  fileExists,
  loadModule,
  makeStateFolder,
  writePrivate,
} from "@nodeyard/process";
import { counted, messageOf } from "@nodeyard/runtime";
import type { Command } from "commander";
import { CommandError, CommandFailed } from "../errors.ts";
import { printJson } from "../listing.ts";
import { type Session, withTree } from "../session.ts";

/** The old command's logger: scripts look for it. */
const LOGGER = "nodepool.cmd.config_validator";

interface ValidateOptions {
  readonly strict?: boolean;
  /** False: --no-files. */
  readonly files: boolean;
  readonly json?: boolean;
  readonly migration?: boolean;
  /** False: --no-tree. */
  readonly tree: boolean;
  /** Folder for the two files of `--split`. */
  readonly split?: string;
}

/** `nodeyard config-validate`: exit code 0 or 1, so that it can stand in the gates of Nodepool's command. */
export function defineConfigValidate(command: Command, session: Session): void {
  command
    .option(
      "--strict",
      "also fail for keys without effect, and for files and drivers that this machine lacks",
    )
    .option(
      "--no-files",
      "with --strict, on a machine that is not the launcher's: look for none of those files",
    )
    .option(
      "--migration",
      "a report on stdout for a move from Nodepool: what can move, what differs, and what happens to everything in the tree",
    )
    .option("--no-tree", "with --migration: do not read the tree")
    .option(
      "--split <folder>",
      "for a move step by step, write nodeyard.yaml with the providers that can move, and nodepool.yaml with the others, to this folder",
    )
    .option("--json", "an object on stdout: the verdict, findings, providers and lost labels")
    .action((options: ValidateOptions) => validate(session, options));
}

/**
 * Contacts nothing but the tree for `--migration`, and does not read the secure file, like the old command (docs/contract/config.md,
 * "Running config-validate"). Rejects with CommandFailed when the file is not valid: the findings are printed by then.
 */
async function validate(
  session: Session,
  { strict = false, files, json = false, migration = false, tree, split }: ValidateOptions,
): Promise<void> {
  const { io, machine, options } = session;
  const path = options().config ?? defaultConfig();
  const say = (level: string, text: string) =>
    io.err(`${timestamp(machine.clock.now())} ${level} ${LOGGER}: ${plain(text)}\n`);
  say("INFO", `validating ${path}`);
  const read = await readConfig({ path }, { env: machine.env, drivers: new Drivers(loadModule) });
  // A file that cannot be read at all is one finding, so that its report has the same form as any other.
  const result: ValidationResult =
    "unreadable" in read
      ? {
          exitCode: 1,
          findings: [read.unreadable],
          isLoadable: false,
          providers: [],
          differences: [],
          lostLabels: [],
        }
      : validateConfig({
          ...read.input,
          strict,
          migration,
          lookAt: strict && files ? pathProblem : undefined,
        });
  say(result.exitCode === 0 ? "INFO" : "ERROR", verdictOf(result));
  for (const kind of KINDS)
    for (const finding of result.findings.filter((one) => kindOf(one) === kind))
      say(LEVELS[kind], `${kind === "hint" ? "hint: " : ""}${formatFinding(finding)}`);
  for (const line of summaryOf(result)) say("INFO", line);
  const survey = migration && tree && "input" in read ? await surveyOf(session, read.input, result) : null;
  if (json) printJson(io, { ...jsonOf(path, result), ...treeJson(survey) });
  else if (migration && !("unreadable" in read)) io.out(migrationReport(path, result, survey));
  // Only a valid file is split: its parts would have the same errors, at other lines.
  if (result.exitCode !== 0) throw new CommandFailed(result.exitCode);
  if (split === undefined || !("input" in read)) return;
  for (const written of splitInto(split, read.input, result)) say("INFO", `wrote ${written}`);
}

/** What a launcher with this file would find in the tree, or why the tree was not read. Never rejects: the rest of the report stands without it. */
async function surveyOf(
  session: Session,
  input: ConfigInput,
  { exitCode, providers }: ValidationResult,
): Promise<MoveSurvey | string> {
  if (exitCode !== 0) return "the file is not valid";
  // Without the drivers that are missing here the file could not be loaded, and the report is most wanted then.
  const drivers = anyDriver();
  const { config } = loadConfig({ ...input, drivers });
  if (config === undefined) return "no launcher can load the file";
  // Of all providers, those that this installation could serve: the others stay with Nodepool, and their nodes are left alone.
  const installed = new Set(providers.flatMap(({ name, isServed }) => (isServed ? [name] : [])));
  try {
    return await withTree(session, (handles) => surveyMove(handles, config, installed), { drivers });
  } catch (error) {
    return messageOf(error);
  }
}

/** No keys at all without `--migration`. Where the tree was not read, `tree` is null and `tree_problem` says why. */
function treeJson(survey: MoveSurvey | string | null): object {
  if (survey === null) return {};
  return typeof survey === "string" ? { tree: null, tree_problem: survey } : { tree: survey };
}

/** Returns the files that it wrote. Never overwrites one, because it may be the configuration itself. Throws CommandError. */
function splitInto(folder: string, input: ConfigInput, { providers }: ValidationResult): readonly string[] {
  if (new Set(providers.map(({ isServed }) => isServed)).size < 2)
    throw new CommandError(
      "cli.split_needless",
      `there is nothing to split in ${input.path}: ${providers[0]?.isServed === true ? "all" : "none"} of its providers can move`,
    );
  const parts = [true, false].map((isServed) => ({
    path: join(folder, isServed ? "nodeyard.yaml" : "nodepool.yaml"),
    text: withProviders(input, (index) => providers[index]?.isServed === isServed),
  }));
  // Both are looked for before one is written: half a split would be worse than none.
  const taken = parts.find(({ path }) => fileExists(path));
  if (taken !== undefined)
    throw new CommandError(
      "cli.split_taken",
      `${taken.path} is there already; name another folder with --split`,
    );
  // Undefined: the text cannot be cut by whole lines, as in flow style or with an anchor that the other part needs.
  const texts = parts.map(({ text }) => text);
  if (texts.includes(undefined))
    throw new CommandError(
      "cli.split_impossible",
      `cannot split ${input.path} by its lines; write providers as a list with dashes, without aliases from one to another`,
    );
  makeStateFolder(folder);
  for (const { path, text } of parts) writePrivate(path, text!);
  return parts.map(({ path }) => path);
}

/** Kinds of findings, worst first. A hint is of what changes nothing, such as a key without effect. */
const KINDS = ["error", "warning", "hint"] as const;
type Kind = (typeof KINDS)[number];
const LEVELS: Readonly<Record<Kind, string>> = { error: "ERROR", warning: "WARNING", hint: "INFO" };

function kindOf({ severity, source }: Finding): Kind {
  return severity === "warning" && source === "effect" ? "hint" : severity;
}

/** Lines after the findings: what can be served here, and what cannot. */
function summaryOf({ providers, lostLabels }: ValidationResult): string[] {
  const list = (isServed: boolean) =>
    providers.flatMap(({ name, driver, ...of }) => (of.isServed === isServed ? [`${name} (${driver})`] : []));
  const [served, unserved] = [list(true), list(false)];
  return [
    ...(served.length > 0 ? [`providers with an installed driver: ${served.join(", ")}`] : []),
    ...(unserved.length > 0 ? [`providers whose driver is not installed: ${unserved.join(", ")}`] : []),
    ...(lostLabels.length > 0 ? [`labels that only those offer: ${lostLabels.join(", ")}`] : []),
  ];
}

/** The first line, for people: what the exit code says, whether a launcher can load the file, and what follows. */
function verdictOf({ exitCode, findings, isLoadable, providers }: ValidationResult): string {
  const lacksDrivers = providers.some(({ isServed }) => !isServed);
  const loads = isLoadable
    ? "a launcher loads it"
    : exitCode === 0 && lacksDrivers
      ? "only a launcher that has all of its drivers loads it"
      : "no launcher can load it";
  const counts = KINDS.map((kind) => counted(count(findings, kind), kind)).join(", ");
  return `${exitCode === 0 ? "valid" : "not valid"}: ${loads}; ${counts}`;
}

/** Keys are never renamed. File, severity and source of differences are left out: all have the same. */
function jsonOf(file: string, result: ValidationResult) {
  const { exitCode, findings, isLoadable, providers, differences, lostLabels } = result;
  return {
    file,
    valid: exitCode === 0,
    loadable: isLoadable,
    errors: count(findings, "error"),
    warnings: count(findings, "warning"),
    hints: count(findings, "hint"),
    providers: providers.map(({ isServed, ...provider }) => ({ ...provider, installed: isServed })),
    lost_labels: lostLabels,
    findings,
    differences: differences.map(({ file: _, severity: _severity, source: _source, ...place }) => place),
  };
}

function count(findings: readonly Finding[], kind: Kind): number {
  return findings.filter((finding) => kindOf(finding) === kind).length;
}

/** Local time as Python's logging writes it: `2026-01-31 10:00:00,123`. */
function timestamp(ms: number): string {
  const at = new Date(ms);
  const two = (value: number) => String(value).padStart(2, "0");
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return `${date} ${time},${String(at.getMilliseconds()).padStart(3, "0")}`;
}
