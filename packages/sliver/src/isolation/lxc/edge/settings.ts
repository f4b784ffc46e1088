import { generateKeyPairSync } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { SliverConfig } from "../../../core/index.ts";
import { writeAtomic } from "../../edge/atomic.ts";
import { together } from "../../edge/together.ts";
import { exists } from "../../storage/edge/pool.ts";
import { openSshPrivateKey } from "../host-key.ts";
import { authorizedKeys, HOST_KEY, initScript, sshdConfig } from "../inner-files.ts";
import type { Mark } from "../mark.ts";
import type { Names } from "../names.ts";
import { makeEtc } from "./root-files.ts";

/** A host key of its own: one that two slivers share tells nobody which of them answers. */
export async function makeSecrets(etc: string, names: Names): Promise<void> {
  await makeEtc(etc, names);
  const file = join(etc, HOST_KEY);
  if (await exists(file)) return;
  const { d, x } = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
  const [seed, publicKey] = [d, x].map((value) => Buffer.from(value!, "base64url"));
  await writeAtomic(file, openSshPrivateKey(seed!, publicKey!, names.user), {
    mode: 0o600,
    owner: names.idBase,
  });
}

/** What is read anew at each login and each start. It is written before each start, so that it need not be durable. */
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
  await together(
    ...files.map(async ([name, text]) => {
      const path = join(etc, name);
      if ((await readFile(path, "utf8").catch(() => undefined)) === text) return;
      await writeAtomic(path, text, { mode: 0o644, owner: names.idBase, durable: false });
    }),
  );
}
