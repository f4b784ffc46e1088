import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ConfigWatch, loadConfig, validateConfig } from "@nodeyard/config";
import type { DriverContext } from "@nodeyard/driver";
import { DriverError, guard } from "@nodeyard/driver";
import { systemClock, systemRandom, VirtualClock } from "@nodeyard/runtime";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { Drivers, loadModule } from "../src/index.ts";

const signal = new AbortController().signal;
const context: DriverContext = {
  clock: systemClock,
  random: systemRandom,
  log: { debug() {}, info() {}, warn() {}, error() {} },
  scan: { scan: () => Promise.reject(new DriverError("timeout", "nothing scans here")) },
  installation: "i",
};

/** A driver in a folder that has no package of ours anywhere above it. */
function source(fields: string): string {
  return `
    import { DriverError, driverConfig, Key } from "@nodeyard/driver";
    type Raw = { readonly name: string };
    export const fine = {
      name: "lab",
      contract: 1,
      capabilities: { launches: true, inventory: false, probes: false, tags: true },
      config: {
        ...driverConfig("lab", { board: Key.text("Which one.", { needed: true }) }, () => undefined),
        load: ({ name }: Raw) => ({ name, driver: "lab", pools: [], own: {} }),
      },
      open: async () => ({
        create() {}, remove() {}, quota() {}, need() {}, inventory() {}, probe() {}, removeResource() {}, close() {},
        find: async () => { throw new DriverError("quota", "all boards are taken"); },
        list: async () => { throw new Error("no answer"); },
      }),
      ${fields}
    };`;
}

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "nodeyard-outside-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
});

function put(path: string, text: string): string {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

test("a driver by its path: the program's SDK is its own, and all that it throws is a DriverError", async () => {
  const driver = new Drivers(loadModule).driver(put("lab.ts", source("")));
  expect(driver).toMatchObject({ name: "lab", contract: 1 });
  const config = { name: "desk", driver: "lab" };
  const provider = guard(await driver.open(config as never, context), config, context);
  const errors = [provider.find({} as never, signal), provider.list(signal)].map((call) =>
    call.catch((error) => error),
  );
  const [refused, untyped] = await Promise.all(errors);
  expect(refused).toBeInstanceOf(DriverError);
  expect(refused).toMatchObject({ kind: "quota", message: "all boards are taken" });
  expect(untyped).toBeInstanceOf(DriverError);
  expect(untyped).toMatchObject({ kind: "fatal", message: "desk: list: no answer" });
});

test("packages, by short name and by npm:, are looked for in this order and must hold the driver", () => {
  const asked: string[] = [];
  const other = { ...new Drivers(loadModule).driver("fake"), name: "lab" };
  const drivers = new Drivers((specifier) => {
    asked.push(specifier);
    if (specifier.startsWith("@nodeyard/"))
      throw Object.assign(new Error(`Cannot find module '${specifier}'`), { code: "MODULE_NOT_FOUND" });
    return { default: other, other, helper: () => {} };
  });
  expect(drivers.driver("lab").name).toBe("lab");
  expect(drivers.driver("npm:@acme/boards").name).toBe("lab");
  expect(asked).toEqual(["@nodeyard/driver-lab", "nodeyard-driver-lab", "@acme/boards"]);
  expect(drivers.names()).toEqual(expect.arrayContaining(["fake", "lab", "npm:@acme/boards", "static"]));
  expect(drivers.get("desk")).toMatchObject({
    trouble: expect.stringContaining("exports no driver named desk"),
  });
});

test("a file that cannot be loaded, or is no driver, is named in one line", () => {
  const drivers = new Drivers(loadModule);
  const troubles: readonly (readonly [path: string, text: string, reported: string])[] = [
    ["contract.ts", source("contract: 2"), "was written for driver contract 2, and this Nodeyard has 1"],
    [
      "half.ts",
      source("capabilities: { launches: true }"),
      "must declare capabilities.inventory as true or false",
    ],
    ["none.ts", "export const nothing = 1;", "exports no driver"],
    [
      "two.ts",
      `${source("")}\nexport const more = { ...fine };`,
      "exports 2 drivers; one module is one driver",
    ],
    ["syntax.ts", "export const const", "cannot be loaded: Expected ident"],
    [
      "enum.ts",
      "export enum A { b }",
      "cannot be loaded: TypeScript enum is not supported in strip-only mode",
    ],
    ["throws.ts", 'throw new Error("no licence");', "cannot be loaded: no licence"],
    ["lacks.ts", 'import "some-sdk";', "cannot be loaded: Cannot find package 'some-sdk' imported from"],
    ["waits.ts", "await 1; export {};", "has a top-level await; wait in open() instead"],
    ["node_modules/published/index.ts", source(""), "publish the package as JavaScript"],
  ];
  for (const [path, text, reported] of troubles) {
    const file = put(path, text);
    const trouble = drivers.get(file);
    expect(trouble).toEqual({ trouble: expect.stringContaining(`driver ${file} `) });
    expect(trouble).toEqual({ trouble: expect.stringContaining(reported) });
    expect(JSON.stringify(trouble)).not.toContain("\\n");
  }
  const absent = join(folder, "absent.ts");
  expect(drivers.get(absent)).toEqual({
    trouble: `driver ${JSON.stringify(absent)} is not installed: there is no file ${absent}`,
  });
  expect(() => drivers.driver("npm:nodeyard-no-such-thing")).toThrow(
    "there is no package nodeyard-no-such-thing",
  );
});

test("a provider that lacks methods is refused when it is opened", async () => {
  const file = put("lab.ts", source("open: async () => ({ find() {} })"));
  const opening = new Drivers(loadModule).driver(file).open({ name: "desk" } as never, context);
  await expect(opening).rejects.toMatchObject({
    kind: "configuration",
    message: expect.stringMatching(
      /^driver lab: the value that open resolves with has no method create, remove, list/,
    ),
  });
});

test("a path starts from the configuration's folder; its driver judges and compiles the provider", () => {
  const file = put("drivers/lab.ts", source(""));
  const path = put("nodepool.yaml", "");
  const input = (keys: string, driver = "./drivers/lab.ts") => ({
    path,
    env: {},
    drivers: new Drivers(loadModule),
    text: `labels: []\nproviders:\n  - name: desk\n    driver: ${driver}\n${keys}`,
  });
  const right = input("    board: a\n");
  expect(validateConfig(right)).toMatchObject({ exitCode: 0, findings: [] });
  const { config } = loadConfig(right);
  expect(config?.providers).toMatchObject([{ name: "desk", driver: file }]);
  expect(right.drivers.driver(config!.providers[0]!.driver).name).toBe("lab");

  expect(validateConfig(input("    bored: a\n"))).toMatchObject({
    exitCode: 1,
    findings: [
      { line: 3, path: 'providers[0] "desk": board', message: "is missing and must be a string" },
      { line: 5, path: 'providers[0] "desk": bored', message: "is not a key here" },
    ],
  });
  const gone = validateConfig(input("", "../drivers/lab.ts"));
  expect(gone).toMatchObject({
    exitCode: 1,
    findings: [
      {
        severity: "error",
        line: 4,
        path: 'providers[0] "desk": driver',
        message: expect.stringContaining("there is no file"),
      },
    ],
  });
  expect(loadConfig(input("", "drivers/lab.ts")).findings).toMatchObject([
    { severity: "error", message: expect.stringContaining('by a path that starts with "./"') },
  ]);
});

test.each([
  ["throws", 'load() { throw new TypeError("no such board"); }', "no such board"],
  ["compiles to nothing useful", "load: () => ({})", "it made something without name or pools"],
  ["compiles to nothing and says nothing", "load: () => undefined", "it made nothing of it"],
])("a driver that %s is told at the provider's place, and nothing else breaks", (_, load, why) => {
  const path = put("lab.ts", source(`config: { ...driverConfig("lab", {}, () => undefined), ${load} }`));
  const text = `labels: []\nproviders:\n  - {name: desk, driver: ${path}}\n`;
  const input = { text, path: "n.yaml", env: {}, drivers: new Drivers(loadModule) };
  const message = `makes driver lab fail, which is a bug in the driver: ${why}`;
  expect(loadConfig(input)).toMatchObject({
    config: undefined,
    findings: [{ severity: "error", line: 3, message }],
  });
  expect(validateConfig({ ...input, strict: true })).toMatchObject({ exitCode: 1, findings: [{ message }] });
});

test("a changed file that names a driver which cannot be used leaves what was in force", async () => {
  put("lab.ts", source(""));
  const file = (driver: string) =>
    `labels: []\nproviders:\n  - {name: desk, board: a, driver: ${driver}}\n  - {name: fake-cloud, driver: fake, cloud: c}\n`;
  const path = put("nodepool.yaml", file("./lab.ts"));
  const around = { path, env: {}, drivers: new Drivers(loadModule) };
  const { config } = loadConfig({ ...around, text: file("./lab.ts") });
  const reported: string[] = [];
  const changes: unknown[] = [];
  const watch = new ConfigWatch({
    ...around,
    clock: new VirtualClock(),
    config: config!,
    onRead: () => undefined,
    onChange: (_, { providersChanged }) => void changes.push(providersChanged),
    onSame: () => undefined,
    onError: (findings) => void reported.push(...findings.map(({ line, message }) => `${line} ${message}`)),
  });
  onTestFinished(() => watch.close());
  put("broken.ts", "export const const");
  put("nodepool.yaml", file("./broken.ts"));
  await watch.check();
  expect(reported).toEqual([`3 driver ${join(folder, "broken.ts")} cannot be loaded: Expected ident`]);
  expect(watch.config).toBe(config);
  put("other.ts", source(""));
  put("nodepool.yaml", `# mended\n${file("./other.ts")}`);
  await watch.check();
  expect(changes).toEqual([["desk"]]);
});
