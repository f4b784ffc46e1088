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
  await first.printed("an attempt to delete a node failed");
  await first.kill("SIGTERM");
  await mark(id);

  const second = await site.up();
  // Marked: the next try is half an hour away.
  await second.printed("a node cannot be deleted");
  site.write(config("{}"));
  await second.printed("the configuration changed");
  expect(await listed()).toMatchObject([{ id, state: "deleting" }]);
  expect(await site.run("delete", id, "--now", "--json")).toMatchObject({ code: 0, err: "", out: "[]\n" });
  expect(await listed()).toEqual([]);
});

test("delete --now waits no longer than --timeout; what a launcher still deletes is not erased, and given up alone", async () => {
  site.write(config("{delete-fails: 1000000}").replace("min-ready: 0", "min-ready: 1"));
  const up = await site.up();
  const ready = async () => (await listed()).find(({ state }) => state === "ready");
  await expect.poll(ready).toBeDefined();
  const { id } = (await ready())!;
  const ended = await site.run("delete", id, "--now", "--timeout", "1s");
  expect([ended.code, ended.out]).toEqual([124, ""]);
  expect(ended.err).toContain(
    `nodeyard: node ${id} is not gone after 1 s (--timeout); "nodeyard explain ${id}"`,
  );
  const served = await site.run("delete", id, "--forget");
  expect([served.code, served.err]).toMatchObject([1, expect.stringContaining("would lose its machine")]);
  site.write("labels: []\nproviders: []\n");
  await up.printed("the configuration changed");
  await up.printed("a provider left the configuration with nodes");
  // Said within a second, and read by the commands that follow.
  await expect
    .poll(async () => (await site.run("list", "--providers")).out)
    .toContain("do not stop this launcher");
  expect((await site.run("delete", id, "--now", "--timeout", "1s")).code).toBe(124);
  const erased = await site.run("erase", "fake-cloud");
  expect([erased.code, erased.err]).toMatchObject([1, expect.stringContaining("still deletes its nodes")]);
  const forgotten = await site.run("delete", id, "--forget", "--json");
  expect([forgotten.code, forgotten.out]).toEqual([0, "[]\n"]);
  expect(forgotten.err).toMatch(
    /WARNING: the record of node \d+ is gone. Machine .+ of provider fake-cloud, in .+ may run on/,
  );
});

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
