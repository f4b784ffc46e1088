import { defaultConfig } from "@nodeyard/process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fakeConfig, Site } from "./nodeyard.ts";

describe("with a configuration that no launcher can load", () => {
  let site: Site;
  let address: string;
  beforeAll(async () => {
    site = new Site(fakeConfig({ labels: ["small"], minReady: 2 }));
    const up = site.start("-c", site.config, "up", "--listen", "127.0.0.1:0");
    await up.printed("Nodeyard is up");
    address = /"127\.0\.0\.1:(\d+)"/.exec(up.err)![1]!;
  });
  afterAll(() => site.close());

  const servers = () => `zookeeper-servers:\n# the only one\n- host: 127.0.0.1\n  port: ${address}\n`;
  const WARNING =
    /^nodeyard: \S+nodepool\.yaml:\d+:\d+: .*; no launcher can load the file, and this command needs only its tree\n/;

  test.each([
    ["pools that are no list", "providers: [{name: a, driver: static, pools: 5}]\n"],
    ["no YAML", "labels: [\nproviders: }\n"],
  ])("%s: commands of the tree work, with one line that says so", async (_, mistake) => {
    site.write(`${mistake}${servers()}`);
    const far = (...words: string[]) => site.run("-c", site.config, "--state", "/nonexistent", ...words);
    const ready = () => site.json<{ readonly id: string }[]>("list", "--state", "ready");
    await expect.poll(ready).toHaveLength(2);
    const [, spare] = (await ready()).map(({ id }) => id) as [string, string];
    const asked = await far("request", "small", "--wait", "--json");
    expect(asked.err).toMatch(WARNING);
    const { lease } = JSON.parse(asked.out) as { readonly lease: string };
    for (const words of [
      ["list"],
      ["explain", lease],
      ["release", lease],
      ["hold", spare, "--comment", "tried"],
    ]) {
      const { code, err } = await far(...words);
      expect([words, code, err.match(/no launcher can load/g)?.length]).toEqual([words, 0, 1]);
    }
    // By the state folder, too, where the file names no ZooKeeper.
    site.write(mistake);
    const near = await site.run("-c", site.config, "list");
    expect([near.code, near.err]).toEqual([0, expect.stringMatching(WARNING)]);
  });

  test.each([
    ["is wrong", "zookeeper-servers: 5\n", "zookeeper-servers: is 5"],
    ["stands in braces", "{zookeeper-servers: [{host: a}], providers: 5}\n", "providers"],
    ["is in no file", undefined, "name the configuration with -c FILE"],
  ])("where the address of the tree %s, one error says so", async (_, text, said) => {
    if (text !== undefined) site.write(text);
    const file = text === undefined ? `${site.config}.none` : site.config;
    const { code, out, err } = await site.run("-c", file, "list");
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(/^nodeyard: [^\n]*\n$/);
    expect(err).toContain(said);
  });
});

test("the first place that has a configuration counts, and the old one is found", () => {
  const [ours, nodepools] = ["/etc/nodeyard/nodepool.yaml", "/etc/nodepool/nodepool.yaml"];
  const found = (...there: readonly string[]) => defaultConfig((path) => there.includes(path));
  expect([found(), found(ours), found(nodepools), found(nodepools, ours)]).toEqual([
    ours,
    ours,
    nodepools,
    ours,
  ]);
});
