import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { artemis } from "@nodeyard/connect-artemis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Sshd, startSshd } from "../../sshd/index.ts";
import { hostConfig } from "../host-config.ts";
import { guestConfig, requireTmt, TmtTree } from "../tmt.ts";
import { type Opened, Yard } from "../yard.ts";

describe.skipIf(requireTmt())("the real tmt", () => {
  let sshd: Sshd;
  let yard: Yard;
  let served: Opened;
  let tree: TmtTree;
  let key: string;
  beforeAll(async () => {
    tree = new TmtTree(execFileSync("mktemp", ["-d"], { encoding: "utf8" }).trim());
    key = join(tree.folder, "key");
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
    sshd = await startSshd({
      authorizedKey: readFileSync(`${key}.pub`, "utf8").trim(),
      config: guestConfig(tree.folder),
    });
    yard = await Yard.open(hostConfig(sshd, "fedora"));
    const rules = [{ label: "fedora", arch: "x86_64", compose: "Fedora-*", hardware: { memory: "4 GB" } }];
    served = await yard.connector(artemis, { rules });
  });
  afterAll(async () => {
    await yard?.close();
    await sshd?.stop();
    execFileSync("rm", ["-rf", tree.folder]);
  });

  const provision = (more: object = {}) => ({
    how: "artemis",
    "api-url": served.url,
    image: "Fedora-42",
    hardware: { memory: ">= 2 GB" },
    user: userInfo().username,
    port: sshd.port,
    key,
    "provision-tick": 1,
    ...more,
  });
  const leases = async () =>
    (await yard.pool.call("list_leases", { query: { "job.system": "artemis", state: "waiting,granted" } }))
      .items;

  test("provisions a node by a rule, prepares it, runs a test on it and deletes it", async () => {
    const { code, said } = await tree.run(provision(), 'echo here; test -n "$SSH_CONNECTION"').ended;
    expect(code, said).toBe(0);
    for (const text of ["state: ready", "guest: has been removed", "total: 1 test passed"])
      expect(said).toContain(text);
    // The name that tmt prints leads to the node, also when it is over.
    const guest = /guestname: (\S+)/.exec(said)![1]!;
    expect((await yard.site.run("explain", guest)).out).toContain("fedora");
    await expect.poll(leases).toEqual([]);
  });

  test("ends with what is wrong when no rule fits", async () => {
    const { code, said } = await tree.run(provision({ image: "CentOS-10" }), "true").ended;
    expect(code).toBe(2);
    expect(said.replace(/\s+/g, " ")).toContain(
      "no rule of this connector fits arch x86_64, compose CentOS-10",
    );
    expect(await leases()).toEqual([]);
  });

  test("deletes its guest when SIGTERM ends it", async () => {
    const started = join(tree.folder, "started");
    const run = tree.run(provision(), `touch ${started}; sleep 600`);
    await expect.poll(() => existsSync(started)).toBe(true);
    expect((await leases()).length).toBe(1);
    run.kill("SIGTERM");
    const { code, said } = await run.ended;
    expect(code).not.toBe(0);
    expect(said).toContain("guest: has been removed");
    await expect.poll(leases).toEqual([]);
  });
});
