import { mkdirSync } from "node:fs";
import {
  encodeComponent,
  encodeNode,
  encodeRequest,
  type NewNode,
  newComponent,
  newNode,
  newRequest,
  paths,
} from "@nodeyard/model";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import {
  type EmbeddedTree,
  ensurePath,
  openEmbeddedTree,
  startTreeServer,
  type TreeServer,
} from "@nodeyard/tree";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fakeConfig, Site } from "./nodeyard.ts";

const NOW = Date.now() / 1000;
const MINUTE = 60;

let site: Site;
let tree: EmbeddedTree;
let server: TreeServer;
beforeAll(async () => {
  const extra = "max-hold-age: 3600\ndiskimages: [{name: noble, elements: [vm]}]\n";
  // The provider of the file lists `noble`; the other one has a driver that is not installed.
  const config = fakeConfig({ extra })
    .replace("driver: fake", "driver: fake\n    diskimages: [{name: noble}]")
    .replace("{name: small, min-ready: 0}", "{name: small, max-ready-age: 7200}");
  site = new Site(`${config}
  - {name: ec2, driver: example, pools: [{name: p, max-servers: 2, labels: [{name: small, profile: x}]}]}
`);
  mkdirSync(site.state, { mode: 0o700 });
  tree = await openEmbeddedTree({ folder: site.state, clock: systemClock, random: systemRandom });
  server = await startTreeServer({ core: tree.core, clock: systemClock, socket: `${site.state}/tree.sock` });
});
afterAll(async () => {
  await server.close();
  await tree.close();
  await site.close();
});

async function node(fields: Partial<NewNode>, locked = false): Promise<void> {
  await ensurePath(tree, paths.nodes);
  const record = newNode(
    { type: ["small"], provider: "fake-cloud", state: "ready", ...fields },
    NOW - 30 * MINUTE,
  );
  const { path } = await tree.create(`${paths.nodes}/`, encodeNode(record), { sequential: true });
  if (!locked) return;
  await ensurePath(tree, `${path}/lock`);
  await tree.create(`${path}/lock/x__lock__`, undefined, { ephemeral: true, sequential: true });
}

async function request(labels: readonly string[]): Promise<void> {
  await ensurePath(tree, paths.requests);
  const record = newRequest({ state: "requested", nodeTypes: labels, requestor: "zuul" }, NOW);
  await tree.create(`${paths.requests}/200-`, encodeRequest(record), { sequential: true });
}

async function pool(providerName: string, supportedLabels: readonly string[]): Promise<void> {
  await ensurePath(tree, paths.component("pool"));
  const id = `old-${providerName}`;
  const facts = { hostname: "old", kind: "pool", state: "running", version: "11.0.0", name: "main" } as const;
  const data = encodeComponent(newComponent({ ...facts, id, providerName, supportedLabels }));
  await tree.create(`${paths.component("pool")}/${id}-`, data, { sequential: true });
}

async function upload(image: string, provider: string): Promise<void> {
  const at = paths.imageUploads(image, "0000000001", provider);
  await ensurePath(tree, at);
  await tree.set(
    paths.imageBuild(image, "0000000001"),
    Buffer.from('{"state": "ready", "state_time": 1, "builder": "b"}'),
  );
  await tree.create(
    `${at}/0000000001`,
    Buffer.from('{"state": "ready", "state_time": 1, "external_id": "x"}'),
  );
}

/** Every znode with its versions: a znode that is made and deleted at once changes its parent's. */
async function dump(at = "/"): Promise<readonly string[]> {
  const stat = await tree.stat(at);
  const names = [...(await tree.children(at))].sort();
  const below = await Promise.all(names.map((name) => dump(at === "/" ? `/${name}` : `${at}/${name}`)));
  return [`${at} ${stat?.version} ${stat?.mzxid} ${stat?.cversion} ${stat?.pzxid}`, ...below.flat()];
}

interface Survey {
  readonly tree: Readonly<Record<string, readonly { what: string; count: number; then: string }[]>> | null;
  readonly tree_problem?: string;
}
const validate = (...words: readonly string[]) =>
  site.run("-c", site.config, "config-validate", "--migration", ...words);

test("--migration: what becomes of all that is in the tree, without a write", async () => {
  await pool("fake-cloud", ["small", "ancient"]);
  await pool("elsewhere", ["arm"]);
  for (const labels of [["small"], ["small"], ["small", "large"], ["ancient"]]) await request(labels);
  await node({});
  await node({ type: ["large"] });
  await node({ type: ["ancient"] });
  await node({ state: "used" });
  await node({ state: "in-use" }, true);
  await node({ state: "hold", holdExpiration: 7200 });
  await node({ state: "hold", holdExpiration: 1800 - 5 });
  await node({ provider: "elsewhere", type: ["arm"] });
  await node({ provider: "nowhere", type: ["arm"] });
  await node({ provider: "ec2" });
  for (const [image, provider] of [
    ["noble", "fake-cloud"],
    ["jammy", "fake-cloud"],
    ["jammy", "elsewhere"],
  ] as const)
    await upload(image, provider);

  const before = await dump();
  const { code, out } = await validate("--json");
  const report = await validate();
  expect(await dump()).toEqual(before);
  expect([code, report.code]).toEqual([0, 0]);

  const found = (JSON.parse(out) as Survey).tree!;
  const lines = (of: string) => found[of]!.map(({ what, count, then }) => [what, count, then]);
  expect(lines("components")).toEqual([
    ["pool elsewhere/main of old, version 11.0.0", 1, "offers arm; this file does not have the provider"],
    [
      "pool fake-cloud/main of old, version 11.0.0",
      1,
      "offers ancient, small; this file does not have ancient there",
    ],
  ]);
  expect(lines("requests")).toEqual([
    ["request for ancient, requested", 1, "no pool of this file has these labels: not served by it"],
    ["request for small, large, requested", 1, "can be served by fake-cloud"],
    ["request for small, requested", 2, "can be served by fake-cloud, ec2 (its driver is not installed)"],
  ]);
  expect(lines("nodes")).toEqual([
    [
      "node of ec2, small, ready",
      1,
      "left alone, its driver is not installed: nobody serves it; nodeyard erase ec2",
    ],
    ["node of elsewhere, arm, ready", 1, "left alone, not in this file: served by old"],
    ["node of fake-cloud, ancient, ready", 1, "no pool of its provider offers it: idle, kept without end"],
    ["node of fake-cloud, large, ready", 1, "given to requests, kept without end"],
    ["node of fake-cloud, small, hold", 1, expect.stringMatching(/^deleted in (2\d|30) min at the latest$/)],
    ["node of fake-cloud, small, hold", 1, "deleted at once"],
    ["node of fake-cloud, small, in-use, locked", 1, "stays until its holder returns it"],
    [
      "node of fake-cloud, small, ready",
      1,
      expect.stringMatching(/^given to requests, deleted in (8\d|90) min at the latest$/),
    ],
    ["node of fake-cloud, small, used", 1, "deleted at once"],
    [
      "node of nowhere, arm, ready",
      1,
      "left alone, not in this file: nobody serves it; nodeyard erase nowhere",
    ],
  ]);
  expect(lines("images")).toEqual([
    ["upload of jammy to elsewhere, ready", 1, "left alone: the provider is not in this file"],
    [
      "upload of jammy to fake-cloud, ready",
      1,
      expect.stringContaining("no diskimage of this file defines it"),
    ],
    ["upload of noble to fake-cloud, ready", 1, "kept, as many as are current"],
    ["build of jammy by b, ready", 1, expect.stringContaining("deleted by a builder with this file")],
    ["build of noble by b, ready", 1, "kept, as many as are current"],
  ]);
  expect(report.out).toContain("- 2 x request for small, requested: can be served by fake-cloud, ec2");
  expect((await validate("--no-tree")).out).not.toContain("In the tree now");
});

test("without a tree the report says so, and is complete without it", async () => {
  const { code, out } = await site.run(
    "--state",
    `${site.folder}/none`,
    "-c",
    site.config,
    "config-validate",
    "--migration",
  );
  expect(code).toBe(0);
  expect(out).toContain("## Providers that can move");
  expect(out).toMatch(/## The tree\n\nNot looked at: no Nodeyard runs on the state folder /);
});

test("commands on the tree need no driver of the configuration that leads to it", async () => {
  const { code, err } = await site.run("-c", site.config, "list");
  expect([code, err]).toEqual([0, ""]);
});
