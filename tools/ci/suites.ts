import { SLOW } from "../suites/suites.ts";
import type { Suite } from "./suite.ts";

/** A change of these changes what every suite does. What else is in this folder says which of them run, and when. */
export const EVERYWHERE = [
  ".ci/run",
  "package.json",
  "package-lock.json",
  "tools/ci/run-suite.ts",
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

const src = (...packages: string[]) => packages.map((name) => `packages/${name}/src/**`);
const whole = (...packages: string[]) => packages.map((name) => `packages/${name}/**`);

/** What decides about nodes and writes the tree. */
const CORE = [...src("pool/{scheduler,launcher,coordination,view}"), ...whole("base/{model,tree}")];
const SLIVER_TESTS = "packages/*/*/test/**/lxc-*.test.ts";
/** What all drivers are made of. */
const DRIVERS = [...src("drivers/kit"), "packages/pool/launcher/src/{providers,nodes}/**"];

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
    covers: ["tools/build/**", "packages/nodeyard/cli/src/bin/**"],
    always: true,
    takes: { seconds: 150, processors: 1.2, limit: 30 },
    // What does not compile is found first.
    after: ["check"],
  },
  {
    name: "quick",
    command: vitest("quick"),
    covers: [
      ...src("faces/{api,metrics,legacy}", "pool/{asking,config,operations,planning}", "base/telemetry"),
      ...whole(
        "faces/client",
        "connect/{kit,boskos,artemis,garm}",
        "drivers/{kit,testkit,fake,static,metastatic}",
        "base/{keyscan,runtime}",
      ),
      ...CORE,
      "examples/*",
      "testing/*.ts",
      "packaging/monitoring/**",
      "bench/**",
      "tools/**",
    ],
    always: true,
    takes: { seconds: 400, processors: 1.2, limit: 60 },
  },
  {
    name: "programs",
    command: vitest("programs"),
    covers: [
      ...testsOf("programs"),
      ...src("nodeyard/{cli,process}", "connect/{kit,boskos,artemis,garm}"),
      "examples/{ansible,demo,python,zuul-role}/**",
    ],
    always: true,
    takes: { seconds: 400, processors: 0.8, limit: 60 },
    needs: ["build"],
  },
  {
    name: "servers",
    command: vitest("servers"),
    covers: [
      ...testsOf("servers"),
      ...whole("base/{tree,zookeeper}"),
      ...src("nodeyard/process"),
      "testing/zookeeper/**",
    ],
    always: true,
    takes: { seconds: 300, processors: 0.6, limit: 30 },
    needs: ["build"],
  },
  {
    name: "browser",
    command: vitest("browser"),
    covers: [
      ...testsOf("browser"),
      ...whole("faces/{dashboard,client}"),
      ...src("faces/{api,metrics,legacy}"),
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
      ...src("nodeyard/cli"),
      "docs/**",
      "README.md",
      "examples/**",
      "testing/pages/**",
      "tools/{pages,site}/**",
    ],
    always: true,
    takes: { seconds: 280, processors: 0.8, limit: 30 },
    needs: ["build"],
  },
  {
    name: "simulation",
    command: npm("simulate", "--kept", "--seeds", "$NODEYARD_CI_SEEDS"),
    covers: [...CORE, ...src("pool/builder"), "packages/slivers/manager/src/core/**", "simulation/**"],
    always: true,
    takes: { seconds: 400, processors: 1.2, limit: 60 },
  },
  {
    name: "mutants",
    command: npm("mutate", "--changed", "$SINCE", "--at-most", "8", "--seeds", "12"),
    covers: ["simulation/mutants/**"],
    always: true,
    takes: { seconds: 150, processors: 2, limit: 15 },
    alone: true,
  },
  {
    name: "demo",
    // Makes slivers on this machine, as the suites of slivers do.
    command: ["npm", "--silent", "start", "--", "--once"],
    covers: ["examples/demo/**", "examples/*", ...src("nodeyard/cli")],
    always: true,
    takes: { seconds: 10, processors: 1, limit: 5 },
    alone: true,
  },
  {
    name: "openstack",
    command: npm("test:openstack"),
    covers: [...whole("drivers/openstack"), ...DRIVERS, "testing/openstack/**"],
    turn: 0,
    takes: { seconds: 900, processors: 1.7, limit: 40 },
  },
  {
    // From source, once: kept in ~/.cache/nodeyard/kubernetes, outside of the repository, or where NODEYARD_KUBERNETES says.
    name: "kubernetes-build",
    command: ["testing/kubernetes/build.sh"],
    covers: ["testing/kubernetes/build.sh"],
    turn: 1,
    takes: { seconds: 400, processors: 2, limit: 60 },
  },
  {
    name: "kubernetes",
    command: npm("test:kubernetes"),
    covers: [
      ...whole("drivers/kubernetes"),
      ...DRIVERS,
      "testing/kubernetes/**",
      "testing/openshift/**",
      "packaging/helm/**",
    ],
    turn: 1,
    takes: { seconds: 600, processors: 0.8, limit: 40 },
    needs: ["kubernetes-build"],
  },
  {
    name: "aws",
    command: vitest("aws"),
    covers: [
      ...testsOf("aws"),
      ...whole("drivers/aws"),
      ...DRIVERS,
      ...src("pool/builder"),
      "testing/aws/**",
    ],
    turn: 2,
    takes: { seconds: 300, processors: 0.6, limit: 30 },
    needs: ["build"],
  },
  {
    name: "slivers",
    command: npm("test:slivers", "--project=beside"),
    covers: [
      SLIVER_TESTS,
      ...whole("slivers/*", "drivers/{sliver,metastatic}"),
      "packages/pool/launcher/src/metastatic/**",
      ...src("drivers/kit"),
      "testing/slivers/**",
      "elements/nodeyard-sliverd/**",
    ],
    turn: 3,
    takes: { seconds: 1150, processors: 0.3, limit: 60 },
    // Machines are enrolled, and jobs are run, by the installed program.
    needs: ["build"],
  },
  {
    name: "slivers-alone",
    command: npm("test:slivers", "--project=alone"),
    covers: [SLIVER_TESTS, ...whole("slivers/*", "drivers/sliver"), "testing/slivers/**"],
    turn: 4,
    takes: { seconds: 350, processors: 1, limit: 30 },
    needs: ["build"],
    alone: true,
  },
  {
    name: "image",
    command: npm("e2e:image"),
    covers: [...src("pool/builder"), ...whole("drivers/qemu"), "testing/images/**", "elements/**"],
    turn: 5,
    takes: { seconds: 150, processors: 0.5, limit: 15 },
  },
  {
    // What test:debian and test:oci make for themselves is taken from one release.
    name: "release",
    command: npm("test:release"),
    covers: [
      "packaging/**",
      "tools/{build,site}/**",
      ...src("nodeyard/process"),
      "packages/nodeyard/cli/src/bin/**",
      "testing/{debian,oci,release}/**",
      "docs/how-to/{install,publish-a-release}.md",
    ],
    turn: 2,
    takes: { seconds: 800, processors: 0.9, limit: 60 },
    // Each writes the built packages.
    after: ["build"],
  },
  {
    name: "guests",
    command: vitest("guests"),
    covers: [
      ...testsOf("guests"),
      ...whole("drivers/qemu"),
      ...src("drivers/kit"),
      "testing/qemu/**",
      "elements/nodeyard-parked/**",
    ],
    turn: 1,
    takes: { seconds: 320, processors: 0.5, limit: 40 },
    needs: ["build"],
  },
  {
    name: "lxd",
    command: vitest("lxd"),
    covers: [
      ...testsOf("lxd"),
      ...whole("drivers/lxd"),
      ...DRIVERS,
      "testing/lxd/**",
      "docs/how-to/one-big-machine-with-lxd.md",
    ],
    turn: 0,
    takes: { seconds: 120, processors: 0.8, limit: 20 },
    needs: ["build"],
    // Its groups and interfaces would count as left by slivers.
    after: ["slivers"],
  },
  {
    // The real Boskos and tmt, once: kept in ~/.cache/nodeyard, outside of the repository.
    name: "connect-install",
    command: ["testing/connect/install.sh"],
    covers: ["testing/connect/{install,boskos,tmt}.sh"],
    turn: 4,
    takes: { seconds: 150, processors: 2, limit: 30 },
  },
  {
    name: "connect",
    command: vitest("connect"),
    covers: [
      ...testsOf("connect"),
      ...src("connect/{kit,boskos,artemis}"),
      "testing/connect/**",
      "docs/how-to/serve-{boskos,tmt}.md",
    ],
    turn: 4,
    takes: { seconds: 110, processors: 0.7, limit: 40 },
    needs: ["build", "connect-install"],
  },
  {
    name: "kills",
    command: vitest("kills"),
    covers: [
      ...testsOf("kills"),
      ...CORE,
      ...src("pool/builder", "nodeyard/process"),
      ...whole("base/zookeeper"),
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
      ...whole("base/zookeeper"),
      ...src("pool/builder"),
      "testing/foreign/**",
      "testing/mixed/**",
      "testing/nodepool/**",
    ],
    turn: 3,
    takes: { seconds: 150, processors: 0.4, limit: 30 },
    needs: ["build"],
  },
  {
    // From source, once, as Kubernetes's programs.
    name: "gitea-build",
    command: ["testing/gitea/build.sh"],
    covers: ["testing/gitea/build.sh"],
    turn: 5,
    takes: { seconds: 400, processors: 2, limit: 40 },
  },
  {
    name: "runners",
    command: vitest("runners"),
    covers: [
      ...testsOf("runners"),
      ...whole("connect/{kit,gitea,github}"),
      "testing/{gitea,github}/**",
      "docs/how-to/{gitea,github}-runners.md",
    ],
    turn: 5,
    takes: { seconds: 200, processors: 0.7, limit: 40 },
    needs: ["build", "gitea-build"],
  },
  {
    // The real Zuul and its Ansible, installed once: kept in ~/.cache/nodeyard, outside of the repository.
    name: "zuul-install",
    command: ["testing/zuul/install.sh"],
    covers: ["testing/zuul/{install.sh,requirements.txt}"],
    turn: 2,
    takes: { seconds: 60, processors: 2, limit: 30 },
  },
  {
    name: "zuul",
    command: vitest("zuul"),
    covers: [
      ...testsOf("zuul"),
      ...CORE,
      ...src("base/zookeeper"),
      ...whole("connect/zuul"),
      ...src("connect/kit"),
      "testing/zuul/**",
      "examples/zuul-role/**",
      "docs/how-to/zuul-without-nodepool.md",
    ],
    turn: 2,
    takes: { seconds: 450, processors: 1, limit: 40 },
    needs: ["build", "zuul-install"],
  },
  {
    name: "day",
    command: vitest("day"),
    covers: [
      ...testsOf("day"),
      ...src("connect/{kit,gitea,github,artemis,zuul}", "drivers/fake", "pool/scheduler"),
      "testing/day/**",
    ],
    turn: 4,
    takes: { seconds: 150, processors: 2, limit: 40 },
    alone: true,
    needs: ["build", "zuul-install", "gitea-build", "connect-install"],
  },
  {
    name: "clouds",
    command: vitest("clouds"),
    covers: [
      ...testsOf("clouds"),
      ...whole("drivers/{azure,gce,ibmvpc}"),
      ...DRIVERS,
      ...src("drivers/testkit"),
      "testing/{azure,gce,ibmvpc}/**",
      "examples/driver-*/**",
    ],
    turn: 3,
    takes: { seconds: 150, processors: 1.7, limit: 30 },
  },
  {
    name: "seeds",
    command: vitest("seeds"),
    covers: [...testsOf("seeds"), ...CORE, ...src("pool/planning"), "simulation/**"],
    turn: 5,
    takes: { seconds: 400, processors: 1, limit: 60 },
  },
];
