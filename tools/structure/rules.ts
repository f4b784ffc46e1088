/** The house rules as tables. They correspond to docs/design/house.md: change a line here only together with that page. */

/** Packages of ours that each package may import, types included. */
export const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  "@nodeyard/runtime": [],
  "@nodeyard/zookeeper": [],
  "@nodeyard/model": [],
  "@nodeyard/keyscan": ["@nodeyard/runtime"],
  "@nodeyard/sliver-protocol": ["@nodeyard/runtime"],
  "@nodeyard/tree": ["@nodeyard/runtime", "@nodeyard/zookeeper"],
  "@nodeyard/driver": ["@nodeyard/model", "@nodeyard/runtime"],
  "@nodeyard/client": ["@nodeyard/model", "@nodeyard/runtime"],
  "@nodeyard/dashboard": ["@nodeyard/client"],
  "@nodeyard/sliver": ["@nodeyard/runtime", "@nodeyard/sliver-protocol"],
  "@nodeyard/driver-sliver": [
    "@nodeyard/driver",
    "@nodeyard/model",
    "@nodeyard/runtime",
    "@nodeyard/sliver-protocol",
  ],
  "@nodeyard/driver-*": ["@nodeyard/driver", "@nodeyard/model", "@nodeyard/runtime"],
  nodeyard: [
    "@nodeyard/client",
    "@nodeyard/dashboard",
    "@nodeyard/driver",
    "@nodeyard/driver-*",
    "@nodeyard/keyscan",
    "@nodeyard/model",
    "@nodeyard/runtime",
    // A sliver manager runs on other machines: the program knows the protocol, never the manager.
    "@nodeyard/sliver-protocol",
    "@nodeyard/tree",
    "@nodeyard/zookeeper",
  ],
};

/** The package whose `src` is divided into rooms. */
export const PROGRAM = "nodeyard";

export interface Room {
  /** Rooms whose door it may import. */
  readonly rooms: readonly string[];
  /** Packages of ours that it may import. */
  readonly packages: readonly string[];
}

const EVERY_ROOM = [
  "api",
  "asking",
  "builder",
  "cli",
  "config",
  "coordination",
  "launcher",
  "listing",
  "machine",
  "metrics",
  "operations",
  "planning",
  "scheduler",
  "telemetry",
  "view",
] as const;

/** The rooms of the program. `process` puts them together; `cli` and `bin` start it, and nothing imports `bin`. */
export const ROOMS: Readonly<Record<string, Room>> = {
  telemetry: { rooms: [], packages: ["@nodeyard/model", "@nodeyard/runtime"] },
  // No driver by name: drivers supply their part of the schema through the contract.
  config: { rooms: [], packages: ["@nodeyard/driver", "@nodeyard/model", "@nodeyard/runtime"] },
  view: { rooms: ["telemetry"], packages: ["@nodeyard/model", "@nodeyard/runtime", "@nodeyard/tree"] },
  // Pure: no tree, so that it cannot wait for one.
  scheduler: {
    rooms: ["config", "view"],
    packages: ["@nodeyard/driver", "@nodeyard/model", "@nodeyard/runtime"],
  },
  operations: {
    rooms: ["asking", "config", "scheduler", "telemetry", "view"],
    packages: ["@nodeyard/driver", "@nodeyard/model", "@nodeyard/runtime", "@nodeyard/tree"],
  },
  // What every daemon does with the tree: locks, fenced writes, its components. It knows neither nodes nor images.
  coordination: {
    rooms: ["telemetry", "view"],
    packages: [
      "@nodeyard/driver",
      "@nodeyard/model",
      "@nodeyard/runtime",
      "@nodeyard/tree",
      "@nodeyard/zookeeper",
    ],
  },
  // Members answer, operations ask: neither imports the other.
  asking: {
    rooms: ["coordination", "telemetry", "view"],
    packages: ["@nodeyard/runtime", "@nodeyard/tree"],
  },
  launcher: {
    rooms: ["asking", "config", "coordination", "operations", "scheduler", "telemetry", "view"],
    packages: [
      "@nodeyard/driver",
      "@nodeyard/model",
      "@nodeyard/runtime",
      "@nodeyard/tree",
      "@nodeyard/zookeeper",
    ],
  },
  builder: {
    rooms: ["asking", "config", "coordination", "operations", "telemetry", "view"],
    packages: [
      "@nodeyard/driver",
      "@nodeyard/model",
      "@nodeyard/runtime",
      "@nodeyard/tree",
      "@nodeyard/zookeeper",
    ],
  },
  // A launcher as it is in production, on a tree in memory and in virtual time.
  planning: {
    rooms: ["config", "launcher", "telemetry", "view"],
    packages: ["@nodeyard/driver", "@nodeyard/model", "@nodeyard/runtime", "@nodeyard/tree"],
  },
  // What a process knows of where it runs. Nothing else is loaded for it, since every command needs it.
  machine: { rooms: [], packages: ["@nodeyard/runtime"] },
  // What lists look like, on a terminal and over HTTP.
  listing: { rooms: ["operations"], packages: ["@nodeyard/model"] },
  // Figures of the whole, and the two ways out for all figures. The election says which launcher tells of what all see.
  metrics: {
    rooms: ["coordination", "telemetry", "view"],
    packages: ["@nodeyard/model", "@nodeyard/runtime", "@nodeyard/tree"],
  },
  // No tree: skins of operations.
  api: {
    rooms: ["config", "listing", "metrics", "operations", "telemetry", "view"],
    packages: ["@nodeyard/client", "@nodeyard/dashboard", "@nodeyard/model", "@nodeyard/runtime"],
  },
  cli: {
    rooms: ["api", "config", "listing", "machine", "operations", "planning", "process", "telemetry", "view"],
    packages: [
      "@nodeyard/client",
      // Loaded by the commands that act on sliver hosts, and by nothing else.
      "@nodeyard/driver-sliver",
      "@nodeyard/model",
      "@nodeyard/runtime",
      "@nodeyard/sliver-protocol",
    ],
  },
  process: { rooms: EVERY_ROOM.filter((room) => room !== "cli"), packages: PACKAGES[PROGRAM]! },
  bin: { rooms: [...EVERY_ROOM, "process"], packages: PACKAGES[PROGRAM]! },
};

/** Dependencies that a package loads by a name from its configuration, without an import. */
export const LOADED_BY_NAME: Readonly<Record<string, string>> = { [PROGRAM]: "@nodeyard/driver-*" };

/** The folder of a driver, ours or an example's, at the start of a path. */
export const DRIVER_FOLDER = /^(packages|examples)\/driver-[a-z0-9-]+(?=\/)/;

/** Files that every driver has. */
export const DRIVER_FILES: readonly string[] = [
  "README.md",
  "package.json",
  "src/config.ts",
  "src/driver.ts",
  "src/index.ts",
  "src/provider.ts",
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
  "docs/how-to/watch-with-prometheus.md": ["testing/pages/steps.ts"],
  "docs/how-to/upgrade-and-go-back.md": ["testing/pages/steps.ts"],
  "docs/how-to/use-the-api.md": ["testing/pages/steps.ts"],
  "docs/how-to/connect-aws.md": ["testing/pages/steps.ts"],
  "docs/how-to/autohold.md": ["testing/pages/steps.ts"],
  "docs/how-to/size-and-scale.md": ["testing/pages/steps.ts"],
  "docs/how-to/debug-a-stuck-request.md": ["testing/pages/steps.ts"],
  "docs/how-to/follow-a-node.md": ["testing/pages/steps.ts"],
  "docs/how-to/metastatic.md": ["testing/pages/steps.ts"],
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
