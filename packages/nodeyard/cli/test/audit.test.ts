import { hostname, userInfo } from "node:os";
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
