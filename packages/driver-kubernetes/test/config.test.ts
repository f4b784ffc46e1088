import { describe, expect, it } from "vitest";
import { openshiftpodsConfig } from "../src/index.ts";

describe("the compiled configuration of openshiftpods", () => {
  it("takes the project's defaults for labels that lack cores or memory", () => {
    const labels = [
      { name: "both", image: "i", cpu: 1, memory: 512 },
      { name: "cores", image: "i", cpu: 1 },
      { name: "none", image: "i" },
      { name: "verbatim", spec: { containers: [] } },
    ];
    const raw = { name: "ocp", driver: "openshiftpods", context: "c", pools: [{ name: "project", labels }] };
    const names = new Set(labels.map(({ name }) => name));
    const report = (finding: unknown) => expect.fail(JSON.stringify(finding));
    const config = openshiftpodsConfig.load(raw, { labels: names, diskimages: new Map(), report });
    expect([...(config?.pools[0]?.own.unsized ?? [])]).toEqual(["cores", "none"]);
  });
});
