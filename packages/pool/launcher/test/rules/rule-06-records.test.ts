import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { before } from "./before-write.ts";
import { fakeProvider, launcherConfig, World } from "./world.ts";

const REQUEST = '{"state": "requested", "node_types": ["small"]}';
/** Texts that are no record of any kind, or none that may be acted upon. */
const NONSENSE = [
  "nonsense",
  "[]",
  "null",
  "7",
  '"text"',
  '{"state": "bogus"}',
  '{"state": {}}',
  "{",
  "\u0000\ufffd",
];

const KINDS: Readonly<
  Record<string, { readonly path: (at: number) => string; readonly odd: readonly string[] }>
> = {
  request: {
    path: (at) => paths.request(`100-000000050${at}`),
    odd: [
      ...NONSENSE,
      '{"node_types": ["small"]}',
      '{"state": "requested", "node_types": {"small": 1}}',
      '{"state": "requested", "node_types": 7}',
      '{"state": "requested", "node_types": [1, null, {}]}',
    ],
  },
  node: {
    path: (at) => paths.node(`000000050${at}`),
    odd: [
      ...NONSENSE,
      '{"state": "ready", "provider": 7, "pool": "main", "type": ["small"]}',
      '{"state": "ready", "provider": "cloud", "pool": "main", "type": ["small"], "allocated_to": 5}',
    ].slice(1),
  },
  component: {
    path: (at) => `/nodepool/components/pool/odd000000000${at}`,
    odd: ["nonsense", "[]", "null", "7"],
  },
  lease: { path: (at) => `/nodeyard/leases/odd${at}`, odd: ["nonsense", '{"v": 99}', '{"v": 1}', "[]"] },
};

describe("rule 6: a record that makes no sense", () => {
  for (const [kind, { path, odd }] of Object.entries(KINDS)) {
    for (const when of ["before the launcher starts", "while it runs"]) {
      test(`is skipped, counted, logged, and stops nothing else: ${kind}, ${when}`, async () => {
        const world = new World();
        await world.folder(paths.requests);
        const spoil = async () => {
          for (const [at, text] of odd.entries()) await world.put(path(at), text);
        };
        if (when.startsWith("before")) await spoil();
        const { counters, log, launcher } = await world.start("a", launcherConfig([fakeProvider()]));
        if (when.startsWith("while")) await spoil();
        const fine = await world.ask();
        const { nodes } = await world.fulfilled(fine);
        await world.use(fine);
        await world.until(
          "the good node went its way",
          () => world.node((nodes as string[])[0]!) === undefined,
        );
        await world.run(130_000);
        expect(counters.value("view.records_skipped", { kind })).toBeGreaterThanOrEqual(odd.length);
        for (const at of odd.keys()) {
          const said = log.lines.filter(
            ({ level, facts }) =>
              level === "warn" &&
              JSON.stringify(facts).includes(path(at).slice(path(at).lastIndexOf("/") + 1)),
          );
          expect(said.length, `${kind} ${odd[at]}`).toBeGreaterThan(0);
          expect(said.length, `${kind} ${odd[at]}`).toBeLessThan(5);
          expect(world.text(path(at)), "it is left as it is").toBe(odd[at]);
        }
        expect(launcher.view.complete).toBe(true);
        expect(counters.value("launcher.unexpected")).toBe(0);
      });
    }
  }

  test("an empty node path that gets data as it is removed stays", async () => {
    const world = new World();
    const path = paths.node("0000000500");
    await world.put(path, "");
    const removes = before(
      world,
      ({ ops }) => ops.some((op) => op.op === "delete" && op.path === path),
      () => void world.other.set(path, Buffer.from("nonsense")),
    );
    await world.start("a", launcherConfig([fakeProvider()]));
    await world.until("it is removed", removes, 130_000);
    await world.run(1_000);
    expect(world.text(path)).toBe("nonsense");
  });

  test("a request that becomes readable is served, and one that becomes unreadable is not", async () => {
    const world = new World();
    await world.folder(paths.requests);
    await world.put(paths.request("100-0000000500"), "nonsense");
    await world.start("a", launcherConfig([fakeProvider("cloud", {}, { "max-servers": 1 })]));
    await world.put(paths.request("100-0000000500"), REQUEST);
    await world.fulfilled("100-0000000500");
    const waiting = await world.ask();
    await world.run(1_000);
    await world.put(paths.request(waiting), "nonsense");
    await world.use("100-0000000500");
    await world.run(10_000);
    expect(world.text(paths.request(waiting))).toBe("nonsense");
    await world.fulfilled(await world.ask());
  });

  test("a request whose name is none stops nothing else, and is left as it is", async () => {
    const world = new World();
    await world.folder(paths.requests);
    const names = ["nodash0000000001", "1-0-0000000001", "nodash", "a-b-c"];
    for (const name of names) await world.put(paths.request(name), REQUEST);
    const { counters } = await world.start("a", launcherConfig([fakeProvider()]));
    await world.fulfilled(await world.ask());
    await world.run(10_000);
    for (const name of names) expect(world.text(paths.request(name))).toBe(REQUEST);
    expect(counters.value("launcher.unexpected")).toBe(0);
  });
});
