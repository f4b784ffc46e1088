import { DEAD_LETTERS, deadLetterPath, encodeDeadLetter } from "@nodeyard/model";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { openEmbeddedTree } from "@nodeyard/tree";
import { afterEach, beforeEach, expect, test } from "vitest";
import { fakeConfig, Site } from "./nodeyard.ts";

interface Listed {
  readonly id: string;
  readonly state: string;
  readonly dead_letter?: boolean;
}

let site: Site;
const config = (faults: string) =>
  fakeConfig({ labels: ["small"], journal: `${site.folder}/cloud` }).replace(
    "latency: {}",
    `latency: {}\n      faults: ${faults}`,
  );
beforeEach(() => {
  site = new Site("");
  site.write(config("{delete-fails: 1000000}"));
});
afterEach(() => site.close());

test("delete --now has a node that did not go tried at once, as if for the first time", async () => {
  const first = await site.up();
  const { lease, nodes } = await site.json<{ lease: string; nodes: { id: string }[] }>(
    "request",
    "small",
    "--wait",
  );
  const { id } = nodes[0]!;
  expect((await site.run("release", lease)).code).toBe(0);
  await first.told("an attempt to delete a node failed");
  await first.kill("SIGTERM");
  await mark(id);

  const second = await site.up();
  // Marked: the next try is half an hour away.
  await second.told("a node cannot be deleted");
  site.write(config("{}"));
  await second.told("the configuration changed");
  expect(await listed()).toMatchObject([{ id, state: "deleting" }]);
  const { code, err } = await site.run("delete", id, "--now", "--json");
  expect([code, err]).toEqual([0, ""]);
  while ((await listed()).length > 0);
}, 120_000);

/** As after ten tries, which take minutes. */
async function mark(node: string): Promise<void> {
  const tree = await openEmbeddedTree({ folder: site.state, clock: systemClock, random: systemRandom });
  const letter = { node, provider: "fake-cloud", attempts: 10, since: Date.now(), error: "scripted" };
  if ((await tree.stat(DEAD_LETTERS)) === undefined) await tree.create(DEAD_LETTERS);
  await tree.create(deadLetterPath(node), encodeDeadLetter(letter));
  await tree.close();
}

function listed(): Promise<readonly Listed[]> {
  return site.json<Listed[]>("list", "--detail");
}
