import { isMapping, type Note, type PathKind } from "@nodeyard/driver";
import type { ZodType } from "zod";
import { issuesOf, type Path } from "./findings.ts";
import { DEFAULT_DRIVER, resolveProvider } from "./providers.ts";
import { checkReferences, labelsIn, namesIn } from "./references.ts";
import type { Source } from "./source.ts";
import { top } from "./table.ts";
import type { DriverRegistry } from "./types.ts";

type Raw = Readonly<Record<string, unknown>>;

/** A provider with a name, and whether this installation has its driver. */
export interface JudgedProvider {
  readonly name: string;
  readonly driver: string;
  readonly isServed: boolean;
  /** Names that its pools give. */
  readonly labels: readonly string[];
}

/** Returns what is wrong with a path of this machine, as the end of a sentence; undefined: nothing. Throws nothing. */
export type LookAt = (kind: PathKind, path: string) => string | undefined;

/**
 * The validator (docs/contract/config.md, "Validator and loader"); reports all problems at once. Documented, working settings
 * that Nodepool's validator rejects are warnings. Without `lookAt` the files that the configuration names are not checked.
 * Returns the providers that have a name; none for a file that cannot be parsed.
 */
export function judgeStrictly(
  { strict, findings }: Source,
  drivers: DriverRegistry,
  { lookAt, migration = false }: { readonly lookAt?: LookAt | undefined; readonly migration?: boolean } = {},
): readonly JudgedProvider[] {
  if (strict === undefined) return [];
  // Schema and notes are made of one table, which the loader reads, too (docs/design/configuration-tables.md).
  const judge = (schema: ZodType, notes: readonly Note[], value: unknown, at: Path) => {
    const { error } = schema.safeParse(value);
    for (const { path, message } of error === undefined ? [] : issuesOf(error))
      findings.add("error", "schema", [...at, ...path], message);
    for (const { source, path, message } of notes) {
      if (source === "schema" || source === "effect" || source === "difference") {
        if (source !== "difference" || migration) findings.add("warning", source, [...at, ...path], message);
        continue;
      }
      if (source === "value") {
        findings.add("error", "load", [...at, ...path], message);
        continue;
      }
      const problem = lookAt?.(source, message);
      if (problem !== undefined)
        findings.add("error", "machine", [...at, ...path], `names ${message}, which ${problem}`);
    }
  };
  judge(top.schema, top.notes(strict), strict, []);
  crossCheck(strict, findings);
  const names = namesIn(strict);
  const providers = Array.isArray(strict.providers) ? strict.providers : [];
  return providers.flatMap((value: unknown, index): readonly JudgedProvider[] => {
    const resolved = resolveProvider(value, index, drivers, findings.file, {
      both: (path, message) => findings.add("error", "schema", path, message),
      load: () => {},
      warn: () => {},
    });
    if (resolved === undefined) {
      const { name, driver } = isMapping(value) ? value : {};
      if (!isMapping(value) || typeof name !== "string") return [];
      return [
        {
          name,
          driver: typeof driver === "string" ? driver : "unknown",
          isServed: false,
          labels: labelsIn(value),
        },
      ];
    }
    const { raw, path, driver, config } = resolved;
    const isServed = "load" in config;
    // Differences here are of no interest for a provider that stays where it is.
    judge(
      config.schema,
      config.notes(raw).filter((note) => isServed || note.source !== "difference"),
      raw,
      path,
    );
    // The driver's own loader does it elsewhere; Nodepool's validator knows the references of its first driver only.
    const source = driver === DEFAULT_DRIVER ? "schema" : "load";
    if (source === "schema" || !isServed) checkReferences(raw, path, names, source, findings);
    return [{ name: resolved.name, driver, isServed, labels: labelsIn(raw) }];
  });
}

/** Names and parents of diskimages (docs/contract/config.md, "Cross checks"), which a schema cannot compare. */
function crossCheck(strict: Raw, findings: Source["findings"]): void {
  const images = Array.isArray(strict.diskimages) ? (strict.diskimages as readonly (Raw | null)[]) : [];
  const names = new Set<unknown>();
  images.forEach((image, index) => {
    const name = image?.name;
    if (typeof name !== "string") return;
    if (names.has(name)) {
      findings.add(
        "error",
        "schema",
        ["diskimages", index, "name"],
        `repeats diskimage ${name}; rename or remove one`,
      );
    }
    names.add(name);
  });
  images.forEach((image, index) => {
    const parent = image?.parent;
    if (typeof parent !== "string" || names.has(parent)) return;
    const of = typeof image?.name === "string" ? ` of ${image.name}` : "";
    const message = `names parent ${parent}${of}, which does not exist; add it, or remove the key`;
    findings.add("error", "schema", ["diskimages", index, "parent"], message);
  });
}
