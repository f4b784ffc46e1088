import { describe, expect, it } from "vitest";
import { connectionString } from "../src/index.ts";
import { load, loaded } from "./support.ts";

const TLS = "zookeeper-tls: {cert: c, key: k, ca: a}\n";

describe("ZooKeeper", () => {
  it("9: IPv6 is normalised, the port is the TLS port, the chroot comes last", () => {
    const { zookeeper } = loaded('zookeeper-servers: [{host: "2001:0db8::1"}, {host: zk2, chroot: /np}]');
    expect(connectionString(zookeeper)).toBe("[2001:db8::1]:2281,zk2:2281/np");
  });

  it("takes the same chroot on every server, and refuses different ones", () => {
    const text = (a: string, b: string) =>
      `zookeeper-servers: [{host: x, chroot: ${a}}, {host: y, chroot: ${b}}]`;
    expect(loaded(text("/np", "/np/")).zookeeper.chroot).toBe("/np");
    expect(load(text("/np", "/other")).errors[0]).toContain("all servers share one");
    expect(load(text("np", "np")).errors[0]).toContain('is "np"; write a path that starts with a slash');
  });

  it("is plain TCP with a warning when there is no TLS, and never half of it", () => {
    const plain = load("zookeeper-servers: [{host: x}]");
    expect(plain.config?.zookeeper.tls).toBeNull();
    expect(plain.warnings[0]).toContain("plain TCP");
    expect(load(`${TLS}zookeeper-servers: [{host: x}]`)).toMatchObject({
      warnings: [],
      config: { zookeeper: { tls: { cert: "c", key: "k", ca: "a" } } },
    });
    expect(load("zookeeper-tls: {cert: c}").errors[0]).toContain("has no key and no ca");
  });

  it("refuses a server without host, a port that is none and a timeout of nothing", () => {
    expect(load("zookeeper-servers: [{port: 1}]").errors[0]).toContain(
      "zookeeper-servers[0].host: is missing",
    );
    expect(load("zookeeper-servers: [{host: x, port: 70000}]").errors[0]).toContain("port");
    expect(load("zookeeper-timeout:").errors[0]).toContain("zookeeper-timeout");
    expect(load("zookeeper-timeout: 0").errors[0]).toContain("above 0");
  });
});

describe("the secure file", () => {
  it("18: its servers replace the main file's, whose TLS stays", () => {
    const config = loaded(
      `${TLS}zookeeper-servers: [{host: main, chroot: /m}]`,
      "zookeeper-servers: [{host: secret}]",
    );
    expect(connectionString(config.zookeeper)).toBe("secret:2281");
    expect(config.zookeeper.tls?.cert).toBe("c");
  });

  it("19: its TLS replaces all three paths", () => {
    expect(load(TLS, "zookeeper-tls: {cert: x}").errors[0]).toMatch(
      /^secure.yaml:1:1: zookeeper-tls: has no key/,
    );
  });

  it("20: names only images that are built", () => {
    const main = "diskimages: [{name: a}, {name: base, abstract: true}]";
    expect(load(main, "diskimages: [{name: a, env-vars: {K: v}}]").errors).toEqual([]);
    expect(load(main, "diskimages: [{name: base, env-vars: {K: v}}]").errors[0]).toMatch(
      /^secure\.yaml:1:\d+: diskimages\[0\]\.name: names diskimage base/,
    );
    expect(load(main, "diskimages: [{name: a}]").errors[0]).toContain("env-vars");
  });

  it("may be empty, but not a list; other keys do nothing", () => {
    expect(load("{}", "").errors).toEqual([]);
    expect(load("{}", "[]").errors[0]).toContain("secure.yaml:1:1: the file is not a mapping");
    expect(load("{}", "labels: [{name: a}]").config?.labels.size).toBe(0);
  });
});

describe("the rest of the top level", () => {
  it("applies every default", () => {
    const config = loaded("{}");
    expect(config).toMatchObject({
      maxHoldAgeMs: Number.POSITIVE_INFINITY,
      webapp: { port: 8005, listenAddress: "0.0.0.0" },
      zookeeper: { servers: [], chroot: "", tls: null, timeoutMs: 10_000 },
      providers: [],
    });
  });

  it("the budget of failed launches is at least one", () => {
    expect(loaded("{}").failedLaunchesPerHour).toBe(60);
    expect(loaded("max-failed-launches-per-hour: 7").failedLaunchesPerHour).toBe(7);
    expect(loaded("max-failed-launches-per-hour: -1").failedLaunchesPerHour).toBe(1);
  });

  it("levels of the log are set by area; areas that are not named keep the level of the start", () => {
    expect(loaded("{}").logLevels).toEqual({});
    expect(loaded("log-level: {all: warn, driver: debug, tree: default}").logLevels).toEqual({
      all: "warn",
      driver: "debug",
    });
  });

  it("the journal keeps a week or 500 MB, and never so little that nothing is left to tell", () => {
    expect(loaded("{}").journal).toEqual({ maxAgeMs: 604_800_000, maxBytes: 500_000_000 });
    expect(loaded("{journal-max-age: 3600, journal-max-size: 20}").journal).toEqual({
      maxAgeMs: 3_600_000,
      maxBytes: 20_000_000,
    });
    expect(loaded("{journal-max-age: 0, journal-max-size: -1}").journal).toEqual({
      maxAgeMs: 60_000,
      maxBytes: 5_000_000,
    });
  });

  it("39: a hold age of 0 or less is no limit", () => {
    expect(loaded("max-hold-age: 0").maxHoldAgeMs).toBe(Number.POSITIVE_INFINITY);
    expect(loaded("max-hold-age: -5").maxHoldAgeMs).toBe(Number.POSITIVE_INFINITY);
    expect(loaded("max-hold-age: 1").maxHoldAgeMs).toBe(1000);
  });

  it("labels: negative stock is none, the last of two counts and is reported", () => {
    const { config, warnings } = load(
      "labels: [{name: a, min-ready: 5}, {name: a, min-ready: -1, max-ready-age: 60}]",
    );
    expect(config?.labels.get("a")).toEqual({ name: "a", minReady: 0, maxReadyAgeMs: 60_000, spares: null });
    expect(warnings).toEqual([
      "n.yaml:1:36: labels[1].name: repeats label a; the last one counts",
      "n.yaml:1:45: labels[1].min-ready: is -1, which counts as 0; write 0 or more",
    ]);
  });

  it("shares: weights by name, 1 where none is given; an empty key turns them on", () => {
    const { config } = load(
      "shares: {tenants: [{name: gold, weight: 3}, {name: tin}], clients: [{name: ci@host, weight: 2}]}",
    );
    expect(config?.shares).toEqual({
      tenants: new Map([
        ["gold", 3],
        ["tin", 1],
      ]),
      clients: new Map([["ci@host", 2]]),
    });
    expect(load("shares: {}").config?.shares).toEqual({ tenants: new Map(), clients: new Map() });
    expect(load("").config?.shares).toBeUndefined();
    expect(load("shares: {tenants: [{name: a, weight: 0}]}").warnings.join()).toContain("weight");
  });

  it("tenants: known keys are resources, others keep their name, misspellings are reported", () => {
    const { config, warnings } = load(
      "tenant-resource-limits: [{tenant-name: t, max-servers: 2, max-ram: 512, L-1: 4, max-server: 1}]",
    );
    expect(config?.tenantLimits.get("t")).toEqual({ instances: 2, ram: 512, "L-1": 4, "max-server": 1 });
    expect(warnings[0]).toContain("max-server");
    expect(load("tenant-resource-limits: [{max-servers: 2}]").errors[0]).toContain("tenant-name");
  });

  it("13, diskimages: a chain of parents, in any order; empty values do not override", () => {
    const { config } = load(`diskimages:
      - {name: leaf, parent: middle, username: ""}
      - {name: middle, parent: root, abstract: true, python-path: /p, username: m}
      - {name: root, abstract: true, username: r, shell-type: sh}`);
    expect([...(config?.diskimages.values() ?? [])]).toEqual([
      { name: "leaf", username: "m", pythonPath: "/p", shellType: "sh" },
    ]);
  });

  it("diskimages: a circle of parents and a missing one fail with their place", () => {
    expect(load("diskimages: [{name: a, parent: b}, {name: b, parent: a}]").errors[0]).toContain(
      "break the circle",
    );
    expect(load("diskimages: [{name: a, parent: x}]").errors).toEqual([
      "n.yaml:1:24: diskimages[0].parent: names parent x of a, which does not exist; add it, or remove the key",
    ]);
  });

  it("providers: two with one name are refused, and pools whose ids Python would confuse are reported", () => {
    const pool = (name: string) => `driver: static, pools: [{name: ${name}}]`;
    expect(load(`providers: [{name: a, ${pool("x")}}, {name: a, ${pool("y")}}]`).errors[0]).toContain(
      "two with the name a",
    );
    expect(load(`providers: [{name: a-b, ${pool("c")}}, {name: a, ${pool("b-c")}}]`).warnings[0]).toContain(
      "share the name a-b-c",
    );
  });
});

describe("a host that exists without the pool", () => {
  const text = (first: string, second: string) => `
labels: [{name: a}, {name: c}]
providers:
  - {name: lab, driver: static, pools: [{name: one, nodes: [{name: ${first}, username: u, labels: a}]}]}
  - {name: lab2, driver: static, pools: [{name: one, nodes: [{name: ${second}, username: u, labels: c}]}]}
`;

  it("is in one provider of the file: in two it would have two users", () => {
    expect(load(text("h.example", "H.example")).errors).toEqual([
      expect.stringContaining(
        "repeats u@H.example port 22 of lab, pools.0.nodes.0; use max-parallel-jobs for several slots",
      ),
    ]);
    expect(load(text("h.example", "other.example")).errors).toEqual([]);
  });
});
