import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadConfig } from "@nodeyard/config";
import { DriverError, runSteps, type StepContext } from "@nodeyard/driver";
import { systemClock as clock, systemRandom as random } from "@nodeyard/runtime";
import { expect, onTestFinished, test } from "vitest";
import { Drivers, loadModule } from "../src/index.ts";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
const NAME = "nodeyard-driver-lab";

/** Builds the example as its author publishes it, and installs it where none of our packages can be found. */
function publish(): { readonly door: string; readonly folder: string } {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-published-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const home = join(folder, "node_modules", NAME);
  mkdirSync(home, { recursive: true });
  const example = join(root, "examples/driver-lab");
  copyFileSync(join(example, "package.json"), join(home, "package.json"));
  // Here the SDK's types are sources, which are no part of what is built; `npm run types` has checked them.
  const quick = ["--noCheck", "--noResolve", "--declaration", "false"];
  const words = ["-p", join(example, "tsconfig.json"), ...quick, "--outDir", join(home, "dist")];
  execFileSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), ...words], {
    stdio: "pipe",
  });
  return { door: join(home, "dist/index.js"), folder };
}

test("a published driver, found by its short name, makes a machine and removes it", async () => {
  const { door, folder } = publish();
  const drivers = new Drivers((specifier) => loadModule(specifier === NAME ? door : specifier));
  const boards = join(folder, "boards");
  const text = `
labels: [{name: board}]
providers:
  - {name: desk, driver: lab, folder: ${boards}, pools: [{name: main, labels: [{name: board}]}]}`;
  const { config, findings } = loadConfig({ text, path: "nodepool.yaml", env: {}, drivers });
  expect(findings).toEqual([]);
  const desk = config!.providers[0]!;
  const provider = await drivers.driver(desk.driver).open(desk, {
    clock,
    random,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    scan: { scan: () => Promise.reject(new DriverError("timeout", "nothing scans here")) },
    installation: "i",
  });
  const tag = { installation: "i", provider: "desk", pool: "main", nodeId: "0000000001" };
  const pool = desk.pools[0]!;
  const order = { tag, hostname: "np0000000001", pool, label: pool.labels.get("board")! };
  const run = <T>(start: Parameters<typeof runSteps<T>>[0]) =>
    runSteps<T>(start, {
      clock,
      signal: new AbortController().signal,
      externalId: null,
      save: async () => {},
    });
  const remove = () => run<void>((step: StepContext) => provider.remove(tag, step));
  onTestFinished(async () => void (existsSync(boards) && (await remove())));

  const machine = await run((step) => provider.create(order as Parameters<typeof provider.create>[0], step));
  expect(await greetingOf(machine.connection!.port!)).toBe("np0000000001: board\n");
  await remove();
  expect(readdirSync(boards)).toEqual([]);
});

function greetingOf(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    connect(port, "127.0.0.1")
      .setEncoding("utf8")
      .on("data", (part) => {
        text += part;
      })
      .on("end", () => resolve(text))
      .on("error", reject);
  });
}
