import { beforeAll, describe, expect, test } from "vitest";
import { requireZooKeeper, startKazoo } from "../../../../testing/zookeeper/index.ts";
import type { ZooKeeper } from "../src/index.ts";
import { client, freshPath, serverHere } from "./support.ts";

const WATCHER = `
zk = client(args[0]); path = args[1]
def told(event):
    say([event.type, event.path])
zk.get(path, watch=told)
zk.get_children(path, watch=told)
zk.exists(path + "/new", watch=told)
say("watching")
hear()
data, stat = zk.get(path + "/seq-0000000001")
say([data.decode(), stat.version, stat.ephemeralOwner, zk.get_children(path), stat.mtime])
hear()
`;

describe.skipIf(requireZooKeeper())("beside kazoo", () => {
  const server = serverHere();
  let zk: ZooKeeper;

  beforeAll(async () => {
    zk = await client(server);
  });

  test("kazoo's watches fire for our writes, and it reads what we wrote as we do", async () => {
    const path = await freshPath(zk);
    const watcher = startKazoo(WATCHER, [`127.0.0.1:${server.port}`, path]);
    expect(await watcher.hear()).toBe("watching");
    await zk.set(path, Buffer.from("x"));
    expect(await watcher.hear()).toEqual(["CHANGED", path]);
    const told: unknown[] = [];
    await zk.create(`${path}/new`);
    told.push(await watcher.hear(), await watcher.hear());
    expect(told).toContainEqual(["CREATED", `${path}/new`]);
    expect(told).toContainEqual(["CHILD", path]);
    const made = await zk.create(`${path}/seq-`, Buffer.from("ünder"), { sequential: true, ephemeral: true });
    expect(made.path).toBe(`${path}/seq-0000000001`);
    const [data, version, owner, children, mtime] = (await watcher.ask("read")) as unknown[];
    expect([data, version]).toEqual(["ünder", 0]);
    // kazoo's JSON carries the owner as a number that JavaScript cannot hold exactly.
    expect(Number(owner)).toBe(Number(zk.session.id));
    expect(children).toEqual(expect.arrayContaining(["new", "seq-0000000001"]));
    expect(mtime).toBe(made.stat.mtime);
    await watcher.kill();
  });
});
