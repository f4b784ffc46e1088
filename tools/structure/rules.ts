/** The house rules as tables. They correspond to docs/design/house.md: change a line here only together with that page. */

/** The floors of the house below `packages`, lowest first: a package imports what stands on its own floor or below. */
export const FLOORS: readonly string[] = [
  "base",
  "slivers",
  "drivers",
  "pool",
  "faces",
  "connect",
  "nodeyard",
];

/** Packages that one, or those of a floor (`FLOOR/*`), must not need, although the floor would allow it. */
export const NEVER: Readonly<Record<string, readonly string[]>> = {
  // No driver by name: drivers supply their part of the schema through the contract.
  "@nodeyard/config": ["@nodeyard/driver-*"],
  // Pure: no tree, so that it cannot wait for one.
  "@nodeyard/scheduler": ["@nodeyard/tree", "@nodeyard/zookeeper", "@nodeyard/coordination"],
  // A skin of operations.
  "@nodeyard/api": ["@nodeyard/tree", "@nodeyard/zookeeper"],
  // Connectors run anywhere: of the pool they know its client alone.
  "connect/*": [
    ...[
      "@nodeyard/driver*",
      "@nodeyard/sliver*",
      "@nodeyard/config",
      "@nodeyard/view",
      "@nodeyard/scheduler",
    ],
    ...["@nodeyard/coordination", "@nodeyard/operations", "@nodeyard/planning", "@nodeyard/asking"],
    ...[
      "@nodeyard/launcher",
      "@nodeyard/builder",
      "@nodeyard/api",
      "@nodeyard/dashboard",
      "@nodeyard/metrics",
      "@nodeyard/legacy",
    ],
  ],
  // A sliver manager runs on other machines: the others know the protocol, never the manager.
  "*": ["@nodeyard/sliver"],
};

/** Dependencies that a package loads by a name from its configuration, without an import. */
export const LOADED_BY_NAME: Readonly<Record<string, string>> = { nodeyard: "@nodeyard/driver-*" };

/** The folder of a driver, ours or an example's, at the start of a path. */
export const DRIVER_FOLDER = /^(packages\/drivers\/(?!kit|testkit)|examples\/driver-)[a-z0-9-]+(?=\/)/;

/** Files that every driver has. One that does not fit into `driver.ts` has its provider in `provider.ts`. */
export const DRIVER_FILES: readonly string[] = [
  "README.md",
  "package.json",
  "src/config.ts",
  "src/driver.ts",
  "src/index.ts",
];

/** A driver receives its log, and is measured and limited from outside. */
export const DRIVERS_NEVER_IMPORT: readonly string[] = [
  "nodeyard",
  "pino",
  "prom-client",
  "@opentelemetry/*",
];

/** Folders whose files are the edge of the system: they may use time, randomness, network, files and processes. */
export const EDGE_FOLDERS: readonly string[] = ["edge", "bin", "testing"];

/** Built-in modules that reach outside of the process, or start something in it. */
export const EFFECT_MODULES: readonly string[] = [
  "child_process",
  "cluster",
  "dgram",
  "dns",
  "fs",
  "http",
  "http2",
  "https",
  "inspector",
  "net",
  "perf_hooks",
  "process",
  "readline",
  "repl",
  "sqlite",
  "timers",
  "tls",
  "worker_threads",
];

/** Global names whose use is an effect, with what to use instead. */
export const EFFECT_GLOBALS: Readonly<Record<string, string>> = {
  setTimeout: "Clock.setTimer",
  setInterval: "Clock.setTimer",
  setImmediate: "Clock.setTimer",
  performance: "Clock.monotonic",
  fetch: "a fetch that is passed in",
  WebSocket: "a connector that is passed in",
  process: "a value that bin/ passes in",
  globalThis: "a value that bin/ passes in",
};

/** Members of global names whose use is an effect. A trailing `*` stands for any ending. */
export const EFFECT_MEMBERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Date: { now: "Clock.now" },
  Math: { random: "Random.float" },
  AbortSignal: { timeout: "deadline() of @nodeyard/runtime" },
  crypto: { "random*": "Random.uuid", getRandomValues: "Random" },
};

/**
 * Why no test runs a block of commands of docs/, as its first line says: ```sh needs=site. With by=FILE a test runs these commands with
 * names of its own.
 */
export const NEEDS: Readonly<Record<string, string>> = {
  site: "servers, nodes, files and names of the reader's own, for which the page has examples",
  system: "to install packages, or to change services and files of the whole machine",
  zuul: "a Zuul",
};

/** Tests that run the blocks of a page by a mark of their own (```sh run), by the start of the page's path. */
export const PAGE_SCRIPTS: Readonly<Record<string, readonly string[]>> = {
  "docs/tutorial/": ["testing/pages/steps.ts"],
  "docs/how-to/tls-for-zookeeper.md": ["testing/pages/steps.ts"],
  "docs/how-to/one-big-machine-with-lxd.md": ["testing/pages/steps.ts"],
  "docs/how-to/watch-with-prometheus.md": ["testing/pages/steps.ts"],
  "docs/how-to/upgrade-and-go-back.md": ["testing/pages/steps.ts"],
  "docs/how-to/use-the-api.md": ["testing/pages/steps.ts"],
  "docs/how-to/connect-aws.md": ["testing/pages/steps.ts"],
  "docs/how-to/autohold.md": ["testing/pages/steps.ts"],
  "docs/how-to/size-and-scale.md": ["testing/pages/steps.ts"],
  "docs/how-to/choose-by-price.md": ["testing/pages/steps.ts"],
  "docs/how-to/debug-a-stuck-request.md": ["testing/pages/steps.ts"],
  "docs/how-to/follow-a-node.md": ["testing/pages/steps.ts"],
  "docs/how-to/metastatic.md": ["testing/pages/steps.ts"],
  "docs/how-to/mixed-sets.md": ["testing/pages/steps.ts"],
  "docs/how-to/serve-boskos.md": ["testing/pages/steps.ts"],
  "docs/how-to/serve-tmt.md": ["testing/pages/steps.ts"],
  "docs/how-to/publish-a-release.md": ["testing/release/main.ts"],
  "docs/how-to/install.md": ["tools/build/verify.ts", "testing/debian/main.ts", "testing/oci/images.ts"],
};

export const LINES_WARN = 300;
export const LINES_FAIL = 500;

/** True when `name` is one of `patterns`; a pattern may end in `*`. */
export function matches(name: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) =>
    pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
  );
}
