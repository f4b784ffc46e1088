import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Site } from "../../../packages/nodeyard/cli/test/nodeyard.ts";
import { follow } from "../../../packages/nodeyard/cli/test/pages/guide.ts";
import { type Sshd, startSshd } from "../../sshd/index.ts";
import { freePort } from "../../zookeeper/index.ts";
import { BOSKOS_FOLDER, requireBoskos } from "../boskos-real.ts";
import { hostConfig } from "../host-config.ts";
import { guestConfig, RUN, requireTmt, tmtProgram } from "../tmt.ts";

const PATH = process.env.PATH ?? "";

describe.skipIf(requireTmt() ?? requireBoskos())("from nothing to the first job:", () => {
  let folder: string;
  let site: Site;
  let sshd: Sshd;
  let key: string;
  const ports: Record<string, string> = {};
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "nodeyard-connect-"));
    key = join(folder, "tmt-key");
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
    sshd = await startSshd({ config: guestConfig(folder) });
    // The page makes a key of this name itself.
    writeFileSync(join(sshd.folder, "authorized_keys"), readFileSync(`${key}.pub`));
    for (const port of ["8001", "8005", "8080"]) ports[`127.0.0.1:${port}`] = `127.0.0.1:${await freePort()}`;
    process.env.PATH = [BOSKOS_FOLDER, dirname(tmtProgram()), PATH].join(delimiter);
  });
  afterEach(async () => {
    process.env.PATH = PATH;
    await site.close();
    await sshd.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** A pool of one host, where the page's user has it. */
  const open = async (label: string) => {
    site = new Site(hostConfig(sshd, label));
    const where = ["--webapp", ports["127.0.0.1:8005"]!];
    const up = site.start("--state", join(folder, ".nobody"), "-c", site.config, "up", ...where);
    await up.printed("Nodeyard is up");
  };
  const ours = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, ports[name]!]));

  test("serve-boskos.md", async () => {
    await open("ubuntu-noble");
    const names = { "ssh -o User": `ssh -i ${key} -o User`, "make check": "uname -s" };
    await follow("serve-boskos.md", { ...ours("127.0.0.1:8005", "127.0.0.1:8080"), ...names }, folder);
    expect((await site.run("--state", join(folder, ".nobody"), "list", "--leases")).out).not.toContain(
      "job-17",
    );
  });

  test("serve-tmt.md", async () => {
    await open("fedora-42");
    const user = { "user: fedora": `user: ${userInfo().username}`, "port: 22": `port: ${sshd.port}` };
    const made = { 'ssh-keygen -q -t ed25519 -N "" -f tmt-key': "true" };
    const scripts = {
      "tmt --root": `TMT_SCRIPTS_DIR=${folder}/scripts tmt --root`,
      "$PWD/run": `$PWD/${RUN}`,
    };
    const names = { ...ours("127.0.0.1:8005", "127.0.0.1:8001"), ...user, ...made, ...scripts };
    await follow("serve-tmt.md", names, folder);
  });
});
