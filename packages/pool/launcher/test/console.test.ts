import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { consoleTail } from "../src/nodes/console.ts";
import { withMethods } from "./rules/with-methods.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

const label = { name: "small", "cloud-image": "image", "flavor-name": "Fake Flavor" };
const provider = (consoleLog: boolean) =>
  fakeProvider(
    "cloud",
    { "launch-timeout": 60, "launch-retries": 2 },
    { labels: [{ ...label, "console-log": consoleLog }] },
  );

describe("the console of a machine that does not come up", () => {
  test("is kept in log and journal, once for each try, before the machine is removed", async () => {
    const world = new World();
    world.cloud.faults.neverActive = 2;
    const { log, journal } = await world.start("a", launcherConfig([provider(true)]));
    const id = await world.ask();
    await world.until("it failed", () => world.request(id)?.state === "failed", 300_000);
    const kept = journal.events.filter(({ event }) => event === "node.console");
    expect(kept.map(({ facts }) => facts.attempt)).toEqual([1, 2]);
    for (const { node, facts } of kept) {
      expect(facts.request).toBe(id);
      expect(facts.lines).toEqual([
        `Booting np${node}`,
        expect.stringMatching(/^machine-id /),
        "Waiting for the network",
      ]);
    }
    expect(log.lines.filter(({ text, level }) => text === "console" && level === "info")).toHaveLength(6);
    await world.until(
      "nothing is left",
      () => world.nodes().length === 0 && world.cloud.inspect().length === 0,
    );
  });

  test("is asked for only where the label says so, and what cannot be read stops nothing", async () => {
    const world = new World();
    world.cloud.faults.neverActive = 1;
    const { journal } = await world.start("a", launcherConfig([provider(false)]));
    await world.fulfilled(await world.ask(), 300_000);
    expect(journal.events.filter(({ event }) => event === "node.console")).toEqual([]);

    const other = new World();
    other.cloud.faults.neverActive = 1;
    const silent = await other.start("a", launcherConfig([provider(true)]), {
      wrap: withMethods(() => ({ offers: { console: { read: () => new Promise(() => {}) } } })),
    });
    await other.fulfilled(await other.ask(), 300_000);
    expect(silent.log.lines.map(({ text }) => text)).toContain("cannot read the console of a node");
  });

  test("is cut to its end, and holds nothing that a terminal obeys", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 500 }), fc.nat(200), (piece, times) => {
        const text = Array.from({ length: times }, () => piece).join("\r\n");
        const { lines, cut } = consoleTail(text);
        expect(lines.length).toBeLessThanOrEqual(200);
        expect(lines.join("").length).toBeLessThanOrEqual(16_384);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
        for (const line of lines) expect(line).not.toMatch(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/);
        if (text.length > 16_384) expect(cut).toBe(true);
      }),
    );
    const { lines, cut } = consoleTail(`${"x\n".repeat(500)}\u001b[31mlast\u001b[0m`);
    expect(lines.at(-1)).toBe("last");
    expect(cut).toBe(true);
  });
});
