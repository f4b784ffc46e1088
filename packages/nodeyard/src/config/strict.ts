import { closed } from "@nodeyard/driver";
import type { ZodType } from "zod";
import { issuesOf, matches, type Path } from "./findings.ts";
import { commonKeys, ownKeys, resolveProvider } from "./providers.ts";
import { honoured, providerKeys, topSchema } from "./schema/top.ts";
import type { Source } from "./source.ts";
import type { DriverRegistry } from "./types.ts";

type Raw = Readonly<Record<string, unknown>>;

const commonSchema = closed(providerKeys, ["name"]);

/**
 * The validator (docs/contract/config.md, "Validator and loader"), all problems at once. What is documented and works, though
 * Nodepool's validator rejects it, is a warning.
 */
export function judgeStrictly({ strict, findings }: Source, drivers: DriverRegistry): void {
  if (strict === undefined) return;
  const judge = (schema: ZodType, value: unknown, at: Path, known: readonly string[]) => {
    const result = schema.safeParse(value);
    if (result.success) return;
    for (const { path, message } of issuesOf(result.error)) {
      const whole = [...at, ...path];
      if (matches(known, path))
        findings.add("warning", "schema", whole, "is not in the old schema, but has effect");
      else findings.add("error", "schema", whole, message);
    }
  };
  judge(topSchema, tolerated(strict, findings), [], []);
  const shellTypes = strict.diskimages;
  if (Array.isArray(shellTypes)) reportHonoured(shellTypes, findings);
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
    judge(commonSchema, commonKeys(raw, providerKeys), path, []);
    judge(config.schema, ownKeys(raw, providerKeys), path, config.honoured ?? []);
    for (const { source, path: of, message } of config.notes?.(raw) ?? [])
      findings.add("warning", source, [...path, ...of], message);
    for (const key of config.withoutEffect ?? []) {
      if (key in raw) findings.add("warning", "effect", [...path, key], "has no effect; remove it");
    }
  });
}

/** An integer timeout works; only the old validator wants a decimal point. */
function tolerated(strict: Raw, findings: Source["findings"]): Raw {
  if (typeof strict["zookeeper-timeout"] !== "number") return strict;
  const message = "is accepted; the old validator wants a decimal point, as in 10.0";
  findings.add("warning", "schema", ["zookeeper-timeout"], message);
  return Object.fromEntries(Object.entries(strict).filter(([key]) => key !== "zookeeper-timeout"));
}

function reportHonoured(diskimages: readonly unknown[], findings: Source["findings"]): void {
  diskimages.forEach((image, index) => {
    const path = ["diskimages", index, "shell-type"];
    if (typeof image === "object" && image !== null && "shell-type" in image && matches(honoured, path)) {
      findings.add("warning", "schema", path, "is accepted; the old validator does not know it");
    }
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
