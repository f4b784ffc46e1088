/** Tests that take long, by what they need; all others are quick and run by `npm test`. */
export interface Suite {
  readonly name: string;
  readonly about: string;
  /** Glob patterns below the root. A file that several suites name is of the first. */
  readonly include: readonly string[];
  /** Many files share one process and what it has loaded, which saves two fifths of their processor time: they give back what they replace. */
  readonly sharesProcesses?: true;
}

/** Name of the suite of all others. */
export const QUICK = "quick";

export const SLOW: readonly Suite[] = [
  {
    name: "kills",
    about: "processes that are killed repeatedly, on each store",
    include: [
      "packages/nodeyard/process/test/images/killed*.test.ts",
      "packages/nodeyard/process/test/slivers/killed.test.ts",
      "packages/pool/launcher/test/rules/rule-10-durable.test.ts",
      "testing/aws/test/launchers.test.ts",
      "testing/chaos/**/*.test.ts",
    ],
  },
  {
    name: "aws",
    about: "the driver for AWS on a server that speaks its wire, which PyPI's moto is",
    include: [
      "packages/drivers/aws/test/**/*.test.ts",
      "packages/nodeyard/process/test/aws-*.test.ts",
      "testing/aws/test/boto3.test.ts",
    ],
  },
  {
    name: "guests",
    about: "machines that boot, and images that are built and booted",
    include: [
      "testing/qemu/**/*.test.ts",
      "packages/drivers/qemu/test/{conformance,parked}.test.ts",
      "packages/nodeyard/process/test/images/{command-line,diskimage-builder}.test.ts",
    ],
  },
  {
    name: "lxd",
    about: "containers of a real LXD, which need root and Debian's lxd",
    include: ["packages/drivers/lxd/test/**/*.test.ts", "packages/nodeyard/process/test/lxd*.test.ts"],
  },
  {
    name: "foreign",
    about:
      "Zuul, Nodepool, kazoo and Microsoft's types of Azure's API beside Nodeyard, and the release before",
    include: [
      "testing/foreign/**/*.test.ts",
      "testing/mixed/**/*.test.ts",
      "testing/nodepool/**/*.test.ts",
      "packages/drivers/azure/test/judge.test.ts",
    ],
  },
  {
    name: "runners",
    about:
      "jobs of a real Gitea, which testing/gitea/build.sh builds, and of a double of GitHub, on nodes of the pool",
    include: ["testing/{gitea,github}/**/*.test.ts"],
  },
  {
    name: "connect",
    about:
      "clients and servers of other systems that connectors stand for: the real Boskos and its client, the real tmt",
    include: ["testing/connect/real/**/*.test.ts"],
  },
  {
    name: "zuul",
    about: "the real Zuul, whose scheduler and executor run jobs on nodes of Nodeyard",
    include: ["testing/zuul/**/*.test.ts"],
  },
  {
    name: "day",
    about: "a day of all clients on one pool, with kills; nothing else may run beside it",
    include: ["testing/day/**/*.test.ts"],
  },
  {
    name: "pages",
    about: "tutorials, read from top to bottom and from bottom to top; what operators paste; and the site",
    include: ["testing/pages/**/*.test.ts", "packages/nodeyard/cli/test/pages/*.test.ts"],
  },
  {
    name: "servers",
    about: "ZooKeeper servers that stop, lag and come back",
    include: [
      "packages/base/zookeeper/test/session.test.ts",
      "packages/base/zookeeper/test/recipes/{lock-outage,tree-cache,kazoo-lock}.test.ts",
      "packages/base/tree/test/zookeeper/*.test.ts",
      "packages/base/tree/test/conformance/wire.test.ts",
      "packages/nodeyard/process/test/{zookeeper,promote,restart,rest,explain-members,looked-at,alerts}.test.ts",
    ],
  },
  {
    name: "browser",
    about: "the page in a real browser, which needs Debian's chromium",
    include: ["testing/browser/**/*.test.ts"],
  },
  {
    name: "seeds",
    about: "kept seeds of the simulation, mutants, histories on real stores, a day and a week of requests",
    include: [
      "simulation/{simulation,replay/replay}.test.ts",
      "packages/pool/launcher/test/estimate-day.test.ts",
      "packages/pool/planning/test/week.test.ts",
    ],
  },
  {
    name: "clouds",
    about: "drivers for Azure, Google and IBM at doubles of their clouds, and the drivers of examples",
    include: ["packages/drivers/{azure,gce,ibmvpc}/test/**/*.test.ts", "examples/driver-*/**/*.test.ts"],
    sharesProcesses: true,
  },
  {
    name: "programs",
    about: "the program in processes: its commands, its roles, and connectors beside it",
    include: ["packages/nodeyard/{cli,process}/test/**/*.test.ts", "testing/connect/test/*.test.ts"],
    sharesProcesses: true,
  },
];
