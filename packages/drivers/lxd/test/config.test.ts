import type { ConfigFinding } from "@nodeyard/driver";
import { describe, expect, test } from "vitest";
import { lxdConfig } from "../src/index.ts";

const BASE = {
  name: "big",
  driver: "lxd",
  "cloud-images": [{ name: "tiny" }, { name: "ready", "copy-of": "base/ready", username: "ci" }],
  diskimages: [{ name: "built" }],
  pools: [{ name: "main", labels: [{ name: "vm", "cloud-image": "tiny" }] }],
};

function load(over: Readonly<Record<string, unknown>>) {
  const findings: ConfigFinding[] = [];
  const config = lxdConfig.load(
    { ...BASE, ...over },
    {
      labels: new Set(["vm"]),
      diskimages: new Map([["built", { username: "zuul", pythonPath: "auto", shellType: null }]]),
      report: (finding) => findings.push(finding),
    },
  );
  return { config, said: findings.map(({ path, message }) => `${path.join(".")} ${message}`) };
}
const labelled = (label: object) => ({ pools: [{ name: "main", labels: [{ name: "vm", ...label }] }] });

describe("the configuration of a provider", () => {
  test("what is not said has its default", () => {
    const { config, said } = load({});
    expect(said).toEqual([]);
    expect(config?.own).toMatchObject({ server: "/var/lib/lxd/unix.socket", project: "default" });
    expect(config?.pools[0]?.labels.get("vm")?.own).toMatchObject({
      image: { image: "tiny", remote: null, copyOf: null },
      ...{ type: "container", cores: 1, ram: 1024, profiles: ["default"], config: {}, devices: {} },
    });
  });

  test("a copy has no image, and a built one is the builder's", () => {
    const copy = load(labelled({ "cloud-image": "ready" })).config?.pools[0]?.labels.get("vm");
    expect(copy).toMatchObject({ connection: { username: "ci" }, own: { image: { copyOf: "base/ready" } } });
    const built = load(labelled({ diskimage: "built" })).config?.pools[0]?.labels.get("vm");
    expect(built).toMatchObject({ connection: { username: "zuul" }, own: { image: null } });
  });

  test.each([
    ["an address without certificates", { server: "https://lxd:8443" }, /client-certificate is missing/],
    ["an address without TLS", { server: "http://lxd:8443" }, /^server .*https/],
    ["no image", labelled({}), /exactly one/],
    ["two images", labelled({ diskimage: "built", "cloud-image": "tiny" }), /exactly one/],
    [
      "a key of the driver",
      labelled({ "cloud-image": "tiny", config: { "user.nodepool_node_id": "1" } }),
      /driver writes/,
    ],
    ["half a core", labelled({ "cloud-image": "tiny", cores: 0.5 }), /cores .*whole number/],
  ])("%s is an error with its place", (_what, over, message) => {
    expect(load(over as Record<string, unknown>).said.join("\n")).toMatch(message);
  });

  test("the schema knows every key that is read, and no other", () => {
    expect(lxdConfig.schema.safeParse(BASE).success).toBe(true);
    expect(lxdConfig.schema.safeParse({ ...BASE, sever: "/" }).success).toBe(false);
    const both = { ...BASE, "cloud-images": [{ name: "x", image: "a", "copy-of": "b" }] };
    expect(lxdConfig.schema.safeParse(both).success).toBe(false);
  });
});
