import type { Sample } from "@nodeyard/telemetry";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { statsdServer } from "../src/statsd/edge/udp-sink.ts";
import { DATAGRAM_BYTES, datagramsOf, keyPart, linesOf, type StatsdSample } from "../src/statsd/lines.ts";
import { samplesOf } from "../src/statsd/samples.ts";

describe("lines as Python's client writes them", () => {
  test.each<[StatsdSample, readonly string[]]>([
    [{ key: "a.b", type: "g", value: 3 }, ["a.b:3|g"]],
    [{ key: "a.b", type: "g", value: 0.25 }, ["a.b:0.25|g"]],
    [{ key: "a.b", type: "g", value: -4 }, ["a.b:0|g\na.b:-4|g"]],
    [{ key: "a.b", type: "c", value: 1 }, ["a.b:1|c"]],
    [{ key: "a.b", type: "ms", value: 12 }, ["a.b:12.000000|ms"]],
    [{ key: "a.b", type: "g", value: 1e21 }, ["a.b:1000000000000000000000|g"]],
    [{ key: "a.b", type: "g", value: Number.POSITIVE_INFINITY }, []],
    [{ key: "a.b", type: "g", value: Number.NaN }, []],
  ])("%j", (sample, lines) => {
    expect(linesOf(sample)).toEqual(lines);
  });

  test("no name makes a level of its own, or a line", () => {
    expect(keyPart("ubuntu-22.04")).toBe("ubuntu-22_04");
    expect(keyPart("a.b:c|d\ne/f é")).toBe("a_b_c_d_e_f__");
  });

  test("every line is in some datagram once, in order, and none is longer than it may be", () => {
    const line = fc.stringMatching(/^[a-z]{1,60}$/);
    fc.assert(
      fc.property(fc.array(line, { maxLength: 200 }), (lines) => {
        const datagrams = datagramsOf(lines);
        expect(datagrams.flatMap((datagram) => datagram.split("\n"))).toEqual(lines);
        for (const datagram of datagrams) expect(datagram.length).toBeLessThan(DATAGRAM_BYTES);
      }),
    );
  });

  test("a line that is too long for a datagram goes alone", () => {
    const long = "x".repeat(600);
    expect(datagramsOf(["a", long, "b"])).toEqual(["a", long, "b"]);
  });
});

describe("what a moment's figure is in the old names", () => {
  const launch = (labels: object): Sample => ({
    kind: "time",
    name: "launcher.launch",
    value: 1_500,
    labels: { provider: "cloud", az: "", result: "ready", requestor: "", step: "", ...labels },
  });
  const keys = (sample: Sample) => [...new Set(samplesOf(sample).map(({ key }) => key))];

  test("a launch: a count and a time each for all, the provider, its zone and the requestor", () => {
    const sample = launch({ provider: "cloud.example", az: "zone.1", requestor: "a.b:c" });
    expect(samplesOf(sample).flatMap(linesOf)).toEqual([
      "nodepool.launch.ready:1500.000000|ms",
      "nodepool.launch.ready:1|c",
      "nodepool.launch.provider.cloud_example.ready:1500.000000|ms",
      "nodepool.launch.provider.cloud_example.ready:1|c",
      "nodepool.launch.provider.cloud_example.zone_1.ready:1500.000000|ms",
      "nodepool.launch.provider.cloud_example.zone_1.ready:1|c",
      "nodepool.launch.requestor.a_b_c.ready:1500.000000|ms",
      "nodepool.launch.requestor.a_b_c.ready:1|c",
    ]);
    expect(keys(launch({}))).toEqual(["nodepool.launch.ready", "nodepool.launch.provider.cloud.ready"]);
  });

  test.each([
    ["quota", "server", "error.quota"],
    ["capacity", "server", "error.capacity"],
    ["timeout", "wait", "error.servercreatetimeout"],
    ["timeout", "scan", "error.keyscan"],
    ["host-key", "scan", "error.keyscan"],
    ["lost", "wait", "error.zksession"],
    ["image-gone", "", "error.nodepool"],
    ["transient", "server", "error.unknown"],
    ["unexpected", "", "error.unknown"],
  ])("a launch that ended in %s at %s: %s", (result, step, old) => {
    expect(keys(launch({ result, step }))[0]).toBe(`nodepool.launch.${old}`);
  });

  test("builds, uploads and what leaked", () => {
    const lines = (sample: Sample) => samplesOf(sample).flatMap(linesOf);
    const image = "noble";
    expect(
      lines({ kind: "level", name: "builder.image_size", value: 4096, labels: { image, format: "raw" } }),
    ).toEqual(["nodepool.dib_image_build.noble.raw.size:4096|g"]);
    expect(lines({ kind: "level", name: "builder.exit_code", value: 1, labels: { image } })).toEqual([
      "nodepool.dib_image_build.noble.status.rc:1|g",
    ]);
    expect(
      lines({ kind: "level", name: "builder.last_run", value: 1_700_000_000.7, labels: { image } }),
    ).toEqual(["nodepool.dib_image_build.noble.status.last_build:1700000000|g"]);
    expect(
      lines({ kind: "time", name: "builder.build", value: 60_000, labels: { image, result: "failed" } }),
    ).toEqual(["nodepool.dib_image_build.noble.status.duration:60000.000000|ms"]);
    const upload = { image, provider: "cloud" };
    expect(
      lines({ kind: "time", name: "builder.upload", value: 1, labels: { ...upload, result: "ready" } }),
    ).toEqual(["nodepool.image_update.noble.cloud:1.000000|ms", "nodepool.image_update.noble.cloud:1|c"]);
    expect(
      lines({ kind: "time", name: "builder.upload", value: 1, labels: { ...upload, result: "failed" } }),
    ).toEqual([]);
    expect(
      lines({ kind: "count", name: "builder.uploads", value: 1, labels: { ...upload, result: "failed" } }),
    ).toEqual(["nodepool.image_update_failed.noble.cloud:1|c"]);
    expect(
      lines({
        kind: "count",
        name: "launcher.leaked",
        value: 1,
        labels: { provider: "cloud", type: "port" },
      }),
    ).toEqual(["nodepool.provider.cloud.leaked.ports:1|c"]);
  });
});

describe("the statsd server of the environment", () => {
  test.each([
    [{}, undefined],
    [{ STATSD_HOST: "" }, undefined],
    [{ STATSD_HOST: "stats.example" }, { host: "stats.example", port: 8125 }],
    [{ STATSD_HOST: "[::1]" }, { host: "::1", port: 8125 }],
    [
      { STATSD_HOST: "2001:db8::7", STATSD_PORT: "9125" },
      { host: "2001:db8::7", port: 9125 },
    ],
    [{ STATSD_HOST: "stats.example:9125" }, { problem: expect.stringContaining("STATSD_PORT") }],
    [{ STATSD_HOST: "[::1]:9125" }, { problem: expect.stringContaining('"[::1]:9125"') }],
    [{ STATSD_HOST: "udp://stats.example" }, { problem: expect.stringContaining("a name or an address") }],
    [{ STATSD_PORT: "9125" }, { host: "localhost", port: 9125 }],
    [{ STATSD_PORT: "many" }, { problem: expect.stringContaining('"many"') }],
    [{ STATSD_PORT: "0" }, { problem: expect.stringContaining("1 to 65535") }],
  ])("%j", (env, server) => {
    expect(statsdServer(env)).toEqual(server);
  });
});
