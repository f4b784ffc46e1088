import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DriverRegistry, loadConfig } from "@nodeyard/config";
import { type Driver, DriverError } from "@nodeyard/driver";
import { fakeConfig, fakeDriver } from "@nodeyard/driver-fake";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { Counters, memoryLog } from "@nodeyard/telemetry";
import { type EmbeddedTree, openEmbeddedTree, type Tree } from "@nodeyard/tree";
import { afterEach, beforeEach } from "vitest";
import { patience } from "../../../../testing/patience.ts";
import { Builder, type BuilderConfig, HostDisk, probeIsolation } from "../src/index.ts";

const drivers: DriverRegistry = {
  get: (name) => (name === "fake" ? (fakeConfig as never) : undefined),
  names: () => ["fake"],
};

export interface Host {
  readonly folder: string;
  readonly images: string;
  readonly logs: string;
  /** Where the fake cloud keeps what was uploaded to it. */
  readonly cloud: string;
  /** A shell script, for `build-command`. */
  script(name: string, text: string): string;
  /** The compiled form of a file with these diskimages and provider entries. */
  config(diskimages: string, uploads?: string): BuilderConfig;
  files(): readonly string[];
  uploaded(): readonly {
    readonly id: string;
    readonly name: string;
    readonly format: string;
    readonly text: string;
  }[];
  remove(): void;
}

/** The folders of one builder's machine. */
export function makeHost(): Host {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-builder-"));
  const [images, logs, cloud] = [join(folder, "images"), join(folder, "logs"), join(folder, "cloud")];
  mkdirSync(images);
  return {
    folder,
    images,
    logs,
    cloud,
    script(name, text) {
      const path = join(folder, name);
      writeFileSync(path, `#!/bin/sh\nset -e\n${text}\n`);
      chmodSync(path, 0o755);
      return path;
    },
    config(diskimages, uploads = "") {
      const text = `
images-dir: ${images}
build-log-dir: ${logs}
diskimages:
${diskimages}
providers:
  - name: cloud
    driver: fake
    cloud: c
    diskimages: [${uploads}]
    pools: []
    fake: {images: {folder: ${cloud}, formats: [raw]}}
`;
      const { config, findings } = loadConfig({ text, path: "n.yaml", env: {}, drivers });
      if (config === undefined) throw new Error(findings.map(({ message }) => message).join("\n"));
      return config;
    },
    files: () =>
      readdirSync(images)
        .filter((name) => ![".builder.lock", ".work", "builder_id.txt"].includes(name))
        .sort(),
    uploaded() {
      if (!existsSync(cloud)) return [];
      return readdirSync(cloud)
        .filter((name) => name.endsWith(".json"))
        .map((name) => JSON.parse(readFileSync(join(cloud, name), "utf8")))
        .filter(({ whole }) => whole)
        .map((image) => ({ ...image, text: readFileSync(join(cloud, `${image.id}.image`), "utf8") }));
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export async function startBuilder(
  tree: Tree,
  host: Host,
  config: BuilderConfig,
  disk = new HostDisk(host.images, probeIsolation()),
  around = (driver: Driver): Driver => driver,
) {
  const log = memoryLog();
  const counters = new Counters();
  const builder = await Builder.start({
    tree,
    clock: systemClock,
    random: systemRandom,
    scan: { scan: () => Promise.reject(new DriverError("timeout", "nothing to scan here")) },
    log,
    counters,
    disk,
    identity: { hostname: "host", fqdn: "host.example", version: "0.0.0" },
    driverOf: async () => around(fakeDriver as unknown as Driver),
    config,
  });
  return { builder, log, counters };
}

export function openTree(host: Host): Promise<EmbeddedTree> {
  return openEmbeddedTree({ folder: host.folder, clock: systemClock, random: systemRandom });
}

/** A host with an embedded tree around each test of a file, and the builder that a test starts on it; what is left ends with the test. */
export function oneBuilder() {
  let host: Host;
  let tree: EmbeddedTree;
  let builder: Builder | undefined;
  beforeEach(async () => {
    host = makeHost();
    tree = await openTree(host);
  });
  afterEach(async () => {
    await builder?.close();
    builder = undefined;
    await tree.close();
    host.remove();
  });
  return {
    get host(): Host {
      return host;
    },
    get tree(): EmbeddedTree {
      return tree;
    },
    async start(config: BuilderConfig, disk?: HostDisk, around?: (driver: Driver) => Driver) {
      const started = await startBuilder(tree, host, config, disk, around);
      builder = started.builder;
      return started;
    },
  };
}

/** Waits for what events bring about; the limit is far above what they need and below the minute of the regular sweep. */
export async function until<T>(
  look: () => T | Promise<T>,
  what: string,
  lines?: () => unknown,
): Promise<Exclude<T, false | undefined>> {
  for (let left = 1_600 * patience(); left > 0; left--) {
    const found = await look();
    if (found) return found as Exclude<T, false | undefined>;
    await new Promise((resolve) => systemClock.setTimer(25, () => resolve(undefined)));
  }
  throw new Error(`never: ${what}\n${JSON.stringify(lines?.(), null, 1)}`);
}
