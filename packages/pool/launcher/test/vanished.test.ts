import type { Resource } from "@nodeyard/driver";
import { decodeNode, paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { survey, surveyLeft, vanished } from "../src/providers/survey.ts";
import { withMethods } from "./rules/with-methods.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

const OURS = "6a1f6d1e-0f5e-4a62-9d51-6f3f0d8f5b01";
const ASKED = 1_000_000;

function entry(id: string, fields: object = {}, contenders: readonly string[] = []) {
  const base = {
    state: "ready",
    state_time: 1,
    provider: "cloud",
    pool: "main",
    type: ["small"],
    external_id: id,
  };
  const data = Buffer.from(JSON.stringify({ ...base, ...fields }));
  return { id, record: decodeNode(id, data), version: 0, contenders };
}

function machine(nodeId: string, id: Resource["id"] = nodeId, installation = OURS): Resource {
  return {
    type: "instance",
    id,
    tag: { installation, provider: "cloud", pool: "main", nodeId },
    resources: {},
  };
}

const look = (
  nodes: Parameters<typeof vanished>[0],
  resources: readonly Resource[],
  previous = new Set<string>(),
) => vanished(nodes, resources, { installation: OURS, provider: "cloud", asked: ASKED, previous });

describe("nodes whose machine is gone", () => {
  test("are suspected by one look and found by two, and only when they are offered", () => {
    const nodes = [
      entry("0000000001"),
      entry("0000000002", { state: "in-use" }),
      entry("0000000003", { allocated_to: "100-1" }),
      entry("0000000004", {}, ["locked"]),
      entry("0000000005", { external_id: null }),
      entry("0000000006", { state_time: ASKED / 1000 }),
      // By a clock that was put back since.
      entry("0000000007", { state_time: ASKED / 1000 + 172_800 }),
    ];
    const first = look(nodes, []);
    expect(first.nodes).toEqual([]);
    expect(look(nodes, [], new Set(first.suspects)).nodes.map(({ id }) => id)).toEqual([
      "0000000001",
      "0000000007",
    ]);
    const both = [machine("0000000001"), machine("0000000007")];
    expect(look(nodes, both, new Set(first.suspects)).nodes).toEqual([]);
  });

  test("are there by their tag or by their id; another installation's tag is not theirs", () => {
    const node = entry("0000000001", { external_id: "server" });
    const twice = (resources: readonly Resource[]) =>
      look([node], resources, new Set(look([node], resources).suspects)).nodes.length;
    expect(twice([machine("0000000001", "other name")])).toBe(0);
    expect(twice([{ ...machine("0000000001", "server"), tag: null }])).toBe(0);
    expect(twice([{ ...machine("0000000001", "server"), ended: true }])).toBe(1);
    expect(twice([machine("0000000001", "another", "another installation")])).toBe(1);
  });

  test("are also suspended spares; those that the cloud lists as stopped are there", () => {
    const sleeps = { state: "hold", hold_job: "nodeyard:suspended" };
    const nodes = [entry("0000000001", sleeps), entry("0000000002", { state: "hold" })];
    const { suspects } = look(nodes, []);
    expect(look(nodes, [], new Set(suspects)).nodes.map(({ id }) => id)).toEqual(["0000000001"]);
    const stopped = { ...machine("0000000001"), ended: true };
    for (const listed of [stopped, { ...stopped, tag: null }])
      expect(look(nodes, [listed], new Set(suspects)).nodes).toEqual([]);
  });

  test("ids of another shape than those in the driver's list prove nothing", () => {
    const node = entry("0000000001", { external_id: { vm: "x", zone: "y" } });
    const { suspects } = look([node], [machine("0000000002", "text")]);
    expect(suspects.size).toBe(0);
    expect(look([node], [machine("0000000002", { zone: "1", vm: "2" })]).suspects.size).toBe(1);
  });
});

describe("a launcher", () => {
  /** Free nodes. */
  async function stock(world: World, count = 3): Promise<string[]> {
    const id = await world.ask({ node_types: Array.from({ length: count }, () => "small") });
    const { nodes } = await world.fulfilled(id);
    await world.settle(world.other.delete(paths.request(id)));
    await world.until("they are free", () => world.nodes().every((node) => node.allocated_to === null));
    return nodes as string[];
  }

  test("takes out the node whose machine was deleted behind its back, after two looks, and leaves the others", async () => {
    const world = new World();
    const { counters, journal } = await world.start("a", launcherConfig([fakeProvider()]));
    const [first, ...others] = await stock(world);
    const { external_id: id } = world.node(first!) as { external_id: string };
    await world.settle(world.cloud.delete(id, new AbortController().signal));
    await world.run(30_000);
    expect(world.node(first!)?.state).toBe("ready");
    await world.until("it is gone", () => world.node(first!) === undefined, 300_000);
    expect(counters.value("launcher.vanished")).toBe(1);
    expect(journal.events.filter(({ event }) => event === "node.vanished")).toMatchObject([{ node: first }]);
    await world.run(300_000);
    for (const other of others) expect(world.node(other)?.state).toBe("ready");
  });

  test("a machine that the list leaves out, but that is found by its tag, is not gone", async () => {
    const world = new World();
    const { counters } = await world.start("a", launcherConfig([fakeProvider()]), {
      wrap: withMethods(() => ({ list: async () => [] })),
    });
    const nodes = await stock(world);
    await world.run(600_000);
    for (const node of nodes) expect(world.node(node)?.state).toBe("ready");
    expect(counters.value("launcher.vanished")).toBe(0);
  });

  test("a list that lacks many machines at once, or a machine without its tag, takes out nothing, and says so", async () => {
    const world = new World();
    let isEmpty = true;
    const { counters, journal, log } = await world.start("a", launcherConfig([fakeProvider()]), {
      // As after a change of the account: neither lists nor questions know a machine.
      wrap: withMethods((inner) => ({
        list: async (signal) => (isEmpty ? [] : inner.list(signal)),
        find: async (tag, signal, stored) => (isEmpty ? undefined : inner.find(tag, signal, stored)),
      })),
    });
    const nodes = await stock(world, 6);
    await world.run(300_000);
    expect(world.nodes().map(({ state }) => state)).toEqual(nodes.map(() => "ready"));
    expect(log.lines.some(({ level, text }) => level === "error" && text.includes("have no machine"))).toBe(
      true,
    );
    expect(counters.value("launcher.vanished")).toBe(0);
    isEmpty = false;
    await world.run(120_000);
    // Its metadata are gone, and it is still the node's.
    const { external_id: id } = world.node(nodes[0]!) as { external_id: string };
    world.cloud.loseTag(id);
    await world.run(300_000);
    expect(world.node(nodes[0]!)?.state).toBe("ready");
    await world.put(paths.node(nodes[0]!), { ...world.node(nodes[0]!), state: "used" });
    await world.run(300_000);
    // Not deleted as if it were gone: an operator learns of it.
    expect(world.node(nodes[0]!)?.state).toBe("deleting");
    const failed = journal.events.findLast(({ event }) => event === "node.delete-failed");
    expect(failed?.facts.error).toContain("does not carry our metadata");
  });

  test("clears away all nodes of a cloud that lost everything", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider()]));
    await stock(world);
    for (const { id } of world.cloud.inspect())
      await world.settle(world.cloud.delete(id, new AbortController().signal));
    await world.until("none is left", () => world.nodes().length === 0, 300_000);
    await world.fulfilled(await world.ask());
  });
});

test("a survey says what sweeps would do, each with its reason", () => {
  const nodes = [entry("0000000001"), entry("0000000002")];
  const resources = [
    machine("0000000001"),
    machine("0000000007"),
    machine("0000000008", "x", "another"),
    { ...machine("0000000009"), tag: null },
  ];
  const rows = survey("cloud", OURS, resources, nodes, ASKED).map(({ kind, node, action }) => [
    kind,
    node,
    action,
  ]);
  expect(rows).toEqual([
    ["leaked", "0000000007", "delete"],
    ["foreign", "0000000008", "keep"],
    ["vanished", "0000000002", "take-out"],
  ]);
  const many = Array.from({ length: 5 }, (_, index) => machine(`000000010${index}`));
  for (const { action, why } of survey("cloud", OURS, many, [], ASKED)) {
    expect(action).toBe("keep");
    expect(why).toContain("too many");
  }
});

test("a survey shows nodes that no launcher can delete, and takes none of them for gone", () => {
  const driver_data = { nodeyard: { place: { region: "west", account: "1" } } };
  const nodes = [entry("0000000001", { driver_data }), entry("0000000002", { region: "east" })];
  const look = (place: Record<string, string>) =>
    survey("cloud", OURS, [machine("0000000003")], nodes, ASKED, [], place).map(({ kind, node, why }) => [
      kind,
      node,
      why,
    ]);
  const shown = look({ region: "east" }).filter(([kind]) => kind !== "leaked");
  expect(shown.map(([kind, node]) => [kind, node])).toEqual([
    ["vanished", "0000000002"],
    ["elsewhere", "0000000001"],
  ]);
  expect(shown[1]?.[2]).toContain(
    "its machine is in region west, account 1, and the provider works in region east",
  );
  // A place of which less is known may be the same.
  const west = look({ region: "west" }).filter(([kind]) => kind === "elsewhere");
  expect(west.map(([, node]) => node)).toEqual(["0000000002"]);
  const left = surveyLeft(nodes, (provider) => provider !== "cloud");
  expect(left.map(({ kind, node, action }) => [kind, node, action])).toEqual([
    ["left", "0000000001", "keep"],
    ["left", "0000000002", "keep"],
  ]);
});
