import { hostname, userInfo } from "node:os";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { attachEmbeddedTree } from "@nodeyard/tree";
import { afterAll, beforeAll, expect, test } from "vitest";
import { askJson } from "../../../faces/api/test/rig.ts";
import { fakeConfig, Site } from "./nodeyard.ts";

let site: Site;
beforeAll(async () => {
  site = new Site(fakeConfig({ labels: ["small"], minReady: 1 }));
  await site.up();
});
afterAll(() => site.close());

test("the audit shows what the command line did, refused changes included, beside what REST v1 did", async () => {
  const ready = () => site.json<{ readonly id: string }[]>("list", "--state", "ready");
  await expect.poll(ready).toHaveLength(1);
  const node = (await ready())[0]!.id;
  const hold = await site.run("hold", node, "--comment", "disk errors");
  const again = await site.run("delete", "9999999999");
  const made = await site.run("token", "create", "ci", "--role", "operator");
  expect([hold.code, again.code, made.code]).toEqual([0, 1, 0]);
  const { items } = await askJson<{ items: object[] }>(`unix:${site.state}/http.sock`, "/v1/audit");
  const who = `cli:${userInfo().username}@${hostname()}`;
  expect(items).toMatchObject([
    { who, action: "hold_node", subject: node, why: "disk errors", status: 200 },
    { who, action: "delete_node", subject: "9999999999", why: null, status: 409 },
    { who, action: "create_token", subject: "", status: 200 },
  ]);
});

test("what was changed is no error because its note was refused: a script would do it twice", async () => {
  const tree = await attachEmbeddedTree({ folder: site.state, clock: systemClock, random: systemRandom });
  try {
    for (const name of await tree.children("/nodeyard/audit")) await tree.delete(`/nodeyard/audit/${name}`);
    await tree.delete("/nodeyard/audit");
    // It takes no children.
    await tree.create("/nodeyard/audit", Buffer.alloc(0), { ephemeral: true });
    const { code, out, err } = await site.run("token", "create", "second", "--role", "viewer");
    expect([code, out]).toEqual([0, expect.stringMatching(/\S/)]);
    expect(err).toContain("nodeyard: the audit lacks create_token, since the tree did not take its note: ");
  } finally {
    await tree.close();
  }
});
