import { describe, expect, it } from "vitest";
import { exitCode, load, loaded, verdict } from "./support.ts";

/** A whole provider of each driver, in one line per mapping, so that one of them can be replaced. */
const providers: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  kubernetes: {
    provider: "context: c, max-cores: 2",
    pool: "name: p, default-label-cpu: 2",
    label: "name: a, type: pod, image: i, gpu: 1.0, gpu-resource: g, env: [{name: A, value: b}]",
  },
  openshift: {
    provider: "context: c, max-projects: 2",
    pool: "name: p",
    label: "name: a, type: pod, image: i, image-pull-secrets: [{name: s}]",
  },
  openshiftpods: { provider: "context: c", pool: "name: p", label: "name: a, spec: {}" },
};

function file(driver: string, changes: Readonly<Record<string, string>> = {}): string {
  const { provider, pool, label } = { ...providers[driver], ...changes };
  return `labels: [{name: a}]
providers: [{name: x, driver: ${driver}, ${provider}, pools: [{${pool}, labels: [{${label}}]}]}]`;
}

/** The only label of the only pool, compiled. */
function label(driver: string, changes: Readonly<Record<string, string>>) {
  const [pool] = loaded(file(driver, changes)).providers[0]!.pools;
  const one = pool!.labels.get("a")!;
  return {
    pool: pool!,
    label: one,
    own: one.own as { spec: { containers: { resources: object }[] }; amounts: object },
  };
}

describe("kubernetes, openshift and openshiftpods", () => {
  it.each(Object.keys(providers))("%s: a whole provider is valid and loads", (driver) => {
    expect(verdict(file(driver))).toEqual([]);
    expect(exitCode(file(driver), { strict: true })).toBe(0);
    expect(load(file(driver)).errors).toEqual([]);
  });

  it.each([
    ["kubernetes", { label: "name: a, type: pod, gpu: 1" }, "gpu: is 1"],
    ["kubernetes", { label: "name: a, type: pod, spec: {}, cpu: 1" }, "has spec and other keys"],
    ["kubernetes", { label: "name: a, image: i" }, "type: is missing"],
    ["kubernetes", { provider: "max-pods: 1" }, "max-pods: is not a key"],
    [
      "kubernetes",
      { label: "name: a, type: pod, image-pull-secrets: []" },
      "image-pull-secrets: is not a key",
    ],
    ["openshift", { provider: "max-projects: 1" }, "context: is missing"],
    ["openshift", { provider: "context: c, max-pods: 1" }, "max-pods: is not a key"],
    ["openshiftpods", { label: "name: a, cpu: 1" }, "has no image"],
    ["openshiftpods", { provider: "context: c, max-projects: 1" }, "max-projects: is not a key"],
  ])("%s refuses %j, as Nodepool's validator does", (driver, changes, message) => {
    const errors = verdict(file(driver, changes)).filter((line) => line.startsWith("error"));
    expect(errors).toEqual([expect.stringContaining(message)]);
    expect(exitCode(file(driver, changes))).toBe(1);
  });

  it.each([
    ["openshiftpods", { label: "name: a, type: pod, image: i" }, "type: is accepted"],
    ["openshift", { provider: "context: c, max-servers: 1" }, "max-servers: is accepted"],
    ["kubernetes", { provider: "token-lifetime: 0" }, "token-lifetime: is a key of Nodeyard"],
    // What no cluster would take, and neither launcher could work with.
    ["kubernetes", { pool: "name: Main" }, "name: is Main"],
    ["kubernetes", { label: "name: a_b, type: pod, image: i" }, "name: is a_b"],
  ])("%s accepts %j with a warning", (driver, changes, message) => {
    const lines = verdict(file(driver, changes)).filter((line) => line.includes(message));
    expect(lines).toEqual([expect.stringMatching(/^warning /)]);
    expect(exitCode(file(driver, changes))).toBe(0);
  });

  it("a limit of the label, else the pool's, else what is requested (check 28)", () => {
    const resources = (changes: Readonly<Record<string, string>>) =>
      label("kubernetes", changes).own.spec.containers[0]!.resources;
    const two = "name: a, type: pod, image: i, cpu: 2";
    expect(resources({ label: two, pool: "name: p, default-label-cpu-limit: 8" })).toEqual({
      requests: { cpu: "2" },
      limits: { cpu: "8" },
    });
    expect(resources({ label: `${two}, cpu-limit: 4`, pool: "name: p, default-label-cpu-limit: 8" })).toEqual(
      {
        requests: { cpu: "2" },
        limits: { cpu: "4" },
      },
    );
    expect(resources({ label: two, pool: "name: p" })).toEqual({
      requests: { cpu: "2" },
      limits: { cpu: "2" },
    });
  });

  it("amounts, GPUs with two decimals, and what a node counts for (check 27)", () => {
    const { own } = label("kubernetes", {
      label:
        "name: a, type: pod, image: i, cpu: 2, memory: 1024, storage: 10, gpu: 0.5, gpu-resource: v/gpu, extra-resources: {seat: 1}",
      pool: "name: p",
    });
    const amounts = { cpu: "2", memory: "1024Mi", "ephemeral-storage": "10M", "v/gpu": "0.50" };
    expect(own.spec.containers[0]!.resources).toEqual({
      requests: amounts,
      limits: amounts,
    });
    expect(own.amounts).toEqual({
      instances: 1,
      cores: 2,
      ram: 1024,
      "ephemeral-storage": 10,
      "v/gpu": 0.5,
      seat: 1,
    });
  });

  it("a spec is used as it is, and counted by its own requests", () => {
    const spec =
      "{containers: [{name: c, image: i, resources: {requests: {cpu: 500m}, limits: {memory: 1Gi}}}]}";
    const { own } = label("kubernetes", { label: `name: a, type: pod, spec: ${spec}`, pool: "name: p" });
    expect(own.spec).toEqual({
      containers: [
        { name: "c", image: "i", resources: { requests: { cpu: "500m" }, limits: { memory: "1Gi" } } },
      ],
    });
    expect(own.amounts).toEqual({ instances: 1, cores: 0.5, ram: 1024 });
  });

  it("pools that set no limit have the provider's", () => {
    const limits = (driver: string, provider: string, pool = "name: p") =>
      label(driver, { provider, pool }).pool.limits;
    expect(limits("kubernetes", "max-servers: 3, max-cores: 8, max-ram: 9")).toMatchObject({
      instances: 3,
      cores: 8,
      ram: 9,
    });
    expect(limits("openshift", "context: c, max-projects: 4").instances).toBe(4);
    expect(limits("openshiftpods", "context: c, max-pods: 5").instances).toBe(5);
    expect(limits("kubernetes", "max-cores: 8", "name: p, max-cores: 2, max-servers: 1")).toMatchObject({
      instances: 1,
      cores: 2,
    });
    expect(
      limits("kubernetes", "max-resources: {a: 1, b: 2}", "name: p, max-resources: {b: 3}"),
    ).toMatchObject({
      a: 1,
      b: 3,
    });
  });
});
