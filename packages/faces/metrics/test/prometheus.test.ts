import { Counters } from "@nodeyard/telemetry";
import { beforeAll, describe, expect, test } from "vitest";
import { type Family, parsePage, requirePrometheusParser } from "../../../../testing/prometheus/index.ts";
import { gaugeOf, PrometheusExporter } from "../src/index.ts";

const ODD = 'a "quoted" \\ name\nof two lines, {braces} = ü';

describe.skipIf(requirePrometheusParser())("Prometheus' page, read by its own parser", () => {
  let families: readonly Family[];
  const family = (name: string) => families.find((one) => one.name === name)!;

  beforeAll(async () => {
    const counters = new Counters();
    counters.add("launcher.launches", 2, { provider: ODD, result: "ready" });
    counters.add("launcher.launches", 1, { provider: "cloud", result: "quota" });
    for (const ms of [400, 45_000, 9_000_000])
      counters.time("launcher.launch", ms, {
        provider: "cloud",
        az: "",
        result: "ready",
        requestor: "z",
        step: "",
      });
    counters.level("builder.image_size", 123_456_789_012, { image: "noble", format: "raw" });
    const gauges = [
      gaugeOf("nodes", 3, "ready"),
      gaugeOf("label_nodes", 0, ODD, "in-use"),
      gaugeOf("work_bytes_per_second", 0.125, "upload", "noble", "cloud"),
    ];
    const { type, text } = await (await PrometheusExporter.start("1.2.3")).page(counters, gauges);
    expect(type).toBe("text/plain; version=0.0.4; charset=utf-8");
    families = parsePage(text);
  });

  test("whatever a name holds comes back as it was", () => {
    expect(family("nodeyard_launcher_launches")).toMatchObject({
      type: "counter",
      help: "Launch attempts that ended",
      samples: [
        { name: "nodeyard_launcher_launches_total", labels: { provider: ODD, result: "ready" }, value: 2 },
        {
          name: "nodeyard_launcher_launches_total",
          labels: { provider: "cloud", result: "quota" },
          value: 1,
        },
      ],
    });
    expect(family("nodeyard_label_nodes").samples).toEqual([
      { name: "nodeyard_label_nodes", labels: { label: ODD, state: "in-use" }, value: 0 },
    ]);
  });

  test("a histogram's buckets grow up to its count", () => {
    const { type, samples } = family("nodeyard_launcher_launch_seconds");
    expect(type).toBe("histogram");
    const of = (suffix: string) => samples.filter(({ name }) => name.endsWith(suffix));
    const buckets = of("_bucket").map(({ labels, value }) => [labels.le, value]);
    expect(buckets.filter(([le]) => ["1", "40", "50", "1800", "+Inf"].includes(String(le)))).toEqual([
      ["1", 1],
      ["40", 1],
      ["50", 2],
      ["1800", 2],
      ["+Inf", 3],
    ]);
    expect([of("_count")[0]!.value, of("_sum")[0]!.value]).toEqual([3, 9_045.4]);
  });

  test("every figure of the program is there, with its help, also before its first sample", () => {
    expect(family("nodeyard_build_info").samples[0]).toMatchObject({
      labels: { version: "1.2.3" },
      value: 1,
    });
    expect(family("nodeyard_builder_image_size_bytes").samples[0]!.value).toBe(123_456_789_012);
    expect(family("nodeyard_launcher_leak_brake")).toMatchObject({ type: "counter", samples: [] });
    expect(family("nodejs_eventloop_lag_seconds").type).toBe("gauge");
    for (const { name, help } of families) expect(help, name).not.toBe("");
    expect(new Set(families.map(({ name }) => name)).size).toBe(families.length);
  });
});
