/** Where the cloud files are looked for (openstacksdk manual, "Configuration files"). */
export interface CloudConfigPaths {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly home: string;
  /** Text of a file; undefined when there is none. Throws when it may not be read. */
  read(path: string): string | undefined;
}

export type CloudFile = "clouds" | "secure" | "clouds-public";

const OVERRIDES: Readonly<Record<CloudFile, string>> = {
  clouds: "OS_CLIENT_CONFIG_FILE",
  secure: "OS_CLIENT_SECURE_FILE",
  "clouds-public": "OS_CLIENT_VENDOR_FILE",
};

/** Paths in the order in which they are tried; the first that exists counts. */
export function candidates(file: CloudFile, { env, cwd, home }: CloudConfigPaths): readonly string[] {
  const folders = [cwd, `${env.XDG_CONFIG_HOME || `${home}/.config`}/openstack`, "/etc/openstack"];
  const named = env[OVERRIDES[file]];
  const paths = folders.flatMap((folder) =>
    ["yaml", "yml", "json"].map((suffix) => `${folder}/${file}.${suffix}`),
  );
  return named === undefined || named === "" ? paths : [named, ...paths];
}

/** The first file there is. */
export function firstFile(
  file: CloudFile,
  around: CloudConfigPaths,
): { readonly path: string; readonly text: string } | undefined {
  for (const path of candidates(file, around)) {
    const text = around.read(path);
    if (text !== undefined) return { path, text };
  }
  return undefined;
}
