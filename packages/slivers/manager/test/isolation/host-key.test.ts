import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSshPrivateKey } from "../../src/isolation/lxc/inner-files.ts";

describe("host keys", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "nodeyard-host-key-"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  // Comments of all lengths of a block, so that each length of padding comes up.
  test.each(Array.from({ length: 8 }, (_, at) => "ny-12345".slice(0, at + 1)))(
    "OpenSSH reads what is written, and signs with it: comment %s",
    (comment) => {
      const { d, x } = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
      const [seed, publicKey] = [d, x].map((value) => Buffer.from(value!, "base64url"));
      const file = join(folder, comment);
      writeFileSync(file, openSshPrivateKey(seed!, publicKey!, comment), { mode: 0o600 });
      const shown = execFileSync("ssh-keygen", ["-y", "-f", file], { encoding: "utf8" }).trim();
      const [type, blob, said] = shown.split(" ");
      expect([type, said]).toEqual(["ssh-ed25519", comment]);
      expect(Buffer.from(blob!, "base64").subarray(-32)).toEqual(publicKey);
      writeFileSync(`${file}.text`, "text");
      execFileSync("ssh-keygen", ["-q", "-Y", "sign", "-f", file, "-n", "test", `${file}.text`], {
        stdio: "ignore",
      });
      const check = ["-Y", "check-novalidate", "-n", "test", "-s", `${file}.text.sig`];
      const checked = execFileSync("ssh-keygen", check, { input: "text", encoding: "utf8" });
      expect(checked).toContain("Good");
    },
  );
});
