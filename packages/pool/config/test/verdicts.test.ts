import { describe, expect, it } from "vitest";
import { exitCode, load, loaded, verdict } from "./support.ts";

/** Numbers are those of docs/contract/checks.md, "Configuration". */
describe("both verdicts", () => {
  it.each([
    ["1: empty mapping", "{}", 0],
    ["2: empty file", "", 1],
    ["2: only a comment", "# nothing\n", 1],
    ["a list", "[]", 1],
    ["4: float for int", "labels: [{name: a, min-ready: 1.0}]", 1],
    ["4: int", "labels: [{name: a, min-ready: 1}]", 0],
    ["4: boolean for int", "labels: [{name: a, min-ready: true}]", 0],
    ["5: null list", "labels:", 1],
    ["label without name", "labels: [{min-ready: 1}]", 1],
    ["schema_error: unknown top-level key", "labels: []\nlable: []", 1],
    ["yaml_error: indentation", "diskimages:\n  - name: a\n elements: []", 1],
    ["no_diskimage_name", "diskimages: [{elements: [a]}]", 1],
    ["duplicate_diskimage_name", "diskimages: [{name: a}, {name: a}]", 1],
    ["missing_parent_diskimage", "diskimages: [{name: a}, {name: b, parent: a}, {name: c, parent: nope}]", 1],
    [
      "parent circle is not the validator's concern",
      "diskimages: [{name: a, parent: b}, {name: b, parent: a}]",
      0,
    ],
    ["release float", "diskimages: [{name: a, release: 22.04}]", 1],
    ["release int", "diskimages: [{name: a, release: 21}]", 0],
    ["env-vars with a number", "diskimages: [{name: a, env-vars: {A: 1}}]", 1],
    ["env-vars with a non-string key", "diskimages: [{name: a, env-vars: {1: a}}]", 1],
    ["date as a string", "labels: [{name: 2020-01-01}]", 1],
    ["tenant without a name passes", "tenant-resource-limits: [{max-servers: 1}]", 0],
    ["tenant limit of any name", "tenant-resource-limits: [{tenant-name: t, L-123: 5}]", 0],
    ["tenant limit that is text", "tenant-resource-limits: [{tenant-name: t, max-ram: lots}]", 1],
    ["zookeeper host is not needed by the validator", "zookeeper-servers: [{port: 2181}]", 0],
    ["empty tls", "zookeeper-tls: {}", 0],
    ["documented shell-type", "diskimages: [{name: a, shell-type: sh}]", 0],
    ["null in the list of providers", "providers: [null]", 1],
    ["unknown driver", "providers: [{name: a, driver: nope}]", 1],
    ["null driver", "providers: [{name: a, driver: null}]", 1],
    ["provider without a name", "providers: [{driver: static}]", 1],
    ["static_error: openstack's key", "providers: [{name: s, driver: static, cloud: x, pools: []}]", 1],
    ["static without pools", "providers: [{name: s, driver: static}]", 0],
    [
      "static with old port alias",
      "providers: [{name: s, driver: static, pools: [{name: p, nodes: [{name: h, labels: a, ssh-port: 23}]}]}]",
      0,
    ],
    ["static labels in a pool", "providers: [{name: s, driver: static, pools: [{name: p, labels: []}]}]", 1],
    [
      "static node without labels",
      "providers: [{name: s, driver: static, pools: [{name: p, nodes: [{name: h}]}]}]",
      1,
    ],
    ["30: fake by name, judged by its schema", "providers: [{name: fake-x, driver: aws}]", 1],
    ["fake with cloud", "providers: [{name: fake-x, cloud: c}]", 0],
    ["31: both images", fakeLabel("diskimage: i, cloud-image: c, min-ram: 1"), 1],
    ["31: no image", fakeLabel("min-ram: 1"), 1],
    ["31: no size", fakeLabel("cloud-image: c"), 1],
    ["31: both sizes", fakeLabel("cloud-image: c, min-ram: 1, flavor-name: f"), 0],
    [
      "fake knobs",
      "providers: [{name: fake-x, cloud: c, fake: {latency: {create: [1, 5]}, errors: {create: 0.1}}}]",
      0,
    ],
    ["fake knob misspelled", "providers: [{name: fake-x, cloud: c, fake: {latencies: 1}}]", 1],
    ["a character that YAML has no place for", 'labels: [{name: "a\u0007"}]', 1],
    ["openstack: all references lead somewhere", openstack("a", "i", "i"), 0],
    ["C1: openstack, a diskimage of the provider", openstack("a", "nope", "i"), 1],
    ["C2: openstack, a label of a pool", openstack("nope", "i", "i"), 1],
    ["C3: openstack, the diskimage of a label", openstack("a", "i", "nope"), 1],
    ["C1 to C3 are for openstack only", openstack("nope", "nope", "nope", "fake"), 0],
    ["rate as text", "providers: [{name: fake-x, cloud: c, rate: '0.5'}]", 0],
    ["rate as words", "providers: [{name: fake-x, cloud: c, rate: slow}]", 1],
  ])("%s", (_name, text, code) => {
    expect(exitCode(text), verdict(text).join("\n")).toBe(code);
  });

  it("3: an integer timeout is accepted with a warning and is seconds", () => {
    expect(exitCode("zookeeper-timeout: 10")).toBe(0);
    expect(verdict("zookeeper-timeout: 10")[0]).toMatch(
      /^warning n.yaml:1:1: zookeeper-timeout: is accepted/,
    );
    expect(loaded("zookeeper-timeout: 10").zookeeper.timeoutMs).toBe(10_000);
    expect(loaded("zookeeper-timeout: 2.5").zookeeper.timeoutMs).toBe(2_500);
    expect(exitCode("zookeeper-timeout: '10'")).toBe(1);
    expect(loaded("zookeeper-timeout: '10'").zookeeper.timeoutMs).toBe(10_000);
  });

  it("5: a null list is empty for the loader", () => {
    expect(loaded("labels:\nproviders:\ndiskimages:\n").labels.size).toBe(0);
  });

  it("6, 7, 8: environment", () => {
    const text = "webapp:\n  port: %(NODEPOOL_PORT)\n";
    expect(exitCode(text, { env: { NODEPOOL_PORT: "8005" } })).toBe(0);
    expect(loaded(text, undefined, { NODEPOOL_PORT: "9005" }).webapp.port).toBe(9005);
    expect(exitCode(text)).toBe(1);
    expect(load(text).warnings[0]).toContain("%(NODEPOOL_PORT) stays as it is");
    expect([...loaded('labels: [{name: "%(HOME)"}]', undefined, { HOME: "/x" }).labels.keys()]).toEqual([
      "%(HOME)",
    ]);
  });

  it("what keeps only the loader out fails under --strict", () => {
    const text =
      "providers: [{name: s, driver: static, pools: [{name: p, nodes: [{name: h, labels: [nowhere]}]}]}]";
    expect(exitCode(text)).toBe(0);
    expect(exitCode(text, { strict: true })).toBe(1);
    expect(load(text).errors).toEqual([
      'n.yaml:1:75: providers[0] "s": pools[0].nodes[0].labels: names label nowhere, which is not in the top-level labels; add it there',
    ]);
  });

  it("a key without effect is a warning, and fails under --strict", () => {
    const text = "providers: [{name: fake-x, driver: fake, cloud: c, nodepool-id: x}]";
    expect(verdict(text)).toEqual([
      'warning n.yaml:1:52: providers[0] "fake-x": nodepool-id: has no effect; remove it',
    ]);
    expect(exitCode(text)).toBe(0);
    expect(exitCode(text, { strict: true })).toBe(1);
    expect(load(text).config).toBeDefined();
  });

  it("a key that stands twice is a warning at the one that does not count, and fails under --strict", () => {
    const text = "labels:\n  - name: a\n    min-ready: 1\n    min-ready: 2\n";
    const said =
      "n.yaml:3:5: labels[0].min-ready: has no effect, because the same key in line 4 counts; remove one of the two";
    expect(verdict(text)).toEqual([`warning ${said}`]);
    expect(exitCode(text)).toBe(0);
    expect(verdict(text, true)).toEqual([`error ${said}`]);
    expect(loaded(text).labels.get("a")?.minReady).toBe(2);
    expect(load(text).warnings).toEqual([said]);
  });

  it("a number that cannot be kept as it is written fails under --strict", () => {
    const text = "labels: [{name: a, min-ready: 99999999999999999999}]";
    expect(exitCode(text)).toBe(0);
    expect(verdict(text, true)).toEqual([
      "error n.yaml:1:31: labels[0].min-ready: is 99999999999999999999, which is read as 100000000000000000000; write at most 9007199254740991",
    ]);
    expect(load(text).config).toBeDefined();
  });

  it("checks the files that the configuration names, if asked to, and gives the line that names them", () => {
    const text = `zookeeper-tls: {cert: c.pem, key: k.pem, ca: a.pem}
images-dir: /images
elements-dir: /one:/two`;
    const seen: string[] = [];
    const look = (kind: string, path: string) => {
      seen.push(`${kind} ${path}`);
      return path === "k.pem" || path === "/two" ? "is not there; make it" : undefined;
    };
    expect(verdict(text, true)).toEqual([]);
    expect(verdict(text, true, look)).toEqual([
      "error n.yaml:1:30: zookeeper-tls.key: names k.pem, which is not there; make it",
      "error n.yaml:3:1: elements-dir: names /two, which is not there; make it",
    ]);
    expect(seen).toEqual([
      "file c.pem",
      "file k.pem",
      "file a.pem",
      "folder /one",
      "folder /two",
      "work-folder /images",
    ]);
  });

  it("drivers of the old product that are not built keep the loader out with one line", () => {
    const text = "providers:\n  - name: ec2\n    driver: example\n    pools: []\n";
    expect(exitCode(text)).toBe(0);
    expect(exitCode(text, { strict: true })).toBe(1);
    expect(load(text).errors).toHaveLength(1);
    expect(load(text).errors[0]).toContain(
      'n.yaml:3:5: providers[0] "ec2": driver: needs driver example, which this version',
    );
    expect(verdict("providers: [{name: a}]")).toEqual([
      expect.stringContaining('providers[0] "a": cloud: is missing'),
    ]);
    expect(load("providers: [{name: a, driver: statik}]").errors[0]).toContain("did you mean static?");
  });
});

describe("messages", () => {
  it("name file, line, key path, value and remedy, several at once", () => {
    const text = [
      "labels:",
      "  - name: 5",
      "  - name: b",
      "    min-redy: 2",
      "providers:",
      "  - name: lab",
      "    driver: static",
      "    pools:",
      "      - name: main",
      "        nodes:",
      "          - labels: [b]",
      "            timeout: 1.0",
    ].join("\n");
    expect(verdict(text).filter((line) => line.startsWith("error"))).toEqual([
      "error n.yaml:2:5: labels[0].name: is 5, but must be a string",
      "error n.yaml:4:5: labels[1].min-redy: is not a key here; did you mean min-ready?",
      'error n.yaml:11:13: providers[0] "lab": pools[0].nodes[0].name: is missing and must be a string',
      'error n.yaml:12:13: providers[0] "lab": pools[0].nodes[0].timeout: is 1.0, but must be an integer, without quotes or decimal point',
    ]);
  });

  it("warn in the loader of what only the validator rejects", () => {
    const { config, warnings } = load("labels: [{name: a, min-ready: '2', colour: red}]");
    expect(config?.labels.get("a")?.minReady).toBe(2);
    expect(warnings).toEqual([
      'n.yaml:1:20: labels[0].min-ready: is "2", but must be an integer, without quotes or decimal point',
      "n.yaml:1:36: labels[0].colour: is not a key here",
    ]);
  });
});

function openstack(label: string, listed: string, image: string, driver = "openstack"): string {
  return `labels: [{name: a}]
diskimages: [{name: i}]
providers:
  - name: p
    driver: ${driver}
    cloud: c
    diskimages: [{name: ${listed}}]
    pools: [{name: main, labels: [{name: ${label}, diskimage: ${image}, min-ram: 1}]}]`;
}

function fakeLabel(keys: string): string {
  return `labels: [{name: a}]
diskimages: [{name: i}]
providers:
  - name: fake-p
    cloud: c
    cloud-images: [{name: c}]
    pools: [{name: main, labels: [{name: a, ${keys}}]}]`;
}
