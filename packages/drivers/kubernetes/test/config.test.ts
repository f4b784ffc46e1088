import { describe, expect, it } from "vitest";
import { openshiftpodsConfig } from "../src/index.ts";

describe("the compiled configuration of openshiftpods", () => {
  it("takes the project's defaults for labels that lack cores or memory", () => {
    const labels = [
      { name: "both", image: "i", cpu: 1, memory: 512 },
      { name: "cores", image: "i", cpu: 1 },
      { name: "none", image: "i" },
      { name: "verbatim", spec: { containers: [{ name: "c", image: "i" }] } },
    ];
    const raw = { name: "ocp", driver: "openshiftpods", context: "c", pools: [{ name: "project", labels }] };
    const names = new Set(labels.map(({ name }) => name));
    const report = (finding: unknown) => expect.fail(JSON.stringify(finding));
    const config = openshiftpodsConfig.load(raw, { labels: names, diskimages: new Map(), report });
    const all = [...(config?.pools[0]?.labels.values() ?? [])];
    expect(all.filter(({ own }) => own.isUnsized).map(({ name }) => name)).toEqual(["cores", "none"]);
  });

  it.each([
    ["a text", { requests: { cpu: "abc" } }],
    ["two suffixes", { requests: { cpu: "4m5" } }],
    ["an exponent and a suffix", { limits: { memory: "1e3m" } }],
    ["less than nothing", { requests: { memory: -1 } }],
    ["more than the limit", { requests: { cpu: 2 }, limits: { cpu: "500m" } }],
  ])("refuses %s as an amount", (_, resources) => {
    const labels = [{ name: "odd", spec: { containers: [{ name: "c", image: "i", resources }] } }];
    const raw = { name: "ocp", driver: "openshiftpods", context: "c", pools: [{ name: "project", labels }] };
    const found: string[] = [];
    const report = ({ message }: { message: string }) => void found.push(message);
    openshiftpodsConfig.load(raw, { labels: new Set(["odd"]), diskimages: new Map(), report });
    expect(found).toEqual([expect.stringMatching(/container c (has|requests) (cpu|memory)/)]);
  });
});
