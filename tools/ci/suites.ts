/** One part of `.ci/run`. */
export interface Suite {
  readonly name: string;
  readonly command: readonly string[];
  /** Glob patterns below the root: product and tests that this suite, before others, shows to work. Only these make it run. */
  readonly covers: readonly string[];
  /** In each run. Without it: when something that it covers changed, and in its turn. */
  readonly always?: true;
  /** Which of TURNS runs has it, whatever changed: the number of commits modulo TURNS. */
  readonly turn?: number;
  /** Seconds that it takes on two idle cores, and processors that it keeps busy meanwhile, as `.ci/run --all` showed them last. */
  readonly seconds: number;
  readonly processors: number;
  /** For what hangs: minutes after which it is ended, on an idle machine. */
  readonly limit: number;
  /** Suites that run in each run that has this one, and end before it begins. */
  readonly needs?: readonly string[];
  /** Suites that end before it begins, where both run. */
  readonly after?: readonly string[];
  /** Nothing runs beside it: it measures, or its limits are of time. */
  readonly alone?: true;
  /** Behind all others: what waits for a processor has it first. */
  readonly background?: true;
}

/** Runs after which each suite has had its turn. */
export const TURNS = 6;

/** A change of these changes what every suite does. */
export const EVERYWHERE = [
  ".ci/run",
  "package.json",
  "package-lock.json",
  "tools/ci/*",
  "tools/run.mjs",
  "tools/suites/*",
  "vitest.config.ts",
];

/** `npm` that adds no lines of its own. */
const npm = (script: string, ...words: string[]) => [
  "npm",
  "run",
  "--silent",
  script,
  ...(words.length === 0 ? [] : ["--", ...words]),
];
const vitest = (...projects: string[]) => npm("test", ...projects);

const PROGRAM = "packages/nodeyard";
const src = (...rooms: string[]) => rooms.map((room) => `${PROGRAM}/src/${room}/**`);
const whole = (...packages: string[]) => packages.map((name) => `packages/${name}/**`);

/** What decides about nodes and writes the tree. */
const CORE = [...src("scheduler", "launcher", "coordination", "view"), ...whole("model", "tree")];
/** What all drivers are made of. */
const DRIVERS = ["packages/driver/src/**", ...src("launcher/providers", "launcher/nodes")];

export const SUITES: readonly Suite[] = [
  {
    name: "check",
    command: npm("check"),
    covers: ["tools/structure/**", "biome.json", "tsconfig.json"],
    always: true,
    seconds: 25,
    processors: 1.5,
    limit: 15,
  },
  {
    name: "generate",
    command: npm("generate", "--check"),
    covers: ["tools/generate/**", "docs/reference/**"],
    always: true,
    seconds: 10,
    processors: 1,
    limit: 15,
  },
  {
    name: "build",
    command: npm("build", "--verify", "--install", "$INSTALLED"),
    covers: ["tools/build/**", `${PROGRAM}/src/bin/**`],
    always: true,
    seconds: 60,
    processors: 1,
    limit: 15,
    // What does not compile is found first.
    after: ["check"],
  },
  {
    name: "quick",
    command: vitest("quick"),
    covers: [
      ...src(
        "api",
        "asking",
        "config",
        "listing",
        "machine",
        "metrics",
        "operations",
        "planning",
        "telemetry",
      ),
      `${PROGRAM}/src/index.ts`,
      ...whole("client", "driver", "driver-fake", "driver-static", "keyscan", "runtime"),
      ...CORE,
      "examples/**",
      "packaging/monitoring/**",
      "bench/**",
      "tools/**",
    ],
    always: true,
    seconds: 300,
    processors: 1.5,
    limit: 60,
    needs: ["build"],
  },
  {
    name: "servers",
    command: vitest("servers"),
    covers: [...whole("tree", "zookeeper"), ...src("process"), "testing/zookeeper/**"],
    always: true,
    seconds: 60,
    processors: 1,
    limit: 30,
    needs: ["build"],
  },
  {
    name: "browser",
    command: vitest("browser"),
    covers: [...whole("dashboard", "client"), ...src("api", "metrics"), "testing/browser/**"],
    always: true,
    seconds: 60,
    processors: 1,
    limit: 30,
    needs: ["build"],
  },
  {
    name: "pages",
    command: vitest("pages"),
    covers: [
      ...src("cli"),
      "docs/**",
      "README.md",
      "examples/**",
      "testing/pages/**",
      "tools/{pages,site}/**",
    ],
    always: true,
    seconds: 120,
    processors: 0.8,
    limit: 30,
    needs: ["build"],
  },
  {
    name: "simulation",
    command: npm("simulate", "--seeds", "$NODEYARD_CI_SEEDS"),
    covers: [...CORE, ...src("builder"), "packages/sliver/src/core/**", "simulation/**"],
    always: true,
    seconds: 120,
    processors: 1,
    limit: 60,
    background: true,
  },
  {
    name: "mutants",
    command: npm("mutate", "--changed", "$SINCE", "--at-most", "8", "--seeds", "12"),
    covers: ["simulation/mutants/**"],
    always: true,
    seconds: 60,
    processors: 2,
    limit: 15,
    alone: true,
  },
  {
    name: "demo",
    // Makes slivers on this machine, as the suites of slivers do.
    command: ["npm", "--silent", "start", "--", "--once"],
    covers: ["examples/demo/**", "examples/*", ...src("cli")],
    always: true,
    seconds: 15,
    processors: 1,
    limit: 5,
    alone: true,
  },
  {
    name: "openstack",
    command: npm("test:openstack"),
    covers: [...whole("driver-openstack"), ...DRIVERS, "testing/openstack/**"],
    turn: 0,
    seconds: 600,
    processors: 1.7,
    limit: 40,
  },
  {
    // From source, once: kept in ~/.cache/nodeyard/kubernetes, outside of the repository, or where NODEYARD_KUBERNETES says.
    name: "kubernetes-build",
    command: ["testing/kubernetes/build.sh"],
    covers: ["testing/kubernetes/build.sh"],
    turn: 1,
    seconds: 1,
    processors: 1,
    limit: 60,
  },
  {
    name: "kubernetes",
    command: npm("test:kubernetes"),
    covers: [
      ...whole("driver-kubernetes"),
      ...DRIVERS,
      "testing/kubernetes/**",
      "testing/openshift/**",
      "packaging/helm/**",
    ],
    turn: 1,
    seconds: 480,
    processors: 0.8,
    limit: 40,
    needs: ["kubernetes-build"],
  },
  {
    name: "aws",
    command: vitest("aws"),
    covers: [...whole("driver-aws"), ...DRIVERS, ...src("builder"), "testing/aws/**"],
    turn: 2,
    seconds: 200,
    processors: 1,
    limit: 30,
    needs: ["build"],
  },
  {
    name: "slivers",
    command: npm("test:slivers", "--project=beside"),
    covers: [
      ...whole("sliver", "sliver-protocol", "driver-sliver"),
      ...src("launcher/metastatic"),
      "packages/driver/src/**",
      "testing/slivers/**",
      "elements/nodeyard-sliverd/**",
    ],
    turn: 3,
    seconds: 600,
    processors: 0.6,
    limit: 60,
  },
  {
    name: "slivers-alone",
    command: npm("test:slivers", "--project=alone"),
    covers: [...whole("sliver", "sliver-protocol", "driver-sliver"), "testing/slivers/**"],
    turn: 4,
    seconds: 260,
    processors: 1,
    limit: 30,
    alone: true,
  },
  {
    name: "image",
    command: npm("e2e:image"),
    covers: [...src("builder"), ...whole("driver-qemu"), "testing/images/**", "elements/**"],
    turn: 5,
    seconds: 90,
    processors: 0.7,
    limit: 15,
  },
  {
    name: "debian",
    command: npm("test:debian"),
    covers: ["packaging/**", "tools/build/**", ...src("bin", "process"), "testing/debian/**"],
    turn: 2,
    seconds: 90,
    processors: 1,
    limit: 30,
    after: ["build"],
  },
  {
    name: "oci",
    command: npm("test:oci"),
    covers: ["tools/build/**", "testing/oci/**"],
    turn: 0,
    seconds: 90,
    processors: 1,
    limit: 30,
    // Each writes the built packages.
    after: ["build", "debian"],
  },
  {
    name: "guests",
    command: vitest("guests"),
    covers: [
      ...whole("driver-qemu"),
      "packages/driver/src/**",
      "testing/qemu/**",
      "elements/nodeyard-parked/**",
    ],
    turn: 1,
    seconds: 430,
    processors: 0.4,
    limit: 40,
    needs: ["build"],
  },
  {
    name: "kills",
    command: vitest("kills"),
    covers: [...CORE, ...src("builder", "process"), ...whole("zookeeper"), "testing/chaos/**"],
    turn: 4,
    seconds: 500,
    processors: 0.6,
    limit: 60,
    needs: ["build"],
  },
  {
    name: "foreign",
    command: vitest("foreign"),
    covers: [...CORE, ...whole("zookeeper"), ...src("builder"), "testing/foreign/**", "testing/mixed/**"],
    turn: 3,
    seconds: 120,
    processors: 0.8,
    limit: 30,
    needs: ["build"],
  },
  {
    name: "seeds",
    command: vitest("seeds"),
    covers: [...CORE, ...src("planning"), "simulation/**"],
    turn: 5,
    seconds: 120,
    processors: 1,
    limit: 30,
  },
];
