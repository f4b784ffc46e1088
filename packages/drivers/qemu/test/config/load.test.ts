import type { ConfigFinding } from "@nodeyard/driver";
import { describe, expect, test } from "vitest";
import { qemuConfig } from "../../src/index.ts";

const BASE = {
  name: "local",
  folder: "/srv/vms",
  "cloud-images": [{ name: "tiny", path: "/srv/tiny.qcow2", format: "qcow2", username: "root" }],
  diskimages: [{ name: "built", kernel: "/boot/vmlinuz" }],
  pools: [{ name: "main", labels: [{ name: "vm", "cloud-image": "tiny" }] }],
};

function load(over: Readonly<Record<string, unknown>>) {
  const findings: ConfigFinding[] = [];
  const config = qemuConfig.load(
    { ...BASE, ...over },
    {
      labels: new Set(["vm", "built"]),
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
    expect(config?.own).toMatchObject({
      accelerator: "auto",
      network: "restricted",
      address: "127.0.0.1",
      user: null,
    });
    expect(config?.pools[0]?.labels.get("vm")).toMatchObject({
      image: { kind: "cloud-image", name: "tiny" },
      connection: { username: "root", port: 22 },
      own: { file: { path: "/srv/tiny.qcow2", format: "qcow2" }, boot: null, cores: 1, ram: 1024, disk: 10 },
    });
  });

  test("a label of a built image has its connection and its kernel", () => {
    const { config, said } = load(labelled({ diskimage: "built", ram: 512 }));
    expect(said).toEqual([]);
    expect(config?.pools[0]?.labels.get("vm")).toMatchObject({
      image: { kind: "diskimage", name: "built" },
      connection: { username: "zuul" },
      own: { file: null, boot: { kernel: "/boot/vmlinuz", initrd: null }, ram: 512 },
    });
  });

  test.each([
    ["a relative folder", { folder: "vms" }, /^folder .*absolute/],
    [
      "a format to guess",
      { "cloud-images": [{ name: "tiny", path: "/a", format: "auto" }] },
      /format .*qcow2 or raw/,
    ],
    ["a relative path", { "cloud-images": [{ name: "tiny", path: "a", format: "raw" }] }, /path .*absolute/],
    ["an unknown accelerator", { accelerator: "fast" }, /^accelerator .*auto, kvm, tcg/],
    ["packets that nobody can tell", { network: "outbound" }, /^network .*add user/],
    ["no image", labelled({}), /exactly one/],
    ["two images", labelled({ diskimage: "built", "cloud-image": "tiny" }), /exactly one/],
    ["an image that is nowhere", labelled({ "cloud-image": "tyni" }), /names tyni/],
    ["half a core", labelled({ "cloud-image": "tiny", cores: 0.5 }), /cores .*whole number/],
    ["a key with a command", { "authorized-keys": ['command="sh" ssh-ed25519 AAAA'] }, /no public key/],
    ["a key of two lines", { "authorized-keys": ["ssh-ed25519 AAAA\nssh-rsa BBBB"] }, /no public key/],
  ])("%s is an error with its place", (_what, over, message) => {
    expect(load(over as Record<string, unknown>).said.join("\n")).toMatch(message);
  });

  test("the schema knows every key that is read, and no other", () => {
    expect(qemuConfig.schema.safeParse(BASE).success).toBe(true);
    expect(qemuConfig.schema.safeParse({ ...BASE, floder: "/" }).success).toBe(false);
  });
});
