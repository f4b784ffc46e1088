import type { ConfigFinding } from "@nodeyard/driver";
import { describe, expect, it } from "vitest";
import { type StaticProviderConfig, staticConfig } from "../../src/index.ts";

function load(
  nodes: readonly object[],
  pool: object = {},
): { config: StaticProviderConfig | undefined; reported: string[] } {
  const reported: string[] = [];
  const report = ({ severity, path, message }: ConfigFinding) =>
    reported.push(`${severity} ${path.join(".")}: ${message}`);
  const raw = { name: "lab", pools: [{ name: "main", nodes, ...pool }] };
  const config = staticConfig.load(raw, { labels: new Set(["a", "b"]), diskimages: new Map(), report });
  return { config, reported };
}

describe("the static driver's configuration", () => {
  it("38: compiles a host with every default", () => {
    const { config, reported } = load([
      { name: "h", labels: ["a", "b"], "max-parallel-jobs": 3, "host-key-checking": false },
    ]);
    expect(reported).toEqual([]);
    expect(config).toMatchObject({
      name: "lab",
      driver: "static",
      maxConcurrency: Number.POSITIVE_INFINITY,
      priority: 100,
    });
    expect(config?.pools[0]?.own.hosts).toEqual([
      {
        name: "h",
        labels: ["a", "b"],
        connection: { username: "zuul", pythonPath: "auto", shellType: null, type: "ssh", port: 22 },
        slots: 3,
        hostKeyChecking: false,
        hostKeys: [],
        timeoutMs: 5000,
      },
    ]);
    expect([...(config?.pools[0]?.labels.keys() ?? [])]).toEqual(["a", "b"]);
  });

  it("takes the port of winrm hosts from the file only, and the old alias", () => {
    const { config } = load([
      { name: "h", labels: "a", "connection-type": "winrm" },
      { name: "h", labels: "a", "ssh-port": 23 },
      { name: "h", labels: "a", "ssh-port": 23, "connection-port": 24 },
    ]);
    expect(config?.pools[0]?.own.hosts.map(({ connection }) => connection.port)).toEqual([22, 23, 24]);
  });

  it("splits labels at white space everywhere alike, and says so", () => {
    const { config, reported } = load([{ name: "h", labels: " a  b " }]);
    expect(config?.pools[0]?.own.hosts[0]?.labels).toEqual(["a", "b"]);
    expect([...(config?.pools[0]?.labels.keys() ?? [])]).toEqual(["a", "b"]);
    expect(reported).toEqual(["warning pools.0.nodes.0.labels: is split into a and b; write a list instead"]);
  });

  it("refuses the same host, user and port twice, and takes another user", () => {
    const host = { name: "h", labels: ["a"] };
    const { reported } = load([host, { ...host, username: "other" }, { ...host, "connection-port": 22 }]);
    expect(reported).toEqual([
      "error pools.0.nodes.2.name: repeats zuul@h port 22 of lab, pools.0.nodes.0; use max-parallel-jobs for several slots",
    ]);
  });

  it("refuses labels that the top level does not have, missing names and labels, and a pool without a name", () => {
    expect(load([{ name: "h", labels: ["c"] }]).reported[0]).toMatch(
      /^error pools\.0\.nodes\.0\.labels: names label c/,
    );
    expect(load([{ labels: ["a"] }]).reported[0]).toMatch(/^error pools\.0\.nodes\.0\.name: is missing/);
    expect(load([{ name: "h" }]).reported[0]).toMatch(/^error pools\.0\.nodes\.0\.labels: is missing/);
    expect(load([], { name: null }).reported[0]).toMatch(/^error pools\.0\.name: is missing/);
  });

  it("warns of a host without labels", () => {
    const noted = (node: object) =>
      staticConfig.notes({ pools: [{ name: "p", nodes: [{ name: "h", ...node }] }] });
    const at = (key: string, message: string) => ({
      source: "effect",
      path: ["pools", 0, "nodes", 0, key],
      message,
    });
    expect(noted({ labels: [] })).toContainEqual(
      at("labels", "is a list of 0, which no request can name; write at least 1"),
    );
    expect(noted({ labels: "a", "max-parallel-jobs": 0 })).toContainEqual(
      at(
        "max-parallel-jobs",
        "is 0, which keeps the host from being offered; write a whole number of at least 1",
      ),
    );
  });

  it("takes host keys as one string or a list", () => {
    const { config } = load([
      { name: "h", labels: "a", "host-key": "ssh-ed25519 AAAA" },
      { name: "i", labels: "a", "host-key": ["ssh-rsa B", "ssh-ed25519 C"] },
    ]);
    expect(config?.pools[0]?.own.hosts.map(({ hostKeys }) => hostKeys)).toEqual([
      ["ssh-ed25519 AAAA"],
      ["ssh-rsa B", "ssh-ed25519 C"],
    ]);
  });
});
