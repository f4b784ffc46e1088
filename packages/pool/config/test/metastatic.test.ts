import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it, test } from "vitest";
import { exitCode, load, loaded, verdict } from "./support.ts";

const page = resolve(import.meta.dirname, "../../../../docs/how-to/metastatic.md");

function text(labels: string, more = ""): string {
  return `labels: [{name: chunk}, {name: slice}, {name: sliver}]
providers:
  - name: metal
    driver: fake
    cloud: c
    cloud-images: [{name: img}]
    pools: [{name: main, labels: [{name: chunk, cloud-image: img, min-ram: 1}]}]
  - name: slicer
    driver: metastatic
    ${more}
    pools: [{name: main, labels: [${labels}]}]
`;
}

const slice = "{name: slice, backing-label: chunk}";

describe("metastatic", () => {
  it("has its defaults", () => {
    const provider = loaded(text(slice)).providers[1]!;
    expect(provider).toMatchObject({
      driver: "metastatic",
      launchTimeoutMs: 3_600_000,
      bootTimeoutMs: 120_000,
      launchAttempts: 3,
    });
    expect(provider.pools[0]?.labels.get("slice")).toMatchObject({
      hostKeyChecking: false,
      own: {
        backingLabel: "chunk",
        slots: 1,
        graceMs: 60_000,
        minRetentionMs: 0,
        maxAgeMs: Number.POSITIVE_INFINITY,
      },
    });
  });

  it("reads every key", () => {
    const keys =
      "max-parallel-jobs: 8, grace-time: 300, min-retention-time: 600, max-age: 86400, host-key-checking: true";
    const config = loaded(text(`{name: slice, backing-label: chunk, ${keys}}`, "launch-retries: 0"));
    expect(config.providers[1]?.launchAttempts).toBe(1);
    expect(config.providers[1]?.pools[0]?.labels.get("slice")).toMatchObject({
      hostKeyChecking: true,
      own: { slots: 8, graceMs: 300_000, minRetentionMs: 600_000, maxAgeMs: 86_400_000 },
    });
  });

  it("30: labels of one backing label that disagree pass the validator, and are rejected by the load", () => {
    const both = text(`${slice}, {name: sliver, backing-label: chunk, max-parallel-jobs: 2}`);
    expect(exitCode(both)).toBe(0);
    expect(load(both).errors.join()).toContain(
      "multiple label definitions for the same backing label must be identical",
    );
    expect(load(text(`${slice}, {name: sliver, backing-label: chunk}`)).errors).toEqual([]);
  });

  it.each([
    [
      "max-age below min-retention-time",
      "max-age: 10, min-retention-time: 20",
      0,
      "max-age: is below min-retention-time",
    ],
    ["a slot of itself", "backing-label: slice", 0, "names slice itself"],
  ])("%s", (_, keys, code, error) => {
    const label = keys.startsWith("backing")
      ? `{name: slice, ${keys}}`
      : `{name: slice, backing-label: chunk, ${keys}}`;
    expect(exitCode(text(label))).toBe(code);
    expect(load(text(label)).errors.join()).toContain(error);
  });

  it("max-age 0 is no limit", () => {
    const label = "{name: slice, backing-label: chunk, max-age: 0, min-retention-time: 20}";
    expect(load(text(label)).errors).toEqual([]);
  });

  it.each([
    ["no backing-label", "{name: slice}"],
    ["a key that it has not", "{name: slice, backing-label: chunk, slots: 2}"],
    ["seconds with a point", "{name: slice, backing-label: chunk, grace-time: 1.5}"],
  ])("strictly rejects %s", (_, label) => expect(exitCode(text(label))).toBe(1));

  it("strictly rejects rate", () => expect(verdict(text(slice, "rate: 1")).join()).toContain("rate"));

  it("warns of a label without slots", () => {
    const { errors, warnings } = load(text("{name: slice, backing-label: chunk, max-parallel-jobs: 0}"));
    expect(errors).toEqual([]);
    expect(warnings.join()).toContain("is 0, which keeps the label from being served");
  });
});

test("the example of the how-to page loads, and passes the validator", () => {
  const [, yaml] = /```yaml\n([\s\S]*?)```/.exec(readFileSync(page, "utf8")) ?? [];
  expect(exitCode(yaml!)).toBe(0);
  expect(loaded(yaml!).providers.map(({ driver }) => driver)).toEqual(["static", "metastatic"]);
});
