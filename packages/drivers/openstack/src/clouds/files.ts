import { CloudConfigError, parseCloudFile } from "@nodeyard/driver";
import { messageOf } from "@nodeyard/runtime";

/** A mapping in such a file. */
export type Mapping = Readonly<Record<string, unknown>>;

/** Where the cloud files are searched (openstacksdk manual, "Configuration files"). */
export interface CloudConfigPaths {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly home: string;
  /** Text of a file; undefined when it does not exist. Throws when it cannot be read. */
  read(path: string): string | undefined;
}

type CloudFile = "clouds" | "secure" | "clouds-public";

/** Variables that name a file directly. */
const OVERRIDES: Readonly<Record<CloudFile, string>> = {
  clouds: "OS_CLIENT_CONFIG_FILE",
  secure: "OS_CLIENT_SECURE_FILE",
  "clouds-public": "OS_CLIENT_VENDOR_FILE",
};

/** Paths in the order in which they are tried; the first existing file is used. */
function candidates(file: CloudFile, { env, cwd, home }: CloudConfigPaths): readonly string[] {
  const folders = [cwd, `${env.XDG_CONFIG_HOME || `${home}/.config`}/openstack`, "/etc/openstack"];
  const named = env[OVERRIDES[file]];
  const paths = folders.flatMap((folder) =>
    ["yaml", "yml", "json"].map((suffix) => `${folder}/${file}.${suffix}`),
  );
  return named === undefined || named === "" ? paths : [named, ...paths];
}

/**
 * The mapping under `key` ("clouds", "public-clouds"); empty when the file does not exist. Only the first file that exists
 * counts: files of several folders are not merged. Throws CloudConfigError with the path.
 */
export function readMapping(
  file: CloudFile,
  key: string,
  around: CloudConfigPaths,
): { readonly path: string | null; readonly entries: Mapping } {
  for (const path of candidates(file, around)) {
    const content = attempt(`${path} cannot be read`, () => around.read(path));
    if (content === undefined) continue;
    const document: unknown = attempt(`${path} is not valid YAML`, () => parseCloudFile(content));
    const entries = isMapping(document) ? document[key] : undefined;
    return { path, entries: isMapping(entries) ? entries : {} };
  }
  return { path: null, entries: {} };
}

/** Runs `work`; its error becomes a CloudConfigError of one line: YAML errors quote several lines of the file, which may hold secrets. */
function attempt<T>(what: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new CloudConfigError(`${what}: ${messageOf(error).split("\n", 1)[0]}`, { cause: error });
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

export function isMapping(value: unknown): value is Mapping {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The text of a scalar; undefined for no value and for lists and mappings. */
export function text(value: unknown): string | undefined {
  if (typeof value === "string") return value === "" ? undefined : value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}

/** A boolean in the ways in which people write it, quoted or not. */
export function flag(value: unknown, missing: boolean): boolean {
  if (typeof value === "boolean") return value;
  const word = text(value)?.toLowerCase();
  if (word === undefined) return missing;
  return !["false", "no", "off", "0", "none"].includes(word);
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
