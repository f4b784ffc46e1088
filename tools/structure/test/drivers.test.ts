import { fileURLToPath } from "node:url";
import { type Driver, driverProblem } from "@nodeyard/driver";
import { describe, expect, it } from "vitest";
import { DRIVER_FILES, DRIVER_FOLDER } from "../rules.ts";
import { readWorkspace } from "../workspace.ts";
import { findingsIn, manifest } from "./tree.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const folders = [
  ...new Set(readWorkspace(root).files.flatMap(({ path }) => DRIVER_FOLDER.exec(path)?.[0] ?? [])),
];

/** A driver outside the packages, correct except for `files`. */
function driver(
  files: Readonly<Record<string, string>>,
  dependencies: Readonly<Record<string, string>> = {},
) {
  const folder = "examples/driver-x";
  const roles = Object.fromEntries(DRIVER_FILES.map((name) => [`${folder}/${name}`, "\n"]));
  return findingsIn({
    ...roles,
    [`${folder}/package.json`]: manifest("nodeyard-driver-x", dependencies),
    [`${folder}/test/x.test.ts`]: 'import { driverConformance } from "@nodeyard/driver-testkit";\n',
    ...Object.fromEntries(Object.entries(files).map(([name, text]) => [`${folder}/${name}`, text])),
  });
}

describe("every driver of this repository", () => {
  it("is found", () =>
    expect(folders.sort()).toEqual(
      expect.arrayContaining(["examples/driver-lab", "packages/drivers/fake", "packages/drivers/static"]),
    ));

  it.each(folders)("%s exports one driver of its folder's name", async (folder) => {
    const door: object = await import(`${root}/${folder}/src/index.ts`);
    const drivers = Object.values(door).filter((value) => driverProblem(value) === undefined) as Driver[];
    expect(drivers.map(({ name }) => name)).toEqual([folder.replace(/.*\/(driver-)?/, "")]);
  });
});

describe("a driver", () => {
  it("is correct with its files, the suite, and its declared dependencies", () => {
    expect(driver({})).toEqual([]);
    const used =
      'import { str } from "@nodeyard/driver";\nimport { posix } from "node:path";\nimport "./own.ts";\n';
    expect(driver({ "src/driver.ts": used }, { "@nodeyard/driver": "1" })).toEqual([]);
  });

  it("has every file in its place", () => {
    const findings = findingsIn({ "examples/driver-x/src/index.ts": "\n" });
    const missing = DRIVER_FILES.filter((name) => name !== "src/index.ts");
    expect(findings).toEqual([
      ...missing.map((name) => `driver examples/driver-x has no ${name}; every driver has one`),
      "driver examples/driver-x/test no test imports @nodeyard/driver-testkit",
    ]);
  });

  it("runs the shared suite, and no copy", () => {
    expect(driver({ "test/x.test.ts": 'import { driverConformance } from "./own-kit.ts";\n' })).toEqual([
      "driver examples/driver-x/test no test imports @nodeyard/driver-testkit",
    ]);
  });

  it.each([
    ['import "pino";\n', "imports pino; logs and counts are what layers around a driver are for"],
    ['import "left-pad";\n', "imports left-pad, which examples/driver-x/package.json does not declare"],
    ['import "@nodeyard/tree";\n', "imports @nodeyard/tree; the SDK is @nodeyard/driver alone"],
    ['import "../../driver-y/src/index.ts";\n', "../../driver-y/src/index.ts leaves the driver"],
  ])("does not import what is not its business: %s", (text, message) => {
    const declared = { pino: "1", "@nodeyard/tree": "1" };
    expect(driver({ "src/provider.ts": text }, declared)).toEqual([
      `driver examples/driver-x/src/provider.ts:1 ${message}`,
    ]);
  });

  it("touches files and time only at its edge", () => {
    const text = 'import { readFileSync } from "node:fs";\n';
    expect(driver({ "src/edge/files.ts": text })).toEqual([]);
    expect(driver({ "src/provider.ts": text })).toEqual([
      expect.stringContaining("effect examples/driver-x/src/provider.ts:1 imports node:fs"),
    ]);
    expect(driver({ "src/provider.ts": "setTimeout(() => {}, 1);\n" })).toHaveLength(1);
  });
});
