import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fakeConfig, Site } from "../cli/nodeyard.ts";

interface Granted {
  readonly lease: string;
  readonly nodes: readonly { readonly id: string }[];
}
interface ListedNode {
  readonly id: string;
  readonly state: string;
}

let site: Site;
beforeEach(() => {
  site = new Site("");
  site.write(fakeConfig({ journal: `${site.folder}/cloud.journal` }));
});
afterEach(() => site.close());

describe("the life of a process", () => {
  test.each(["SIGTERM", "SIGINT"] as const)("%s ends it in good order with 0", async (signal) => {
    const up = await site.up();
    const { code, err } = await up.kill(signal);
    expect(code).toBe(0);
    expect(err).toMatch(new RegExp(`"signal":"${signal}".*stopping.*\n.*"message":"stopped"`));
  });

  test("a second signal ends it at once with 1", async () => {
    // The stop waits for this launch, which takes a minute.
    site.write(fakeConfig({ latency: "{create: 60000}" }));
    const up = await site.up();
    const asking = site.start("request", "small", "--wait");
    await asking.told("building");
    up.child.kill("SIGTERM");
    await up.told("stopping;");
    const { code, err } = await up.kill("SIGTERM");
    expect(code).toBe(1);
    expect(err).toContain("stopping at once, because a second signal came");
  });

  test("kill -9: leases and nodes are there again after a restart, and can be given back", async () => {
    const first = await site.up();
    const granted = await site.json<Granted>("request", "small", "large", "--wait");
    await first.kill("SIGKILL");
    const second = await site.up();
    expect(await site.json("list", "--leases")).toMatchObject([
      { id: granted.lease, state: "granted", nodes: granted.nodes.map(({ id }) => id) },
    ]);
    const nodes = await site.json<ListedNode[]>("list");
    expect(nodes.map(({ id, state }) => [id, state])).toEqual(
      granted.nodes.map(({ id }) => [id, "in-use"]).sort(),
    );
    expect((await site.run("release", granted.lease)).code).toBe(0);
    await second.told("ended a lease");
  });

  test("a second one on the same state folder is refused, and the first goes on", async () => {
    const first = await site.up();
    const { code, err } = await site.run("-c", site.config, "up");
    expect(code).toBe(1);
    expect(err).toMatch(new RegExp(`nodeyard: .*${first.child.pid}`));
    expect((await site.run("list")).code).toBe(0);
  });

  test("a changed configuration is taken up without a restart; a broken one is not", async () => {
    const up = await site.up();
    site.write("not: [valid");
    await up.told("the former one stays in force");
    const still = await site.json<Granted>("request", "small", "--wait");
    site.write(
      fakeConfig({ labels: ["small", "large", "brand-new"], journal: `${site.folder}/cloud.journal` }),
    );
    await up.told("the configuration changed");
    const fresh = await site.json<Granted>("request", "brand-new", "--wait");
    expect(fresh.nodes).toHaveLength(1);
    expect((await site.run("release", still.lease, fresh.lease)).code).toBe(0);
  });
});
