import { describe, expect, it } from "vitest";
import { exitCode, load, verdict } from "./support.ts";

/** A whole provider of each driver, in one line per mapping, so that one of them can be replaced. */
const providers: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  ibmvpc: {
    provider: "vpc: v, region: r, quota: {instances: 1}",
    diskimages: "name: i, operating-system: debian",
    "cloud-images":
      "name: c, username: u, keys: [k], image-filter: {operating-system: {vendor: v}, status: s}",
    pool: "name: p, zone: z, subnet: s, max-servers: 2",
    label: "name: a, profile: p, cloud-image: c",
  },
};

function file(driver: string, changes: Readonly<Record<string, string>> = {}): string {
  const { provider, pool, label, ...lists } = { ...providers[driver], ...changes };
  const listed = Object.entries(lists).map(([key, entry]) => `, ${key}: [{${entry}}]`);
  return `labels: [{name: a}]
diskimages: [{name: i}]
providers:
  - {name: x, driver: ${driver}, ${provider}${listed.join("")}, pools: [{${pool}, labels: [{${label}}]}]}`;
}

const others = (driver: string, changes = {}) =>
  verdict(file(driver, changes)).filter((line) => !line.includes(`needs driver ${driver}`));

describe("providers whose driver is not installed", () => {
  it.each(Object.keys(providers))("%s: a whole one is valid, and no launcher loads it", (driver) => {
    expect(others(driver)).toEqual([]);
    expect(exitCode(file(driver))).toBe(0);
    expect(exitCode(file(driver), { strict: true })).toBe(1);
    expect(load(file(driver)).errors).toEqual([expect.stringContaining(`needs driver ${driver}`)]);
  });

  it.each([
    ["ibmvpc", { pool: "name: _p, max-servers: 1" }, "underscore"],
    ["ibmvpc", { diskimages: "name: i" }, "operating-system: is missing"],
  ])("%s refuses %j", (driver, changes, message) => {
    expect(others(driver, changes)).toContainEqual(expect.stringMatching(new RegExp(`^error .*${message}`)));
  });

  it.each([
    ["ibmvpc", { diskimages: "name: other, operating-system: o" }, "not among the top-level diskimages"],
  ])("%s refuses %j, as Nodepool's loader does and its validator does not", (driver, changes, message) => {
    expect(others(driver, changes)).toEqual([expect.stringMatching(new RegExp(`^error .*${message}`))]);
    expect(exitCode(file(driver, changes))).toBe(0);
  });
});
