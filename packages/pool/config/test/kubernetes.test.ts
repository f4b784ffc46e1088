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
  openshiftpods: {
    provider: "context: c",
    pool: "name: p",
    label: "name: a, spec: {containers: [{name: a, image: i}]}",
  },
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

/** A value of each type of Nodepool's validator, and one that it refuses. */
const TYPES: Readonly<Record<string, readonly [good: string, bad: string]>> = {
  text: ["x", "5"],
  integer: ["5", "x"],
  float: ["1.0", "1"],
  flag: ["true", "x"],
  list: ["[{a: b}]", "{a: b}"],
  mapping: ["{a: b}", "[a]"],
  amounts: ["{a: 5}", "{a: x}"],
  env: ["[{name: A, value: b}]", "[{name: A}]"],
};
const words = (text: string) => text.split(" ");
/** All keys of Nodepool's validator, by where they are and their type. */
const KEYS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  provider: {
    text: ["context"],
    integer: words("launch-retries max-concurrency priority max-cores max-ram"),
    amounts: ["max-resources"],
  },
  pool: {
    text: ["name"],
    integer: words(
      "max-servers priority max-cores max-ram default-label-cpu default-label-memory default-label-storage default-label-cpu-limit default-label-memory-limit default-label-storage-limit",
    ),
    amounts: words("max-resources default-label-extra-resources"),
    mapping: ["node-attributes"],
  },
  label: {
    text: words("image image-pull python-path shell-type gpu-resource scheduler-name"),
    integer: words("cpu memory storage cpu-limit memory-limit storage-limit"),
    float: ["gpu"],
    env: ["env"],
    flag: ["privileged"],
    list: words("volumes volume-mounts"),
    mapping: words("node-selector labels dynamic-labels annotations"),
    amounts: ["extra-resources"],
  },
};
/** The same that only some of the drivers have. */
const OWN: Readonly<Record<string, readonly (readonly [level: string, type: string, key: string])[]>> = {
  kubernetes: [
    ["provider", "integer", "max-servers"],
    ["label", "text", "type"],
  ],
  openshift: [
    ["provider", "integer", "max-projects"],
    ["label", "text", "type"],
    ["label", "list", "image-pull-secrets"],
  ],
  openshiftpods: [
    ["provider", "integer", "max-pods"],
    ["label", "list", "image-pull-secrets"],
  ],
};

describe("kubernetes, openshift and openshiftpods", () => {
  it.each(Object.keys(providers))(
    "%s: each key takes what Nodepool's validator takes, and nothing else",
    (driver) => {
      const shared = Object.entries(KEYS).flatMap(([level, types]) =>
        Object.entries(types).flatMap(([type, keys]) => keys.map((key) => [level, type, key] as const)),
      );
      const codes = (level: string, key: string, value: string) => {
        const base = {
          provider: { context: "c" },
          pool: { name: "p" },
          label: { name: "a", image: "i", ...(driver === "openshiftpods" ? {} : { type: "pod" }) },
        }[level] as Readonly<Record<string, string>>;
        const fields = Object.entries({ ...base, [key]: value }).map(([name, one]) => `${name}: ${one}`);
        const label = driver === "openshiftpods" ? "name: a, image: i" : "name: a, type: pod, image: i";
        return exitCode(file(driver, { label, [level]: fields.join(", ") }));
      };
      const verdicts = [...shared, ...OWN[driver]!].map(([level, type, key]) => {
        const [good, bad] = TYPES[type]!;
        return [level, key, codes(level, key, good), codes(level, key, bad)];
      });
      expect(verdicts.filter(([, , good, bad]) => good !== 0 || bad !== 1)).toEqual([]);
    },
  );

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
    expect(errors).toContainEqual(expect.stringContaining(message));
    expect(exitCode(file(driver, changes))).toBe(1);
  });

  it.each([
    ["openshiftpods", { label: "name: a, type: pod, image: i" }, "type: is accepted"],
    ["openshift", { provider: "context: c, max-servers: 1" }, "max-servers: is accepted"],
    ["kubernetes", { provider: "token-lifetime: 0" }, "token-lifetime: is a key of Nodeyard"],
    ["openshift", { label: "name: a, type: Pod" }, 'type: is "Pod", which counts as project'],
  ])("%s accepts %j with a warning", (driver, changes, message) => {
    const lines = verdict(file(driver, changes)).filter((line) => line.includes(message));
    expect(lines).toEqual([expect.stringMatching(/^warning /)]);
    expect(exitCode(file(driver, changes))).toBe(0);
  });

  it.each([
    ["kubernetes", { pool: "name: Main" }, 'name: is "Main"'],
    ["kubernetes", { label: "name: a_b, type: pod, image: i" }, "name: is a_b"],
    ["kubernetes", { label: "name: a, type: pod" }, "is a pod without an image"],
    [
      "openshift",
      { label: "name: a, type: pod, image: i, volume-mounts: [{name: v}]" },
      "mount the volume v",
    ],
  ])(
    "%s refuses %j, which no cluster would take, though Nodepool's validator does not",
    (driver, changes, message) => {
      const lines = verdict(file(driver, changes)).filter((line) => line.includes(message));
      expect(lines).toEqual([expect.stringMatching(/^error /)]);
      expect(exitCode(file(driver, changes))).toBe(0);
    },
  );

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

  it("a generated pod of OpenShift always names its pull secrets (check 35)", () => {
    const spec = (driver: string, more: string) =>
      label(driver, {
        provider: "context: c",
        label: `name: a, image: i${driver === "openshift" ? ", type: pod" : ""}${more}`,
        pool: "name: p",
      }).own.spec;
    for (const driver of ["openshift", "openshiftpods"]) {
      expect(spec(driver, "")).toMatchObject({ imagePullSecrets: [] });
      const named = ", image-pull-secrets: [{name: s}]";
      expect(spec(driver, named)).toMatchObject({ imagePullSecrets: [{ name: "s" }] });
    }
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
