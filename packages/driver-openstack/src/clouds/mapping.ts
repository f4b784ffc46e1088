import { messageOf } from "@nodeyard/runtime";
import { parse } from "yaml";
import { CloudConfigError } from "../client/index.ts";
import { type CloudConfigPaths, type CloudFile, firstFile } from "./search.ts";

export type Mapping = Readonly<Record<string, unknown>>;

/** A file's mapping under `key` ("clouds", "public-clouds"); empty when there is no such file. */
export function readMapping(
  file: CloudFile,
  key: string,
  around: CloudConfigPaths,
): { readonly path: string | null; readonly entries: Mapping } {
  const found = read(file, around);
  if (found === undefined) return { path: null, entries: {} };
  let document: unknown;
  try {
    document = parse(found.text);
  } catch (error) {
    throw new CloudConfigError(`${found.path} is not valid YAML: ${messageOf(error).split("\n", 1)[0]}`, {
      cause: error,
    });
  }
  const entries = isMapping(document) ? document[key] : undefined;
  return { path: found.path, entries: isMapping(entries) ? entries : {} };
}

function read(file: CloudFile, around: CloudConfigPaths) {
  try {
    return firstFile(file, around);
  } catch (error) {
    throw new CloudConfigError(`a ${file}.yaml cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

/** `over` laid upon `base`; mappings are merged key by key, anything else is replaced. Dashes in keys are underscores. */
export function overlay(base: Mapping, over: Mapping): Mapping {
  const result: Record<string, unknown> = { ...normalized(base) };
  for (const [key, value] of Object.entries(normalized(over))) {
    const below = result[key];
    result[key] = isMapping(below) && isMapping(value) ? overlay(below, value) : value;
  }
  return result;
}

export function isMapping(value: unknown): value is Mapping {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Text of a scalar; undefined for nothing and for what is no scalar. */
export function text(value: unknown): string | undefined {
  if (typeof value === "string") return value === "" ? undefined : value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}

/** True and false as people write them, quoted or not. */
export function flag(value: unknown, missing: boolean): boolean {
  if (typeof value === "boolean") return value;
  const word = text(value)?.toLowerCase();
  if (word === undefined) return missing;
  return !["false", "no", "off", "0", "none"].includes(word);
}

function normalized(mapping: Mapping): Mapping {
  return Object.fromEntries(
    Object.entries(mapping).map(([key, value]) => [
      key.replaceAll("-", "_"),
      isMapping(value) ? normalized(value) : value,
    ]),
  );
}
