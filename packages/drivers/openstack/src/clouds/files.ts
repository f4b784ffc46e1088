import { CloudConfigError, isMapping, parseCloudFile, type ReadFile, textIn } from "@nodeyard/driver";
import { messageOf } from "@nodeyard/runtime";

/** A mapping in such a file. */
export type Mapping = Readonly<Record<string, unknown>>;

/** Where the cloud files are searched (openstacksdk manual, "Configuration files"). */
export interface CloudConfigPaths {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly home: string;
  readonly read: ReadFile;
}

/** The files, with the variables that name one directly. */
const FILES = {
  clouds: "OS_CLIENT_CONFIG_FILE",
  secure: "OS_CLIENT_SECURE_FILE",
  "clouds-public": "OS_CLIENT_VENDOR_FILE",
} as const;

/**
 * The mapping under `key` ("clouds", "public-clouds"); empty when the file does not exist. Only the first file that exists
 * counts: files of several folders are not merged. Throws CloudConfigError with the path.
 */
export function readMapping(
  file: keyof typeof FILES,
  key: string,
  { env, cwd, home, read }: CloudConfigPaths,
): { readonly path: string | null; readonly entries: Mapping } {
  const folders = [cwd, `${env.XDG_CONFIG_HOME || `${home}/.config`}/openstack`, "/etc/openstack"];
  const usual = folders.flatMap((folder) =>
    ["yaml", "yml", "json"].map((suffix) => `${folder}/${file}.${suffix}`),
  );
  for (const path of [env[FILES[file]] ?? "", ...usual]) {
    const content = path === "" ? undefined : textIn(path, read);
    if (content === undefined) continue;
    const document = parsed(path, content);
    const entries = isMapping(document) ? document[key] : undefined;
    return { path, entries: isMapping(entries) ? entries : {} };
  }
  return { path: null, entries: {} };
}

/** Its errors are of one line: those of YAML quote several lines of the file, which may hold secrets. */
function parsed(path: string, content: string): unknown {
  try {
    return parseCloudFile(content);
  } catch (error) {
    const [why] = messageOf(error).split("\n", 1);
    throw new CloudConfigError(`${path} is not valid YAML: ${why}`, { cause: error });
  }
}

/** Merges `over` into `base`: mappings key by key, other values by replacement. Dashes in keys become underscores. */
export function overlay(base: Mapping, over: Mapping): Mapping {
  const result: Record<string, unknown> = { ...normalized(base) };
  for (const [key, value] of Object.entries(normalized(over))) {
    const below = result[key];
    result[key] = isMapping(below) && isMapping(value) ? overlay(below, value) : value;
  }
  return result;
}

/** The text of a scalar; undefined for no value and for lists and mappings. */
export function text(value: unknown): string | undefined {
  if (typeof value === "string") return value === "" ? undefined : value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}

/** The scalars of a mapping as text; none for any other value. */
export function textsOf(value: unknown): Record<string, string> {
  const entries = isMapping(value) ? Object.entries(value) : [];
  return Object.fromEntries(
    entries.flatMap(([key, one]) => (text(one) === undefined ? [] : [[key, text(one)!]])),
  );
}

/** A boolean in the ways in which people write it, quoted or not. */
export function flag(value: unknown, missing: boolean): boolean {
  const word = text(value)?.toLowerCase();
  return word === undefined ? missing : !["false", "no", "off", "0", "none"].includes(word);
}

/** With underscores instead of dashes in all keys: both spellings are in use, and one file must be able to override another. */
function normalized(mapping: Mapping): Mapping {
  return Object.fromEntries(
    Object.entries(mapping).map(([key, value]) => [
      key.replaceAll("-", "_"),
      isMapping(value) ? normalized(value) : value,
    ]),
  );
}
