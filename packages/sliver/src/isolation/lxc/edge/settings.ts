import { chown, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { SliverConfig } from "../../../core/index.ts";
import { writeAtomic } from "../../edge/atomic.ts";
import { run } from "../../edge/run.ts";
import { exists } from "../../storage/edge/pool.ts";
import { authorizedKeys, HOST_KEY, initScript, sshdConfig } from "../inner-files.ts";
import type { Mark } from "../mark.ts";
import type { Names } from "../names.ts";
import { makeEtc } from "./root-files.ts";

/** A host key of its own: one that two slivers share tells nobody which of them answers. */
export async function makeSecrets(etc: string, names: Names, signal: AbortSignal): Promise<void> {
  await makeEtc(etc, names);
  const key = join(etc, HOST_KEY);
  if (await exists(`${key}.pub`)) return;
  await run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", names.user, "-f", key], { signal });
  for (const file of [key, `${key}.pub`]) await chown(file, names.idBase, names.idBase);
}

/** What is read anew at each login and each start. */
export async function writeSettings(
  etc: string,
  root: Mark["root"],
  names: Names,
  { enabled, keys, initscript }: SliverConfig,
): Promise<void> {
  const logins = root === "account" ? [names.user] : [names.user, "root"];
  const files: readonly (readonly [string, string])[] = [
    ["authorized_keys", enabled ? authorizedKeys(keys) : ""],
    ["sshd_config", sshdConfig(logins)],
    ["init", initScript(names.user)],
    ["initscript", initscript],
  ];
  for (const [name, text] of files) {
    const path = join(etc, name);
    if ((await readFile(path, "utf8").catch(() => undefined)) === text) continue;
    await writeAtomic(path, text, { mode: 0o644, owner: names.idBase });
  }
}
