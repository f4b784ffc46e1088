import { SLOW } from "../suites/suites.ts";
import type { Suite } from "./suite.ts";

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

/** The test files of a project of vitest.config.ts. */
const testsOf = (name: string) => SLOW.find((suite) => suite.name === name)!.include;

const PROGRAM = "packages/nodeyard";
const src = (...rooms: string[]) => rooms.map((room) => `${PROGRAM}/src/${room}/**`);
const whole = (...packages: string[]) => packages.map((name) => `packages/${name}/**`);

/** What decides about nodes and writes the tree. */
const CORE = [...src("scheduler", "launcher", "coordination", "view"), ...whole("model", "tree")];
const SLIVER_TESTS = "packages/*/test/**/lxc-*.test.ts";
/** What all drivers are made of. */
const DRIVERS = ["packages/driver/src/**", ...src("launcher/providers", "launcher/nodes")];

export const SUITES: readonly Suite[] = [
  {
    name: "check",
    command: npm("check"),
    covers: ["tools/structure/**", "biome.json", "tsconfig.json"],
    always: true,
    takes: { seconds: 25, processors: 1.5, limit: 15 },
  },
  {
    name: "generate",
    command: npm("generate", "--check"),
    covers: ["tools/generate/**", "docs/reference/**"],
    always: true,
    takes: { seconds: 5, processors: 1, limit: 15 },
  },
  {
    name: "build",
    command: npm("build", "--verify", "--install", "$INSTALLED"),
    covers: ["tools/build/**", `${PROGRAM}/src/bin/**`],
    always: true,
    takes: { seconds: 60, processors: 1, limit: 15 },
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
    takes: { seconds: 300, processors: 1.5, limit: 60 },
    needs: ["build"],
  },
  {
    name: "servers",
    command: vitest("servers"),
    covers: [...testsOf("servers"), ...whole("tree", "zookeeper"), ...src("process"), "testing/zookeeper/**"],
    always: true,
    takes: { seconds: 180, processors: 0.6, limit: 30 },
    needs: ["build"],
  },
  {
    name: "browser",
    command: vitest("browser"),
    covers: [
      ...testsOf("browser"),
      ...whole("dashboard", "client"),
      ...src("api", "metrics"),
      "testing/browser/**",
    ],
    always: true,
    takes: { seconds: 60, processors: 0.7, limit: 30 },
    needs: ["build"],
  },
  {
    name: "pages",
    command: vitest("pages"),
    covers: [
      ...testsOf("pages"),
      ...src("cli"),
      "docs/**",
      "README.md",
      "examples/**",
      "testing/pages/**",
      "tools/{pages,site}/**",
    ],
    always: true,
    takes: { seconds: 120, processors: 0.9, limit: 30 },
    needs: ["build"],
  },
  {
    name: "simulation",
    command: npm("simulate", "--seeds", "$NODEYARD_CI_SEEDS"),
    covers: [...CORE, ...src("builder"), "packages/sliver/src/core/**", "simulation/**"],
    always: true,
    takes: { seconds: 120, processors: 1.5, limit: 60 },
    background: true,
  },
  {
    name: "mutants",
    command: npm("mutate", "--changed", "$SINCE", "--at-most", "8", "--seeds", "12"),
    covers: ["simulation/mutants/**"],
    always: true,
    takes: { seconds: 60, processors: 2, limit: 15 },
    alone: true,
  },
  {
    name: "demo",
    // Makes slivers on this machine, as the suites of slivers do.
    command: ["npm", "--silent", "start", "--", "--once"],
    covers: ["examples/demo/**", "examples/*", ...src("cli")],
    always: true,
    takes: { seconds: 10, processors: 1, limit: 5 },
    alone: true,
  },
  {
    name: "openstack",
    command: npm("test:openstack"),
    covers: [...whole("driver-openstack"), ...DRIVERS, "testing/openstack/**"],
    turn: 0,
    takes: { seconds: 1000, processors: 1.7, limit: 40 },
  },
  {
    // From source, once: kept in ~/.cache/nodeyard/kubernetes, outside of the repository, or where NODEYARD_KUBERNETES says.
    name: "kubernetes-build",
    command: ["testing/kubernetes/build.sh"],
    covers: ["testing/kubernetes/build.sh"],
    turn: 1,
    takes: { seconds: 1, processors: 1, limit: 60 },
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
    takes: { seconds: 300, processors: 1, limit: 40 },
    needs: ["kubernetes-build"],
  },
  {
    name: "aws",
    command: vitest("aws"),
    covers: [...testsOf("aws"), ...whole("driver-aws"), ...DRIVERS, ...src("builder"), "testing/aws/**"],
    turn: 2,
    takes: { seconds: 150, processors: 0.7, limit: 30 },
    needs: ["build"],
  },
  {
    name: "slivers",
    command: npm("test:slivers", "--project=beside"),
    covers: [
      SLIVER_TESTS,
      ...whole("sliver", "sliver-protocol", "driver-sliver"),
      ...src("launcher/metastatic"),
      "packages/driver/src/**",
      "testing/slivers/**",
      "elements/nodeyard-sliverd/**",
    ],
    turn: 3,
    takes: { seconds: 1000, processors: 0.4, limit: 60 },
  },
  {
    name: "slivers-alone",
    command: npm("test:slivers", "--project=alone"),
    covers: [SLIVER_TESTS, ...whole("sliver", "sliver-protocol", "driver-sliver"), "testing/slivers/**"],
    turn: 4,
    takes: { seconds: 260, processors: 1, limit: 30 },
    alone: true,
  },
  {
    name: "image",
    command: npm("e2e:image"),
    covers: [...src("builder"), ...whole("driver-qemu"), "testing/images/**", "elements/**"],
    turn: 5,
    takes: { seconds: 60, processors: 0.8, limit: 15 },
  },
  {
    // What test:debian and test:oci make for themselves is taken from one release.
    name: "release",
    command: npm("test:release"),
    covers: [
      "packaging/**",
      "tools/{build,site}/**",
      ...src("bin", "process"),
      "testing/{debian,oci,release}/**",
      "docs/how-to/{install,publish-a-release}.md",
    ],
    turn: 2,
    takes: { seconds: 400, processors: 0.9, limit: 60 },
    // Each writes the built packages.
    after: ["build"],
  },
  {
    name: "guests",
    command: vitest("guests"),
    covers: [
      ...testsOf("guests"),
      ...whole("driver-qemu"),
      "packages/driver/src/**",
      "testing/qemu/**",
      "elements/nodeyard-parked/**",
    ],
    turn: 1,
    takes: { seconds: 320, processors: 0.5, limit: 40 },
    needs: ["build"],
  },
  {
    name: "kills",
    command: vitest("kills"),
    covers: [
      ...testsOf("kills"),
      ...CORE,
      ...src("builder", "process"),
      ...whole("zookeeper"),
      "testing/chaos/**",
    ],
    turn: 4,
    takes: { seconds: 450, processors: 0.6, limit: 60 },
    needs: ["build"],
  },
  {
    name: "foreign",
    command: vitest("foreign"),
    covers: [
      ...testsOf("foreign"),
      ...CORE,
      ...whole("zookeeper"),
      ...src("builder"),
      "testing/foreign/**",
      "testing/mixed/**",
    ],
    turn: 3,
    takes: { seconds: 150, processors: 0.4, limit: 30 },
    needs: ["build"],
  },
  {
    name: "seeds",
    command: vitest("seeds"),
    covers: [...testsOf("seeds"), ...CORE, ...src("planning"), "simulation/**"],
    turn: 5,
    takes: { seconds: 240, processors: 0.9, limit: 30 },
  },
];
