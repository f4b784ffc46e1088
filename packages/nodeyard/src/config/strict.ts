import type { Note } from "@nodeyard/driver";
import type { ZodType } from "zod";
import { issuesOf, type Path } from "./findings.ts";
import { resolveProvider } from "./providers.ts";
import type { Source } from "./source.ts";
import { top } from "./table.ts";
import type { DriverRegistry } from "./types.ts";

type Raw = Readonly<Record<string, unknown>>;

/**
 * The validator (docs/contract/config.md, "Validator and loader"), all problems at once. What is documented and works, though
 * Nodepool's validator rejects it, is a warning.
 */
export function judgeStrictly({ strict, findings }: Source, drivers: DriverRegistry): void {
  if (strict === undefined) return;
  const judge = (schema: ZodType, notes: readonly Note[], value: unknown, at: Path) => {
    const { error } = schema.safeParse(value);
    for (const { path, message } of error === undefined ? [] : issuesOf(error))
      findings.add("error", "schema", [...at, ...path], message);
    for (const { source, path, message } of notes) findings.add("warning", source, [...at, ...path], message);
  };
  judge(top.schema, top.notes(strict), strict, []);
  crossCheck(strict, findings);
  const providers = Array.isArray(strict.providers) ? strict.providers : [];
  providers.forEach((value, index) => {
    const resolved = resolveProvider(value, index, drivers, findings.file, {
      both: (path, message) => findings.add("error", "schema", path, message),
      load: () => {},
      warn: () => {},
    });
    if (resolved === undefined) return;
    const { raw, path, config } = resolved;
    judge(config.schema, config.notes(raw), raw, path);
  });
}

/** Names and parents of diskimages (docs/contract/config.md, "Cross checks"); the other checks belong to drivers. */
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
