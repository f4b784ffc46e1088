import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { fakeConfig, Site } from "./nodeyard.ts";

let site: Site;
beforeEach(() => {
  site = new Site("");
  site.write(fakeConfig({ journal: `${site.folder}/cloud` }));
});
afterEach(() => site.close());

const leases = async () => (await site.json<{ id: string }[]>("list", "--leases")).map(({ id }) => id);

test("a process without its HTTP socket is not asked, and the way out is named", async () => {
  const up = site.start("-c", site.config, "up", "--no-webapp");
  await up.printed("Nodeyard is up");
  const refused = await site.run("backup", join(site.folder, "none"));
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("run it without --no-webapp")]);
});

test("a tree is backed up while it is used and while it is not, and restored only where nothing is lost", async () => {
  const [live, cold] = [join(site.folder, "live"), join(site.folder, "cold")];
  const none = await site.run("backup", live);
  expect([none.code, none.err]).toEqual([1, expect.stringContaining("holds no tree")]);
  const up = await site.up();
  const { lease } = await site.json<{ lease: string }>("request", "small", "--wait");
  expect(await site.json("backup", live)).toEqual({ path: live, state_folder: site.state });
  expect(statSync(live).mode & 0o777).toBe(0o600);
  const { lease: later } = await site.json<{ lease: string }>("request", "large", "--wait");
  const busy = await site.run("restore", live, "--force");
  expect([busy.code, busy.out]).toEqual([1, ""]);
  expect(busy.err).toContain(`in use by process ${up.child.pid}`);
  await up.kill("SIGKILL");

  expect((await site.run("backup", cold)).code).toBe(0);
  const there = await site.run("restore", live);
  expect([there.code, there.out]).toEqual([1, ""]);
  expect(there.err).toContain("holds a tree already");
  expect((await site.run("restore", live, "--force")).code).toBe(0);
  const again = await site.up();
  expect(await leases()).toEqual([lease]);
  await again.kill("SIGTERM");

  const broken = join(site.folder, "broken");
  writeFileSync(broken, "no tree");
  const refused = await site.run("restore", broken, "--force");
  expect([refused.code, refused.out]).toEqual([1, ""]);
  expect(refused.err).toBe(
    `nodeyard: ${broken} is no backup of a tree, or is damaged; name a file that "nodeyard backup" wrote\n`,
  );
  const absent = await site.run("restore", join(site.folder, "absent"), "--force");
  expect([absent.code, absent.err]).toEqual([
    1,
    expect.stringMatching(/there is no file \S+absent: name one/),
  ]);
  // What was there is there still.
  const still = await site.up();
  expect(await leases()).toEqual([lease]);
  await still.kill("SIGTERM");
  expect((await site.run("restore", cold, "--force")).code).toBe(0);
  await site.up();
  expect((await leases()).sort()).toEqual([lease, later].sort());
});
