import { readFileSync } from "node:fs";
import type { Driver } from "@nodeyard/driver";
import { createFakeDriver, fakeConfig } from "@nodeyard/driver-fake";
import { staticDriver } from "@nodeyard/driver-static";
import { type LauncherConfig, Shadow } from "@nodeyard/launcher";
import { paths } from "@nodeyard/model";
import { seededRandom } from "@nodeyard/runtime";
import { Counters, memoryLog } from "@nodeyard/telemetry";
import type { MemoryTree, Tree } from "@nodeyard/tree";
import { afterEach, expect, test } from "vitest";
import { settingsOf } from "../../launcher/src/providers/settings.ts";
import {
  fakeProvider,
  type Json,
  launcherConfig,
  staticProvider,
  World,
} from "../../launcher/test/rules/world.ts";
import { ShadowBook, type ShadowRow } from "../src/index.ts";
import { documentedRows } from "../src/shadow/differences.ts";

/** From one change to the next, milliseconds. */
const MOMENT = 200;
const WRITES: ReadonlySet<PropertyKey> = new Set(["create", "set", "delete", "commit", "sync"]);

let writes: string[] = [];
afterEach(() => {
  expect(writes).toEqual([]);
  writes = [];
});

/** The tree, for one that must not even try to write. */
function refusing(tree: MemoryTree): Tree {
  return new Proxy<Tree>(tree, {
    get(target, key) {
      if (WRITES.has(key))
        return async (path: unknown) => {
          writes.push(`${String(key)} ${JSON.stringify(path)}`);
          throw new Error("the tree takes no writes");
        };
      const value: unknown = Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** A shadow in a world, and the hands of a Python launcher that serves its provider. */
class Yard {
  readonly world = new World();
  readonly rows: ShadowRow[] = [];
  readonly book = new ShadowBook(this.world.clock, (row) => this.rows.push(row));

  async start(config: LauncherConfig): Promise<this> {
    const { world } = this;
    await world.folder(paths.nodes);
    const fake = createFakeDriver({ config: fakeConfig, cloudOf: () => world.cloud }) as unknown as Driver;
    const starting = Shadow.start(
      {
        tree: refusing(world.cluster.connect({ name: "shadow" })),
        clock: world.clock,
        random: seededRandom(5),
        scan: { scan: () => Promise.reject(new Error("nothing to scan")) },
        log: memoryLog(),
        counters: new Counters(),
        identity: { hostname: "shadow", fqdn: "shadow", version: "0" },
        driverOf: async (name) => (name === "static" ? (staticDriver as unknown as Driver) : fake),
        config,
      },
      (request, decision) => this.book.decided(request, decision),
      (view) => this.book.follow(view),
    );
    await world.settle(starting);
    return this;
  }

  now = () => this.world.clock.now() / 1_000;

  async ask(labels: readonly string[]): Promise<string> {
    const id = await this.world.ask({ node_types: labels, created_time: this.now(), state_time: this.now() });
    await this.world.run(MOMENT);
    return id;
  }

  async change(path: string, fields: Json): Promise<void> {
    await this.world.put(path, { ...this.world.json(path), ...fields, state_time: this.now() });
    await this.world.run(MOMENT);
  }

  take = (request: string) => this.change(paths.request(request), { state: "pending" });

  /** Makes a node for the request, which takes so long, and ends the request with it. */
  async serve(request: string, launchMs: number, fields: Json = {}): Promise<string> {
    const made = {
      created_time: this.now(),
      state: "building",
      provider: "cloud",
      pool: "main",
      type: ["small"],
    };
    const id = await this.world.makeNode({
      ...made,
      allocated_to: request,
      state_time: this.now(),
      ...fields,
    });
    await this.world.run(launchMs);
    await this.change(paths.node(id), { state: "ready" });
    await this.fulfil(request, [id]);
    return id;
  }

  async fulfil(request: string, nodes: readonly string[]): Promise<void> {
    await this.change(paths.request(request), { state: "fulfilled", nodes });
    await this.settled();
  }

  async fail(request: string): Promise<void> {
    await this.change(paths.request(request), { state: "failed", declined_by: ["old-main-0"] });
    await this.settled();
  }

  async forget(request: string): Promise<void> {
    await this.world.settle(this.world.other.delete(paths.request(request)));
    await this.world.run(MOMENT);
  }

  settled = () => this.world.run(MOMENT);
}

const servers = (count: number) => launcherConfig([fakeProvider("cloud", {}, { "max-servers": count })]);

test("the same launch, and its wait by launches that were seen", async () => {
  const yard = await new Yard().start(servers(2));
  await yard.world.pythonPool("cloud", ["small"]);
  const first = await yard.ask(["small"]);
  await yard.take(first);
  const node = await yard.serve(first, 30_000);
  expect(yard.rows[0]).toMatchObject({
    request: first,
    shadow: { result: "served", pool: "cloud/main", launched: 1, reused: 0 },
    tree: { result: "served", pool: "cloud/main", launched: 1, nodes: [node] },
    differences: [],
  });
  expect(yard.rows[0]?.tree.states.map(({ state }) => state)).toEqual(["requested", "pending", "fulfilled"]);
  // Nothing had been launched before.
  expect(yard.rows[0]?.shadow.wait).toBe(60);
  const second = await yard.ask(["small"]);
  await yard.take(second);
  await yard.serve(second, 30_000);
  expect(yard.rows[1]?.shadow.wait).toBeGreaterThanOrEqual(30);
  expect(yard.rows[1]?.shadow.wait).toBeLessThan(31);
  expect(yard.book.summary()).toMatchObject({ requests: 2, same: 2, open: 0, differences: [] });
});

test("a node that the other checks and uses again is used, here and there", async () => {
  const label = { name: "small", "cloud-image": "image", "flavor-name": "Fake Flavor" };
  const again = { ...label, reuse: { check: "/bin/true" } };
  const provider = fakeProvider("cloud", {}, { labels: [again], "max-servers": 4 });
  const yard = await new Yard().start(launcherConfig([provider]));
  const [pool] = provider.pools;
  const settings = settingsOf(pool!, pool!.labels.get("small")!);
  const note = (more: Json) => ({
    driver_data: { nodeyard: { reuse: { settings, since: yard.now(), times: 0, ...more } } },
  });
  const was = { provider: "cloud", pool: "main", type: ["small"], requestor: "test", state: "used" };
  const node = await yard.world.makeNode({ ...was, allocated_to: "100-0000000099", ...note({}) });
  await yard.settled();
  const only = { tenant: null, client: "test" };
  await yard.change(paths.node(node), {
    state: "building",
    allocated_to: null,
    ...note({ times: 1, only, checking: true }),
  });
  await yard.change(paths.node(node), { state: "ready", ...note({ times: 1, only }) });
  const request = await yard.ask(["small"]);
  await yard.take(request);
  await yard.change(paths.node(node), { allocated_to: request });
  await yard.fulfil(request, [node]);
  expect(yard.rows[0]).toMatchObject({ shadow: { reused: 1 }, tree: { reused: 1 }, differences: [] });
});

test("a ready node is used, here and there; one that only the other uses is a difference", async () => {
  const yard = await new Yard().start(servers(4));
  const ready = { state: "ready", provider: "cloud", pool: "main", type: ["small"] };
  const node = await yard.world.makeNode(ready);
  await yard.settled();
  const request = await yard.ask(["small"]);
  await yard.take(request);
  await yard.change(paths.node(node), { allocated_to: request });
  await yard.fulfil(request, [node]);
  expect(yard.rows[0]).toMatchObject({
    shadow: { reused: 1, wait: 0 },
    tree: { reused: 1 },
    differences: [],
  });
  await yard.forget(request);
  await yard.change(paths.node(node), { allocated_to: null });
  const other = await yard.ask(["small"]);
  await yard.take(other);
  await yard.serve(other, 1_000);
  expect(yard.rows[1]).toMatchObject({
    shadow: { reused: 1 },
    tree: { launched: 1 },
    differences: [{ code: "reuse", documented: null }],
  });
});

test("a request that Python holds as pending without room is planned for until there is room", async () => {
  const yard = await new Yard().start(servers(1));
  const first = await yard.ask(["small"]);
  await yard.take(first);
  const node = await yard.serve(first, 1_000);
  const second = await yard.ask(["small"]);
  await yard.take(second);
  await yard.world.run(60_000);
  await yard.change(paths.node(node), { state: "in-use" });
  await yard.world.settle(yard.world.other.delete(paths.node(node)));
  await yard.settled();
  await yard.serve(second, 1_000);
  expect(yard.rows[1]).toMatchObject({ shadow: { result: "served", launched: 1 }, differences: [] });
  expect(yard.rows[1]?.shadow.wait).toBeGreaterThan(60);
});

test("taken there while the pool is full here: what it waits for is said", async () => {
  const yard = await new Yard().start(servers(1));
  const first = await yard.ask(["small"]);
  await yard.take(first);
  await yard.serve(first, 1_000);
  const second = await yard.ask(["small"]);
  await yard.take(second);
  await yard.serve(second, 1_000);
  expect(yard.rows[1]).toMatchObject({
    shadow: { result: "waits", reason: "capacity.pool" },
    differences: [{ code: "waits", documented: null }],
  });
});

test("declined by both, and by one alone", async () => {
  const yard = await new Yard().start(servers(1));
  const many = await yard.ask(["small", "small"]);
  await yard.fail(many);
  expect(yard.rows[0]).toMatchObject({
    shadow: { result: "refused", reason: expect.stringContaining("the pool's limit is 1") },
    tree: { result: "refused", declined_by: ["old-main-0"] },
    differences: [],
  });
  const one = await yard.ask(["small"]);
  await yard.fail(one);
  expect(yard.rows[1]?.differences).toEqual([{ code: "refused_there", documented: null }]);
  const more = await yard.ask(["large", "large"]);
  await yard.take(more);
  await yard.serve(more, 1_000);
  expect(yard.rows[2]?.differences).toEqual([{ code: "refused_here", documented: null }]);
});

test("declined there while it waits here: documented where Nodeyard means to wait, and not for other reasons", async () => {
  const full = await new Yard().start(servers(1));
  const first = await full.ask(["small"]);
  await full.take(first);
  await full.serve(first, 1_000);
  await full.fail(await full.ask(["small"]));
  expect(full.rows[1]).toMatchObject({ shadow: { reason: "capacity.pool" }, tree: { launched: 0 } });
  expect(full.rows[1]?.differences).toEqual([{ code: "refused_early", documented: null }]);

  const diskimage = { name: "small", diskimage: "noble", "flavor-name": "Fake Flavor" };
  const images = fakeProvider(
    "cloud",
    { diskimages: [{ name: "noble" }] },
    { labels: [diskimage], "max-servers": 4 },
  );
  const imageless = await new Yard().start(launcherConfig([images]));
  const build = paths.imageBuild("noble", "b".repeat(32));
  await imageless.world.put(build, { state: "building", state_time: imageless.now() });
  await imageless.fail(await imageless.ask(["small"]));
  expect(imageless.rows[0]).toMatchObject({ shadow: { result: "waits", reason: "image.waits" } });
  expect(imageless.rows[0]?.differences).toEqual([
    { code: "refused_early", documented: documentedRows.image },
  ]);
});

test("launches that failed there are no decline, also of a request that still waits here", async () => {
  const yard = await new Yard().start(servers(1));
  const building = { state: "building", provider: "cloud", pool: "main", type: ["small"] };
  const failing = async () => {
    const request = await yard.ask(["small"]);
    await yard.take(request);
    const node = await yard.world.makeNode({ ...building, allocated_to: request });
    await yard.settled();
    await yard.change(paths.node(node), { state: "failed" });
    await yard.fail(request);
    await yard.world.settle(yard.world.other.delete(paths.node(node)));
  };
  await failing();
  const served = await yard.ask(["small"]);
  await yard.take(served);
  await yard.serve(served, 1_000);
  await failing();
  const failed = { tree: { result: "refused", launched: 1 }, differences: [{ code: "launch_failed" }] };
  expect(yard.rows).toMatchObject([
    { shadow: { result: "served" }, ...failed },
    { differences: [] },
    { shadow: { result: "waits", reason: "capacity.pool" }, ...failed },
  ]);
});

test("a static host is kept for the first in line, as documented; hosts are nobody's launches", async () => {
  const yard = await new Yard().start(
    launcherConfig([
      staticProvider([
        { name: "192.0.2.1", labels: ["small"] },
        { name: "192.0.2.2", labels: ["small"] },
      ]),
    ]),
  );
  const host = { provider: "lab", pool: "main", type: ["small"], launcher: "static driver" };
  const free = await yard.world.makeNode({ ...host, state: "ready", hostname: "192.0.2.1" });
  await yard.world.makeNode({ ...host, state: "in-use", hostname: "192.0.2.2" });
  await yard.settled();
  const pair = await yard.ask(["small", "small"]);
  const single = await yard.ask(["small"]);
  await yard.take(single);
  await yard.change(paths.node(free), { allocated_to: single });
  await yard.fulfil(single, [free]);
  expect(yard.rows).toMatchObject([
    {
      request: single,
      shadow: { result: "waits", reason: "nodes.none-free" },
      differences: [{ code: "waits", documented: expect.stringContaining("static: a free host") }],
    },
  ]);
  await yard.forget(pair);
  expect(yard.rows[1]).toMatchObject({ request: pair, tree: { result: "withdrawn" }, differences: [] });
});

test("of hundreds of requests that are over only figures are kept", async () => {
  const yard = await new Yard().start(servers(1));
  for (let at = 0; at < 300; at++) {
    const request = await yard.ask(["small"]);
    await yard.forget(request);
  }
  expect(yard.book.summary()).toMatchObject({ requests: 300, withdrawn: 300, same: 0, open: 0 });
  // None of them keeps room.
  const last = await yard.ask(["small"]);
  await yard.take(last);
  await yard.serve(last, 1_000);
  expect(yard.rows.at(-1)).toMatchObject({ shadow: { result: "served" }, differences: [] });
});

test("what is called documented is a row of the page on differences", () => {
  const page = readFileSync(`${import.meta.dirname}/../../../../docs/design/differences.md`, "utf8");
  for (const row of Object.values(documentedRows)) expect(page).toContain(`\n| ${row}`);
});
