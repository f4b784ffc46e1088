import { existsSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fakeConfig, type Granted, Running, Site } from "../../cli/test/nodeyard.ts";

/** A driver that is not to be opened. */
const STUCK = `
  import { driverConfig } from "@nodeyard/driver";
  export const stuck = {
    name: "stuck",
    contract: 1,
    capabilities: { launches: true, inventory: false, probes: false, tags: true },
    config: { ...driverConfig("stuck", {}, () => undefined), load: ({ name, pools }) => ({ name, driver: "./stuck.ts", pools: [], own: {} }) },
    open: (config, { log }) => {
      log.info({}, "opens and never answers");
      return new Promise(() => {});
    },
  };`;

let site: Site;
beforeEach(() => {
  site = new Site("");
  site.write(fakeConfig({ journal: `${site.folder}/cloud.journal` }));
});
afterEach(() => site.close());

describe("the life of a process", () => {
  test.each(["SIGTERM", "SIGINT", "SIGUSR1"] as const)("%s ends it in good order with 0", async (signal) => {
    const up = await site.up();
    const { code, err } = await up.kill(signal);
    expect(code).toBe(0);
    expect(err).toMatch(new RegExp(`"signal":"${signal}".*stopping.*"message":"stopped"`, "s"));
  });

  test("a launcher that waits for its ZooKeeper is stopped in good order, too", async () => {
    site.write(`zookeeper-servers: [{host: 127.0.0.1, port: 1}]\n${fakeConfig()}`);
    const launcher = site.start("-c", site.config, "launcher", "--webapp", "127.0.0.1:0");
    await launcher.printed("no ZooKeeper answers");
    expect(existsSync(`${site.state}/http.sock`)).toBe(true);
    const { code, err } = await launcher.kill("SIGTERM");
    expect(code).toBe(0);
    expect(err).toMatch(/"signal":"SIGTERM".*stopping.*"message":"stopped"\}\n$/s);
    expect(existsSync(`${site.state}/http.sock`)).toBe(false);
  });

  test("a cloud that does not answer at the start does not hold up the stop", async () => {
    writeFileSync(`${site.folder}/stuck.ts`, STUCK);
    site.write(`${fakeConfig()}  - {name: desk, driver: ./stuck.ts}\n`);
    const up = site.start("-c", site.config, "up");
    await up.printed("opens and never answers");
    const { code, err } = await up.kill("SIGTERM");
    expect(code).toBe(0);
    expect(err).not.toContain("Nodeyard is up");
    expect(existsSync(`${site.state}/http.sock`)).toBe(false);
  });

  test("a second signal ends it at once with 1", async () => {
    // The stop waits for this launch, which takes a minute.
    site.write(fakeConfig({ latency: "{create: 60000}" }));
    const up = await site.up();
    const asking = site.start("request", "small", "--wait");
    await asking.printed("building");
    up.child.kill("SIGTERM");
    await up.printed("stopping;");
    // The same one would be taken for an echo.
    const { code, err } = await up.kill("SIGINT");
    expect(code).toBe(1);
    expect(err).toContain("exiting now: second signal");
  });

  test("SIGUSR2 dumps the work in progress, and ends no process", async () => {
    const up = await site.up();
    // Together more than the pool holds: one of them waits.
    await Promise.all([site.run("request", "large:5"), site.run("request", "small:5")]);
    up.child.kill("SIGUSR2");
    await up.printed("dump: begins");
    await up.printed("nodeyard.stack_dump");
    await up.printed("dump: a request");
    expect((await site.run("list")).code).toBe(0);
  });

  test("a changed configuration is taken up without a restart; a broken one is not", async () => {
    const up = await site.up();
    site.write("not: [valid");
    await up.printed("the former one stays in force");
    const still = await site.json<Granted>("request", "small", "--wait");
    const labels = ["small", "large", "brand-new"];
    const changed = fakeConfig({ labels, journal: `${site.folder}/cloud.journal` });
    site.write(`${changed}\nlog-level: {driver: debug, tree: debug}\n`);
    await up.printed("the configuration changed");
    const fresh = await site.json<Granted>("request", "brand-new", "--wait");
    await up.printed('"provider":"fake-cloud","call":"create","result":"ok"');
    await up.printed('"write":"commit"');

    expect(fresh.nodes).toHaveLength(1);
    expect((await site.run("release", still.lease, fresh.lease)).code).toBe(0);
  });

  test("SIGHUP reads the configuration at once, also when its stamp is the same, and stops nothing", async () => {
    const up = await site.up();
    site.write("not: [valid");
    await up.printed("the former one stays in force");
    const before = up.err.length;
    up.child.kill("SIGHUP");
    await expect.poll(() => up.err.slice(before)).toContain("the former one stays in force");
    expect(up.err.slice(before)).toContain('"signal":"SIGHUP"');
    // The log says that the error is over, and what a reload came to that changed nothing.
    site.write(fakeConfig({ journal: `${site.folder}/cloud.journal` }));
    await up.printed("the configuration can be used again, and is the one in force");
    up.child.kill("SIGHUP");
    await up.printed("the configuration did not change");
    expect((await site.run("list")).code).toBe(0);
  });

  test("nodes that cannot be printed are returned, unless they are to be kept", async () => {
    await site.up();
    const words = ["--state", site.state, "request", "small", "--wait", "--json"];
    const full = ["sh", "-c", 'exec "$@" > /dev/full', "sh"];
    const { code, err } = await new Running(words, {}, full).ended;
    expect(code).toBe(1);
    expect(err).toMatch(/released \w+\nnodeyard: cannot print the nodes of lease \w+: ENOSPC/);
    const kept = await new Running([...words, "--keep"], {}, full).ended;
    expect(kept.err).not.toContain("released");
    const leases = await site.json<{ state: string }[]>("list", "--leases");
    expect(leases.filter(({ state }) => state === "granted")).toHaveLength(1);
  });

  test("a reload does not wait for a cloud that the one before it opens, nor does the end", async () => {
    const up = await site.up();
    writeFileSync(`${site.folder}/stuck.ts`, STUCK);
    const journal = `${site.folder}/cloud.journal`;
    // Opening may take a minute.
    const stuck = "  - {name: desk, driver: ./stuck.ts}\n";
    site.write(fakeConfig({ journal }) + stuck);
    await up.printed("opens and never answers");
    site.write(fakeConfig({ labels: ["small", "large", "brand-new"], journal }) + stuck);
    await up.printed("brand-new");
    const fresh = await site.json<Granted>("request", "brand-new", "--wait");
    expect(fresh.nodes).toHaveLength(1);
    const { code } = await up.kill("SIGTERM");
    expect(code).toBe(0);
  });
});
