import { appendFileSync, cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyNot } from "../../../../../testing/slivers/index.ts";
import { ELSEWHERE, ForeignSite, USERS } from "./foreign-site.ts";

const CONFIG = "/etc/nodeyard-sliver/sliverd.json";
const CURRENT = "/usr/lib/nodeyard-sliverd/current";
const BAD_SSHD = "/etc/ssh/sshd_config.d/00-not-ours.conf";

describe.skipIf(whyNot() !== undefined)("an enrolment that was cut off", () => {
  const site = new ForeignSite();
  const { machine, bundle, folder } = site;
  let files: readonly string[];
  let users: readonly string[];

  const changes = async (done: Promise<{ code: number | null; out: string; err: string }>) => {
    const { code, out, err } = await done;
    expect({ code, err }).toEqual({ code: 0, err: "" });
    return (JSON.parse(out) as { changes: readonly string[] }).changes;
  };
  const install = (...words: string[]) =>
    site.install("--json", "--node", "host-1", "--sliverd-config", site.sliverdConfig, ...words);
  const uninstall = () => site.host("uninstall", "--json", "--bundle", bundle);
  const daemon = () => machine.run("cat", "/run/nodeyard-sliverd.pid").trim();
  const isAsBefore = () => {
    expect(machine.changed().filter((path) => !ELSEWHERE.test(path) && !files.includes(path))).toEqual([]);
    expect(USERS.map((path) => machine.run("cat", path))).toEqual(users);
  };

  beforeAll(async () => {
    await site.start();
    files = machine.changed();
    users = USERS.map((path) => machine.run("cat", path));
    await site.prepare();
  });

  afterAll(() => site.stop());

  test("before its programs were there: what it had made is taken back all the same", async () => {
    const damaged = join(folder, "damaged");
    cpSync(bundle, damaged, { recursive: true });
    appendFileSync(join(damaged, "sliver-forward.mjs"), "\n");
    expect(await install("--bundle", damaged)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/sliver-forward.mjs of the bundle is damaged/),
    });
    expect(machine.run("cat", "/etc/passwd")).toContain("nodeyard-control:");
    expect(await changes(uninstall())).toContain("remove the user nodeyard-control");
    isAsBefore();
    expect((await uninstall()).out).toContain("it is not a sliver host");
  });

  test("before the daemon was started again: the next run makes that up, and the one after it nothing", async () => {
    await changes(install());
    const first = daemon();
    // As after a boot, so that sshd's configuration is looked at.
    machine.run("sh", "-c", `rm /run/nodeyard-sliverd.sshd; echo Nonsense > ${BAD_SSHD}`);
    const config = JSON.parse(readFileSync(site.sliverdConfig, "utf8")) as object;
    writeFileSync(site.sliverdConfig, JSON.stringify({ ...config, heartbeatSeconds: 11 }));
    expect(await install()).toMatchObject({
      code: 1,
      err: expect.stringMatching(/sshd refuses its configuration/),
    });
    machine.run("rm", BAD_SSHD);
    expect(machine.run("cat", CONFIG)).toContain('"heartbeatSeconds": 11');
    expect(daemon()).toBe(first);
    expect(await changes(install())).toEqual(["have sshd read its configuration again", "restart sliverd"]);
    expect(daemon()).not.toBe(first);
    expect(await changes(install())).toEqual([]);
  });

  test("without the daemon's file nothing is taken from its slivers; the refusal is one line with the remedy", async () => {
    const lines = async () => (await uninstall()).err.trim().split("\n");
    const running = daemon();
    machine.run("sh", "-c", `echo , >> ${CONFIG}`);
    expect(await lines()).toEqual([
      expect.stringMatching(/sliverd.json is not valid JSON, .*nothing was removed/),
    ]);
    machine.run("rm", CONFIG);
    expect(await lines()).toEqual([expect.stringMatching(/sliverd.json is not there, .*sliverd install/)]);
    expect(machine.run("ls", CURRENT)).toContain("sliver-enrol.mjs");
    machine.run("kill", "-0", running);
    // As it says there.
    expect(await changes(install())).toContain("restart sliverd");
  });

  test("damaged, and with a session of its user alive, it is taken back as a whole", async () => {
    machine.run(
      "sh",
      "-c",
      "setpriv --reuid nodeyard-control --clear-groups sleep 600 >/dev/null 2>&1 </dev/null &",
    );
    machine.run("rm", `${CURRENT}/sliver-enrol.mjs`);
    machine.run("sh", "-c", "echo , >> /etc/nodeyard-sliver/enrolled.json");
    const { code, out } = await uninstall();
    expect({ code, out }).toEqual({
      code: 0,
      out: expect.stringContaining("remove the user nodeyard-control"),
    });
    isAsBefore();
    expect((await uninstall()).out).toContain("it is not a sliver host");
  });
});
