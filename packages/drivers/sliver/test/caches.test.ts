import type { NodeReport, SliverReport, SliverVolume } from "@nodeyard/sliver-protocol";
import { describe, expect, test } from "vitest";
import { type Caches, type CacheUser, demandOwnCaches, leaves, leaving, volumesOf } from "../src/caches.ts";
import type { SliverHost } from "../src/sliver-host.ts";
import { SliverHosts } from "../src/sliver-hosts.ts";
import { leaveCaches } from "../src/steps.ts";
import { load, whole } from "./config/load.ts";
import { contextOf } from "./rig.ts";

const signal = new AbortController().signal;
const context = { signal, externalId: null };

function cachesOf(...caches: readonly unknown[]): { caches?: Caches; findings: readonly unknown[] } {
  const { config, findings } = load(whole({ caches }));
  const found = config?.pools[0]?.labels.get("small")?.own.caches;
  return { ...(found && { caches: found }), findings };
}

const user = (some: Partial<CacheUser["request"]> = {}): CacheUser => ({
  installation: "lab",
  label: "small",
  request: {
    id: "200-1",
    requestor: "Nodeyard:lease:1",
    requestorData: { client: "ann", project: "web", branch: "main" },
    tenantName: "acme",
    ...some,
  },
});

describe("caches of a label", () => {
  const { caches, findings } = cachesOf("mirror", {
    name: "npm",
    size: 100,
    key: ["project", "word:v2"],
    commit: "success",
    "commit-only": { branch: "main" },
    "max-age": 3600,
  });

  test("a name is a folder of the machine; a size makes it a cache of the requests that its key names, within their tenant", () => {
    expect(findings).toEqual([]);
    expect(caches?.folders).toEqual(["mirror"]);
    expect(volumesOf(caches!, user())).toEqual([
      {
        ...{ name: "npm", path: "/cache/npm", size: 102_400, maxAge: 3600 },
        ...{ key: ["lab", "acme", "project=web", "word=v2"], commit: "success" },
      },
    ]);
    expect(volumesOf(caches!, user({ tenantName: "umbrella" }))[0]?.key).toEqual([
      "lab",
      "umbrella",
      "project=web",
      "word=v2",
    ]);
  });

  test("a request of another branch reads it and leaves nothing; one that does not say its project, or nobody's, has none", () => {
    const of = (data: object, some = {}) => volumesOf(caches!, user({ requestorData: data, ...some }))[0];
    expect(of({ project: "web", branch: "change" })).toMatchObject({ commit: "never" });
    expect(of({ project: "web", branch: "change" })?.key).toEqual(
      of({ project: "web", branch: "main" })?.key,
    );
    expect(of({ branch: "main" })?.key).toBeUndefined();
    expect(of({ project: "web" }, { requestor: "NodePool:min-ready" })?.key).toBeUndefined();
    expect(volumesOf(caches!, undefined)[0]?.key).toBeUndefined();
  });

  test("a value of one fact does not reach the cache of another fact with that value", () => {
    const keyOf = (part: string) => {
      const by = cachesOf({ name: "npm", size: 1, key: [part], commit: "success" }).caches!;
      const data = { client: "v2", project: "v2", branch: "v2" };
      return volumesOf(by, { ...user({ requestorData: data }), label: "v2" })[0]!.key!.join();
    };
    const parts = ["label", "client", "project", "branch", "word:v2"];
    expect(new Set(parts.map(keyOf)).size).toBe(parts.length);
  });

  test("what cannot work is said when the file is read", () => {
    const said = (cache: object) => JSON.stringify(cachesOf({ name: "npm", size: 1, ...cache }).findings);
    for (const path of ["/etc/x", "/usr", "relative", "/a/../etc", "/proc/self"])
      expect(said({ path })).toContain(path);
    expect(said({ key: ["pipeline"] })).toContain("label, client, tenant, project, branch or word:TEXT");
    expect(said({ commit: "maybe" })).toContain("success, always, never");
    const two = cachesOf({ name: "a", size: 1, path: "/x" }, { name: "b", size: 1, path: "/x/y" });
    expect(JSON.stringify(two.findings)).toContain("none is within another");
  });
});

test("a sliver goes where most of its caches are, if there is room, and else to the emptiest machine", async () => {
  const { caches } = cachesOf(
    { name: "npm", size: 1, key: ["project"], commit: "always" },
    { name: "ccache", size: 1, key: ["label"], commit: "always" },
  );
  const volumes = volumesOf(caches!, user());
  const other = volumesOf(caches!, user({ tenantName: "umbrella" }));
  const machine = (name: string, slivers: number, has: readonly SliverVolume[]) => {
    const report = { node: name, capacity: { slivers: 4 }, caches: has } as object;
    const listed = Array.from({ length: slivers }, (_, n) => ({ name: `s${n}`, rspec: {} }));
    return { name, usable: async () => ({ ...report, slivers: listed }) } as unknown as SliverHost;
  };
  const { log } = contextOf("lab");
  const choice = async (...all: readonly SliverHost[]) => {
    const wish = { name: "n1", need: { instances: 1 }, volumes };
    return (await new SliverHosts(all, { log }).choose(wish, signal)).host.name;
  };
  const [empty, one, both] = [
    machine("a", 0, other),
    machine("b", 1, volumes.slice(1)),
    machine("c", 3, volumes),
  ];
  expect(await choice(empty, one, both)).toBe("c");
  expect(await choice(empty, one, machine("c", 4, volumes))).toBe("b");
  expect(await choice(machine("b", 1, volumes), machine("c", 0, volumes))).toBe("c");
  expect(await choice(empty, machine("c", 4, volumes))).toBe("a");
});

describe("what a sliver leaves", () => {
  const of = (commit: "success" | "always" | "never") => ({
    name: "n1",
    volumes: [{ name: "npm", path: "/cache/npm", size: 1024, key: ["lab", "acme"], commit }],
  });

  test.each([
    ["success", "well", true],
    ["success", "back", false],
    ["success", undefined, false],
    ["always", "back", true],
    ["always", undefined, false],
    ["never", "well", false],
  ] as const)("%s, returned %s: %s", (commit, returned, isLeft) => {
    const step = { ...context, ...(returned && { returned }) };
    expect(leaves(of(commit), step)).toBe(isLeft);
    const spec = { ...of(commit), generation: 1, instantiation: "plc-instantiated" as const };
    expect(leaving(spec, step).volumes?.[0]?.commit).toBe(isLeft ? "at-end" : commit);
  });

  test("the end of a sliver does not wait for a machine that will not note it", async () => {
    const reports: Partial<SliverReport>[] = [
      { phase: "running", settled: true },
      { phase: "stopped", settled: false },
      { phase: "running", settled: false, error: { code: "sliver.command", message: "no", attempts: 1 } },
    ];
    for (const some of reports) {
      const report = { slivers: [{ ...of("success"), tags: {}, ...some }] } as unknown as NodeReport;
      const edits: string[] = [];
      const until = async <T>(holds: (one: NodeReport) => T | undefined) => {
        expect(
          holds({
            slivers: [{ ...report.slivers[0], phase: "running", settled: false }],
          } as unknown as NodeReport),
        ).toBe(some.error === undefined ? undefined : true);
        return holds(report) ?? expect.fail(`it waits for ${JSON.stringify(some)}`);
      };
      const changeOfPool = async () => {
        edits.push("changed");
        return report;
      };
      await leaveCaches({ status: async () => report, changeOfPool, until }, "n1", {
        ...context,
        returned: "well",
      });
      expect(edits).toEqual(["changed"]);
    }
  });

  test("a sliver with another request's cache is not handed over", () => {
    const report = { ...of("never"), tags: { request: "200-1" } } as unknown as Parameters<
      typeof demandOwnCaches
    >[0];
    demandOwnCaches(report, { ...context, request: "200-1" });
    expect(() => demandOwnCaches(report, { ...context, request: "200-2" })).toThrow(
      "has caches of request 200-1",
    );
    const nobodys = { ...report, volumes: report.volumes!.map(({ key: _, ...rest }) => rest) };
    demandOwnCaches(nobodys, { ...context, request: "200-2" });
  });
});
