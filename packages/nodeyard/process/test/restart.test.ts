import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { explanationSchema } from "../../../pool/operations/test/explanation-schema.ts";
import { fakeConfig, type Granted, Site } from "../../cli/test/nodeyard.ts";

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

describe("killed and started again", () => {
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
    await second.printed("lease.ended");
  });

  test("estimates rest on what the process before saw", async () => {
    const first = await site.up();
    const granted = await site.json<Granted>("request", "small:3", "--wait");
    const seen = async () => {
      const { pools } = explanationSchema.parse(await site.json<unknown>("explain", "label", "small"));
      return pools.map(({ estimate }) => estimate?.launches ?? 0);
    };
    expect(await seen()).toEqual([3]);
    await first.kill("SIGTERM");
    await site.up();
    await expect.poll(seen).toEqual([3]);
    await site.run("release", granted.lease);
  });

  test("a waiting client survives the restart of the server", async () => {
    const first = await site.up();
    const holder = await site.json<Granted>("request", "small:5", "--wait");
    const waiting = site.start("request", "small", "--wait");
    await waiting.printed("waiting for a pool");
    await first.kill("SIGKILL");
    await waiting.printed("connection  is lost");
    await site.up();
    await site.run("release", holder.lease);
    expect((await waiting.ended).code).toBe(0);
  });

  test("Ctrl-C while the server is gone ends, and says when the lease does", async () => {
    const first = await site.up();
    await site.json<Granted>("request", "small:5", "--wait");
    const behind = site.start("request", "small:5", "--wait");
    await behind.printed("waiting for a pool");
    await first.kill("SIGKILL");
    await behind.printed("connection  is lost");
    const { code, err } = await behind.kill("SIGINT");
    expect(code).toBe(1);
    expect(err).toMatch(
      /\ncannot release lease [0-9a-f]{12} \(no answer within 3 s\): it expires at \S+; to release it: nodeyard release [0-9a-f]{12}\nnodeyard: stopped waiting: SIGINT\n$/,
    );
  });

  test("a second one on the same state folder is refused, and the first goes on", async () => {
    const first = await site.up();
    const { code, err } = await site.run("-c", site.config, "up");
    expect(code).toBe(1);
    expect(err).toMatch(new RegExp(`nodeyard: .*${first.child.pid}`));
    expect((await site.run("list")).code).toBe(0);
  });
});
