import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fakeConfig, type Granted, Site } from "../../cli/test/nodeyard.ts";

const LABEL = "{name: small, cloud-image: debian, min-ram: 1024}";

let site: Site;
beforeAll(async () => {
  site = new Site("");
  const check = join(site.folder, "check");
  writeFileSync(
    check,
    `#!/bin/sh\necho "$NODEYARD_NODE" >> ${site.folder}/checked\ntest ! -e ${site.folder}/bad\n`,
  );
  chmodSync(check, 0o755);
  const again = LABEL.replace("}", `, host-key-checking: false, reuse: {check: ${check}, times: 9}}`);
  writeFileSync(site.config, fakeConfig().replace(LABEL, again));
  await site.up();
});
afterAll(() => site.close());

const checked = () => readFileSync(join(site.folder, "checked"), "utf8").trim().split("\n");

/** A node that was asked for and given back. */
async function used(): Promise<string> {
  const { lease, nodes } = await site.json<Granted>("request", "small", "--wait");
  expect((await site.run("release", lease)).code).toBe(0);
  return nodes[0]!.id;
}

/** Waits until the node says what is next for it, or is gone. */
async function says(node: string, next: RegExp): Promise<void> {
  for (;;) {
    const { code, out } = await site.run("explain", "node", node);
    if (code !== 0 || next.test(out)) return;
  }
}

test("a node is used again by its user once the real program has found it good, and not when it has not", async () => {
  const first = await used();
  await says(first, /It is free: the next request of tenant/);
  expect(checked()).toEqual([first]);
  expect(await used()).toBe(first);
  await says(first, /It is free/);
  writeFileSync(join(site.folder, "bad"), "");
  const second = await site.json<Granted>("request", "small", "--wait");
  expect(second.nodes[0]!.id).toBe(first);
  await site.run("release", second.lease);
  await says(first, /did not pass its check/);
  expect(checked()).toEqual([first, first, first]);
  expect(await used()).not.toBe(first);
});
