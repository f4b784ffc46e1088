import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { loadConfig, validateConfig } from "@nodeyard/config";
import { Drivers, loadModule } from "@nodeyard/process";
import { describe, expect, test } from "vitest";

const folder = fileURLToPath(new URL("../../../../examples/", import.meta.url));
const files = readdirSync(folder).filter((name) => name.endsWith(".yaml"));

describe("examples", () => {
  test("there are some", () => expect(files.length).toBeGreaterThan(0));
  test.each(files)("%s is right in every way", (name) => {
    const text = readFileSync(folder + name, "utf8");
    const input = { text, path: name, env: {}, drivers: new Drivers(loadModule) };
    expect(validateConfig({ ...input, strict: true })).toMatchObject({
      exitCode: 0,
      findings: [],
      lostLabels: [],
    });
    expect(loadConfig(input)).toMatchObject({ config: expect.anything(), findings: [] });
  });
});
