import { describe, expect, it } from "vitest";
import { exitCode, load, verdict } from "./support.ts";

/** A whole provider of Nodepool's keys, in one line per mapping, so that one of them can be replaced. */
const WHOLE = {
  provider: "project: ci-project-1, region: us-central1, zone: us-central1-a, launch-retries: 2",
  "cloud-images": "name: c, image-project: debian-cloud, image-family: debian-12, username: u, key: k",
  pool: "name: p, max-servers: 4, use-internal-ip: true",
  label: "name: a, cloud-image: c, instance-type: e2-standard-4, volume-type: pd-ssd, volume-size: 30",
};

function file(changes: Readonly<Record<string, string>> = {}): string {
  const { provider, pool, label, ...lists } = { ...WHOLE, ...changes };
  const listed = Object.entries(lists).map(([key, entry]) => `, ${key}: [{${entry}}]`);
  return `labels: [{name: a}]
diskimages: [{name: i}]
providers:
  - {name: x, driver: gce, ${provider}${listed.join("")}, pools: [{${pool}, labels: [{${label}}]}]}`;
}

const words = (text: string) => text.split(" ");
/** Values of each type of Nodepool's validator, and values that it refuses. */
const TYPES: Readonly<Record<string, readonly [good: readonly string[], bad: readonly string[]]>> = {
  text: [["x", "''"], words("5 1.5 true [x] {a:1} null")],
  integer: [words("5 0 -1 true"), words("x '5' 1.5 [5] null")],
  flag: [words("true false"), words("x 1 'true' null")],
  mapping: [
    ["{}", "{a: b}"],
    ["[a]", "x", "null"],
  ],
};
const CONNECTION = words("connection-type python-path shell-type");
/** All keys of Nodepool's validator, by where they are and their type. */
const KEYS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  provider: {
    text: words("project region zone"),
    integer: words("boot-timeout launch-timeout launch-retries rate-limit max-concurrency priority"),
  },
  "cloud-images": {
    text: [...CONNECTION, ...words("name username image-id image-project image-family key")],
    integer: ["connection-port"],
  },
  pool: {
    text: ["name"],
    integer: words("max-servers priority"),
    flag: ["use-internal-ip"],
    mapping: ["node-attributes"],
  },
  label: { text: words("name cloud-image instance-type volume-type"), integer: ["volume-size"] },
};
const NEEDED: Readonly<Record<keyof typeof WHOLE, Readonly<Record<string, string>>>> = {
  provider: { project: "p", region: "r", zone: "z" },
  "cloud-images": {},
  pool: { name: "p" },
  label: { name: "a", "cloud-image": "c", "instance-type": "t" },
};
const LEVELS = Object.keys(KEYS) as (keyof typeof WHOLE)[];

describe("each key of gce", () => {
  const yaml = (fields: Readonly<Record<string, string>>) =>
    Object.entries(fields)
      .map(([key, value]) => `${key}: ${value}`)
      .join(", ");
  const codeOf = (level: keyof typeof WHOLE, fields: Readonly<Record<string, string>>) => {
    const all = Object.fromEntries(LEVELS.map((one) => [one, yaml(NEEDED[one])]));
    return exitCode(file({ ...all, [level]: yaml(fields) }));
  };

  it.each(LEVELS)("of a %s takes what Nodepool's validator takes, and nothing else", (level) => {
    const wrong = Object.entries(KEYS[level]!).flatMap(([type, keys]) =>
      keys.flatMap((key) => {
        const judged = (values: readonly string[], code: number) =>
          values
            .filter((value) => codeOf(level, { ...NEEDED[level], [key]: value }) !== code)
            .map((value) => `${key}: ${value} is not judged with ${code}`);
        const [good, bad] = TYPES[type]!;
        return [...judged(good, 0), ...judged(bad, 1)];
      }),
    );
    expect(wrong).toEqual([]);
  });

  it.each(LEVELS)("of a %s that Nodepool's validator wants, and none that it does not know", (level) => {
    expect(codeOf(level, NEEDED[level])).toBe(0);
    expect(codeOf(level, { ...NEEDED[level], "no-such-key": "x" })).toBe(1);
    for (const missing of Object.keys(NEEDED[level])) {
      const { [missing]: _, ...others } = NEEDED[level];
      expect([missing, codeOf(level, others)]).toEqual([missing, 1]);
    }
  });
});

describe("gce, as config-validate judges it", () => {
  it("a whole one is valid and loads", () => {
    expect(verdict(file())).toEqual([]);
    expect(exitCode(file(), { strict: true })).toBe(0);
    expect(load(file()).errors).toEqual([]);
    expect(load(file()).config?.providers[0]?.pools[0]).toMatchObject({
      availabilityZones: ["us-central1-a"],
      useInternalIp: true,
      own: { network: "default", publicIpv4: true },
    });
  });

  it.each([
    [{ pool: "name: p, host-key-checking: false" }, "host-key-checking: is accepted"],
    [{ provider: `${WHOLE.provider}, rate-limit: 1` }, "rate-limit: has no effect"],
    [{ provider: `${WHOLE.provider}, rate: 2` }, "rate: is read by Nodepool's loader, and refused"],
    [{ provider: `${WHOLE.provider}, bucket: ci-images`, diskimages: "name: i" }, "is a key of Nodeyard"],
    [{ label: `${WHOLE.label}, use-spot: true` }, "use-spot: is a key of Nodeyard"],
    [{ "cloud-images": "name: c" }, "which has neither image-id nor image-family"],
  ])("accepts %j with a warning", (changes, message) => {
    const lines = verdict(file(changes));
    expect(lines.filter((line) => !line.startsWith("warning"))).toEqual([]);
    expect(lines).toContainEqual(expect.stringContaining(message));
    expect(exitCode(file(changes))).toBe(0);
  });

  // What only the loader refuses.
  it.each([
    [{ label: "name: a, cloud-image: other, instance-type: t" }, "not in this provider's cloud-images"],
    [{ provider: "project: ci, region: us-central1, zone: us-east1-b" }, "which is not in us-central1"],
    [{ pool: "name: p, availability-zones: [us-central1-a, us-east1-b]" }, "has us-east1-b, which is not in"],
    [{ provider: "project: ci, region: us-central1, zone: a" }, "zone: is"],
    [{ label: "name: a, cloud-image: c, instance-type: t, max-run-duration: 5" }, "max-run-duration: is"],
  ])("%j does not load", (changes, message) => {
    expect(load(file(changes)).errors).toContainEqual(expect.stringContaining(message));
    expect(exitCode(file(changes))).toBe(0);
  });
});
