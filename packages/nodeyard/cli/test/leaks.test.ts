import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { fakeConfig, Site } from "./nodeyard.ts";

interface Row {
  readonly provider: string;
  readonly kind: string;
  readonly id: string;
  readonly node: string;
  readonly action: string;
}

let site: Site;
let machines: string;
beforeEach(async () => {
  site = new Site("");
  machines = join(site.folder, "machines");
  site.write(fakeConfig({ labels: ["kept"], minReady: 1, journal: machines }));
});
afterEach(() => site.close());

test("shows what is without a record, what is another's, and which node has no machine; and changes nothing", async () => {
  await site.up();
  for (;;) {
    const nodes = await site.json<{ state: string; locked: string }[]>("list");
    if (nodes[0]?.state === "ready" && nodes[0].locked === "unlocked") break;
  }
  const first = readFileSync(machines, "utf8")
    .split("\n")
    .find((line) => line !== "");
  const made = JSON.parse(first ?? "") as { server: { id: string; tag: { nodeId: string } } };
  expect(await site.json<Row[]>("-c", site.config, "leaks")).toEqual([]);
  const add = (id: string, tag: object) =>
    appendFileSync(machines, `${JSON.stringify({ ...made, server: { ...made.server, id, tag } })}\n`);
  const { tag } = made.server;
  add("lost", { ...tag, nodeId: "0000099999" });
  add("theirs", { ...tag, nodeId: "0000099998", installation: "another" });
  appendFileSync(
    machines,
    `${JSON.stringify({ op: "delete", at: 1, id: made.server.id, keepsRecord: false })}\n`,
  );
  const rows = await site.json<Row[]>("-c", site.config, "leaks", "--provider", "fake-cloud");
  expect(rows.map(({ kind, id, node, action }) => [kind, id, node, action])).toEqual([
    ["leaked", "lost", "0000099999", "delete"],
    ["foreign", "theirs", "0000099998", "keep"],
    ["vanished", made.server.id, tag.nodeId, "take-out"],
  ]);
  const table = await site.run("-c", site.config, "leaks");
  expect(table.code).toBe(0);
  expect(table.out).toContain("A Sweep Would");
  const unknown = await site.run("-c", site.config, "leaks", "--provider", "nobody");
  expect([unknown.code, unknown.out]).toEqual([1, ""]);
  expect(unknown.err).toContain("it has: fake-cloud");
});
