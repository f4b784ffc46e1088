import { afterEach, beforeEach, expect, test } from "vitest";
import { fakeConfig, type Granted, Site } from "./nodeyard.ts";

interface ListedNode {
  readonly id: string;
  readonly state: string;
}

let site: Site;
beforeEach(async () => {
  site = new Site(fakeConfig({ labels: ["kept"], minReady: 1 }));
  await site.up();
});
afterEach(() => site.close());

test("a node in use can be neither held nor deleted", async () => {
  const { nodes, lease } = await site.json<Granted>("request", "kept", "--wait");
  const busy = await site.run("hold", nodes[0]!.id);
  expect([busy.code, busy.out]).toEqual([1, ""]);
  expect(busy.err).toMatch(/^nodeyard: node \d{10} is locked by someone else for more than 5 s: /);
  expect(busy.err).toContain(`"nodeyard explain ${nodes[0]!.id}" says who has it`);
  await site.run("release", lease);
});

test("no such node", async () => {
  const unknown = await site.run("delete", "999");
  expect([unknown.code, unknown.err]).toEqual([
    1,
    'nodeyard: there is no node 0000000999; see "nodeyard list"\n',
  ]);
});

test("a held node goes to no request until it is deleted", async () => {
  const asked = await site.json<Granted>("request", "kept", "--wait");
  // The next one that is kept ready; the one in use is locked.
  const [spare] = await ready();
  const id = String(Number(spare!.id));
  const held = await site.json<ListedNode[]>("hold", id, "--comment", "look at it", "--for", "1h");
  expect(held).toMatchObject([{ id: spare!.id, state: "hold" }]);
  const detail = await site.json<(ListedNode & { comment: string })[]>("list", "--detail");
  expect(detail.find(({ id }) => id === spare!.id)?.comment).toBe("look at it");
  const other = await site.json<Granted>("request", "kept", "--wait");
  expect(other.nodes[0]!.id).not.toBe(spare!.id);

  const deleted = await site.run("delete", spare!.id);
  expect(deleted.code).toBe(0);
  expect(deleted.out).toMatch(/^\+-/);
  // Twice in one command is once.
  const both = [asked.lease, other.lease];
  expect(await site.json("release", ...both, ...both)).toEqual(
    both.map((lease) => ({ lease, outcome: "released" })),
  );
  for (;;) if (!(await site.json<ListedNode[]>("list")).some(({ id }) => id === spare!.id)) break;
});

async function ready(): Promise<readonly ListedNode[]> {
  for (;;) {
    const found = (await site.json<ListedNode[]>("list")).filter(({ state }) => state === "ready");
    if (found.length > 0) return found;
  }
}
