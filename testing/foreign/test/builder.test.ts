import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../chaos/patience.ts";
import { Victim } from "../../chaos/victim.ts";
import { requireZooKeeper, startZooKeeper, type ZooKeeperServer } from "../../zookeeper/index.ts";
import { Agent, type Fields } from "../agent.ts";

/** Session timeout of our builder, which is killed in the end. */
const SESSION_S = 10;
const WAIT_MS = 60_000;
const BUILDS = "/nodepool/images/small/builds";
const REQUEST = "/nodepool/images/small/request-build";
const PYTHON = "0123456789abcdef0123456789abcdef";

/**
 * A Python builder beside ours, played by kazoo: what it writes and locks is what docs/contract/builder.md and
 * docs/contract/locks.md say.
 */
describe.skipIf(requireZooKeeper())("a Python builder and ours on one ZooKeeper", () => {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-builders-"));
  const [images, cloud, gate] = [join(folder, "images"), join(folder, "cloud"), join(folder, "gate")];
  let server: ZooKeeperServer;
  let python: Agent;
  let ours: Victim;

  const start = async () => {
    ours = new Victim(["--state", join(folder, "state"), "-c", join(folder, "nodepool.yaml"), "builder"], {
      inside: false,
    });
    if (!(await ours.printed("the builder runs"))) throw new Error(ours.errors);
  };

  beforeAll(async () => {
    mkdirSync(images);
    server = await startZooKeeper();
    python = new Agent(`127.0.0.1:${server.port}`);
    const make = join(folder, "make");
    writeFileSync(
      make,
      `#!/bin/sh\nwhile [ -e "${gate}" ]; do sleep 0.1; done\necho image > "$DIB_IMAGE_FILENAME.raw"\n`,
    );
    chmodSync(make, 0o755);
    writeFileSync(
      join(folder, "nodepool.yaml"),
      `
zookeeper-servers: [{host: 127.0.0.1, port: ${server.port}}]
zookeeper-timeout: ${SESSION_S}.0
images-dir: ${images}
build-log-dir: ${join(folder, "logs")}
labels: []
diskimages: [{name: small, build-command: [${make}], username: tester}]
providers:
  - name: cloud
    driver: fake
    cloud: c
    diskimages: [{name: small}]
    pools: []
    fake: {images: {folder: ${cloud}, formats: [raw]}}
`,
    );
  });
  afterAll(async () => {
    await python?.kill();
    await ours?.signal("SIGKILL");
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const builds = async () => (await python.children(BUILDS)).filter((name) => name !== "lock").sort();
  const others = async () => (await builds()).filter((id) => id !== PYTHON);
  const build = (state: string): Fields => ({
    builder: "python.example",
    builder_id: "8f14e45f-ceea-467f-9d5b-3f6a5f3c2b10",
    formats: "raw",
    python_path: "auto",
    shell_type: null,
    state,
    state_time: Date.now() / 1000,
    username: "zuul",
  });
  /** Resolves when our builder has checked everything of `small` after this call: it goes by name, and this image is the last. */
  const swept = async () => {
    const mark = "/nodepool/images/zzz/builds/ffffffffffffffffffffffffffffffff";
    await python.create(mark, build("deleting"));
    await becomes(async () => !(await python.exists(mark)), "no sweep");
  };
  const becomes = async (look: () => Promise<boolean>, what: string) =>
    until(look, WAIT_MS, () => `${what}\n${ours.errors.slice(-4_000)}`);
  const ready = async () => {
    const all = await others();
    const records = await Promise.all(all.map((id) => python.record(`${BUILDS}/${id}`)));
    return all.filter((_, at) => records[at]!.state === "ready");
  };

  test("what Python builds is left to it while it holds the lock, and is enough afterwards", async () => {
    await python.create(`${BUILDS}/${PYTHON}`, build("building"));
    await python.lock(`${BUILDS}/lock`);
    await start();
    await swept();
    expect(await python.record(`${BUILDS}/${PYTHON}`)).toMatchObject({ state: "building" });
    await python.store(`${BUILDS}/${PYTHON}`, build("ready"));
    await python.unlock(`${BUILDS}/lock`);
    await swept();
    expect(await builds()).toEqual([PYTHON]);
    expect(await python.record(`${BUILDS}/${PYTHON}`)).toMatchObject({
      state: "ready",
      builder: "python.example",
    });
  });

  test("an upload that Python locks is under way; one that it left unlocked is failed", async () => {
    const folder = `${BUILDS}/${PYTHON}/providers/cloud/images`;
    const upload = (state: string) => ({
      external_id: null,
      external_name: null,
      format: null,
      python_path: "auto",
      shell_type: null,
      state,
      state_time: Date.now() / 1000,
      username: "zuul",
    });
    await python.create(folder);
    await python.lock(`${folder}/lock`);
    const path = await python.create(`${folder}/`, upload("uploading"), false, true);
    await swept();
    expect(await python.record(path)).toMatchObject({ state: "uploading" });
    await python.unlock(`${folder}/lock`);
    await swept();
    expect(await python.record(path)).toMatchObject({ state: "failed" });
    await python.store(path, {
      ...upload("ready"),
      external_id: "img-1",
      external_name: "small-1",
      format: "raw",
    });
    await swept();
    expect(await python.record(path)).toMatchObject({ state: "ready" });
  });

  test("a request that Python's command line makes is answered; records have the contract's keys and no other", async () => {
    await python.create(REQUEST);
    await becomes(async () => (await ready()).length === 1, "no build of ours");
    const [id] = await ready();
    expect(id).toMatch(/^[0-9a-f]{32}$/);
    const keys = [
      "builder",
      "builder_id",
      "formats",
      "python_path",
      "shell_type",
      "state",
      "state_time",
      "username",
    ];
    const record = await python.record(`${BUILDS}/${id}`);
    expect(Object.keys(record).sort()).toEqual(keys);
    expect(record).toMatchObject({ formats: "raw", username: "tester", shell_type: null });
    await becomes(async () => !(await python.exists(REQUEST)), "the request stays");
    const folder = `${BUILDS}/${id}/providers/cloud/images`;
    await becomes(async () => existsSync(cloud) && readdirSync(cloud).length === 2, "no upload");
    const [upload] = (await python.children(folder)).filter((name) => name !== "lock");
    expect(upload).toMatch(/^\d{10}$/);
    const uploaded = await python.recordBecomes(`${folder}/${upload}`, ({ state }) => state === "ready");
    expect(Object.keys(uploaded).sort()).toEqual([
      "external_id",
      "external_name",
      "format",
      "python_path",
      "shell_type",
      "state",
      "state_time",
      "username",
    ]);
    expect(await python.children(`${BUILDS}/lock`)).toEqual([]);
  });

  test("the third build takes Python's away: upload, locks and record", async () => {
    await python.create(REQUEST);
    await becomes(async () => (await ready()).length === 2, "no second build of ours");
    await becomes(async () => !(await python.exists(`${BUILDS}/${PYTHON}`)), "Python's build stays");
  });

  test("a build that Python's command line deletes loses its upload, files and record", async () => {
    const [id] = await ready();
    const path = `${BUILDS}/${id}`;
    await python.change(path, { state: "deleting" });
    await becomes(async () => !(await python.exists(path)), "the build stays");
    await becomes(async () => !readdirSync(images).join().includes(id!), "its files stay");
  });

  test("when ours dies in a build Python gets the lock by the end of the session, and finds the record", async () => {
    writeFileSync(gate, "");
    await python.create(REQUEST);
    const building = async () =>
      (await Promise.all((await others()).map((id) => python.record(`${BUILDS}/${id}`)))).filter(
        ({ state }) => state === "building",
      ).length === 1;
    await becomes(building, "no third build");
    expect(await python.lock(`${BUILDS}/lock`, false)).toBe("busy");
    await ours.signal("SIGKILL");
    expect(await python.lock(`${BUILDS}/lock`, true, 60)).toMatch(/__lock__/);
    expect(await building()).toBe(true);
    await python.unlock(`${BUILDS}/lock`);
  });
});
