import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { HttpApi } from "@nodeyard/api";
import type { Builder } from "@nodeyard/builder";
import type { Config } from "@nodeyard/config";
import type { StatsdSample } from "@nodeyard/legacy";
import type { Gauge } from "@nodeyard/metrics";
import { systemClock } from "@nodeyard/runtime";
import type { Counters, Sample } from "@nodeyard/telemetry";
import { memoryLog } from "@nodeyard/telemetry";
import { systemMachine } from "@nodeyard/telemetry/machine";
import type { EmbeddedTree } from "@nodeyard/tree";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ask } from "../../../faces/api/test/rig.ts";
import { type Host, makeHost, openTree, startBuilder, until } from "../../../pool/builder/test/rig.ts";
import { BuilderRole } from "../src/builder-role.ts";

let host: Host;
let tree: EmbeddedTree;
const ends: (() => Promise<void>)[] = [];

beforeEach(async () => {
  host = makeHost();
  tree = await openTree(host);
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
  await tree.close();
  host.remove();
});

async function start(script: string): Promise<{ builder: Builder; counters: Counters; role: BuilderRole }> {
  const command = host.script("make", script);
  const config = host.config(`  - {name: small, build-command: [${command}]}`, "{name: small}");
  const session = await tree.connect();
  const { builder, counters } = await startBuilder(session, host, config);
  ends.push(() => builder.close(2_000));
  const machine = { ...systemMachine(), hostname: "host.example" };
  const role = new BuilderRole(
    { machine, tree: session, log: memoryLog(), config: config as Config },
    builder,
  );
  return { builder, counters, role };
}

const MAKE =
  'for format in $NODEYARD_IMAGE_FORMATS; do dd if=/dev/zero of="$DIB_IMAGE_FILENAME.$format" bs=4096 count=8; done';
const value = (gauges: readonly Gauge[], name: string) => gauges.find((gauge) => gauge.name === name)?.value;
const sample = (samples: readonly StatsdSample[], key: string) =>
  samples.find((one) => one.key === key)?.value;

describe("a builder in figures", () => {
  test("while it builds: bytes, rate and state, over HTTP without the tree; afterwards: size, exit code, age", async () => {
    const go = join(host.folder, "go");
    const { builder, counters, role } = await start(
      `${MAKE}\necho phase one\nwhile [ ! -e ${go} ]; do sleep 0.05; done`,
    );
    const heard: Sample[] = [];
    counters.onSample((one) => void heard.push(one));
    await until(() => builder.progress().some(({ bytes }) => bytes > 0), "bytes are seen");

    const building = role.gauges();
    expect(value(building, "work_bytes")).toBe(32_768);
    expect(value(building, "work_bytes_per_second")).toBeGreaterThan(0);
    expect(value(building, "work_expected_bytes")).toBeUndefined();
    const own = "nodepool.builder.host_example";
    expect(sample(role.samples(), `${own}.image.small.build.state`)).toBe(1);
    expect(sample(role.samples(), `${own}.current_builds`)).toBe(1);
    expect(sample(role.samples(), `${own}.build_workers`)).toBe(1);

    const api = new HttpApi({
      clock: systemClock,
      log: memoryLog(),
      sources: {
        known: () => undefined,
        readiness: () => role.readiness(),
        stuck: () => role.stuck(),
        work: () => role.work(),
        audit: () => undefined,
        providers: () => [],
        history: () => [],
        buildLog: role.buildLog,
        planConfig: async () => undefined,
        sliverMachines: async () => [],
        checkConfig: async () => [],
        metrics: () => Promise.reject(new Error("not asked for")),
      },
    });
    ends.push(() => api.close());
    const url = await api.listen({ host: "127.0.0.1", port: 0 });
    const { text } = await ask(url, "/api/v1/builds");
    expect(JSON.parse(text).work).toMatchObject([
      {
        kind: "build",
        image: "small",
        phase: "phase one",
        bytes: 32_768,
        total_bytes: null,
        eta_seconds: null,
      },
    ]);

    writeFileSync(go, "");
    const ready = () =>
      [...builder.view.images.uploads("small")].some(({ record }) => record.state === "ready");
    await until(ready, "a ready upload");
    expect(counters.levels()).toContainEqual({
      name: "builder.image_size",
      labels: { image: "small", format: "raw" },
      value: 32_768,
    });
    expect(counters.levels()).toContainEqual({
      name: "builder.exit_code",
      labels: { image: "small" },
      value: 0,
    });
    expect(heard).toContainEqual(
      expect.objectContaining({ name: "builder.build", labels: { image: "small", result: "ready" } }),
    );
    const after = role.gauges();
    const [build] = builder.view.images.builds("small").values();
    expect(value(after, "image_last_build_timestamp_seconds")).toBe(build!.stateTime);
    await until(() => role.work().length === 0, "nothing goes on any more");
    expect(value(role.gauges(), "work_bytes")).toBeUndefined();
    expect(sample(role.samples(), `${own}.image.small.provider.cloud.upload.state`)).toBe(0);
    expect(heard).toContainEqual(
      expect.objectContaining({
        name: "builder.upload",
        labels: { image: "small", provider: "cloud", result: "ready" },
      }),
    );
  });

  test("a build that fails has its exit code, its time and its end, and no size", async () => {
    const { counters } = await start("exit 7");
    await until(
      () => counters.value("builder.builds", { image: "small", result: "failed" }) > 0,
      "it failed",
    );
    const levels = new Map(counters.levels().map((level) => [level.name, level.value]));
    expect(levels.get("builder.exit_code")).toBe(7);
    expect(levels.get("builder.last_run")).toBeGreaterThan(1_700_000_000);
    expect(levels.has("builder.image_size")).toBe(false);
    expect(counters.times()).toMatchObject([
      { name: "builder.build", labels: { result: "failed" }, count: 1 },
    ]);
    expect(existsSync(host.cloud)).toBe(false);
  });
});
