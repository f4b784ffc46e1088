import { INSTANT } from "@nodeyard/driver-fake";
import { paths } from "@nodeyard/model";
import { askForNodes, releaseLease } from "@nodeyard/operations";
import { seededRandom } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { expectClean, LOSSES, type Loss, ReplyDroppingProxy, VICTIM } from "./lost-writes.ts";
import { fakeProvider, launcherConfig, staticProvider, World } from "./world.ts";

interface Course {
  readonly make?: () => World;
  readonly config?: ReturnType<typeof launcherConfig>;
  /** What stands in the tree before the launcher starts. */
  readonly before?: (world: World) => Promise<void>;
  /** Everything that happens after; ends when the clients have what they asked for. */
  readonly run: (world: World) => Promise<void>;
  readonly idle?: number;
  readonly limits?: ReadonlyMap<string, number>;
}

/** One life of a request as Zuul leads it, with the end that it must have. */
async function live(world: World, labels: readonly string[], end = "fulfilled"): Promise<void> {
  const id = await world.ask({ node_types: labels });
  const ended = () => ["fulfilled", "failed"].includes(world.request(id)?.state as string);
  await world.until(`request ${id} ended`, ended, 180_000);
  expect(world.request(id)?.state).toBe(end);
  if (end === "fulfilled") await world.use(id);
  else await world.settle(world.other.delete(paths.request(id)));
}

const host = (name: string, fields: object = {}) => ({
  name,
  labels: ["small"],
  "host-key-checking": false,
  ...fields,
});
const minReady = new Map([["small", { name: "small", minReady: 1, maxReadyAgeMs: 3_600_000 }]]);
const MADE = { provider: "cloud", pool: "main", type: ["small"] };
const limits = new Map([["cloud/main", 2]]);

const COURSES: Readonly<Record<string, Course>> = {
  "a nodeset is launched": { run: (world) => live(world, ["small", "large"]) },
  "machines take a while": {
    make: () => new World({ latency: { ...INSTANT.latency, boot: { minMs: 2_000, maxMs: 4_000 } } }),
    run: (world) => live(world, ["small", "large"]),
  },
  "a nodeset is launched under a shared limit": {
    config: launcherConfig([fakeProvider("cloud", {}, { "max-servers": 2 })]),
    limits,
    run: async (world) => {
      await live(world, ["small", "large"]);
      await live(world, ["small"]);
    },
  },
  "idle nodes are made, given and made again": {
    config: launcherConfig([fakeProvider()], { labels: minReady }),
    idle: 1,
    run: async (world) => {
      await world.until("one is idle", () => world.nodes().some((node) => node.state === "ready"));
      await live(world, ["small"]);
    },
  },
  "nobody has the label": { run: (world) => live(world, ["nobody-has-it"], "failed") },
  "the cloud fails twice, then always": {
    make: () => {
      const world = new World();
      world.cloud.faults.createFails = 2;
      return world;
    },
    run: async (world) => {
      await live(world, ["small"]);
      world.cloud.faults.createFails = Number.POSITIVE_INFINITY;
      await live(world, ["small"], "failed");
    },
  },
  "a launcher died in the midst of it": {
    before: async (world) => {
      const id = await world.ask({ state: "pending", node_types: ["small", "small"] });
      await world.folder(paths.requestLock(id));
      for (const state of ["building", "init", "used"])
        await world.makeNode({ ...MADE, state, allocated_to: id, requestor: "test" });
    },
    run: async (world) => {
      const [id] = world.children(paths.requests);
      await world.fulfilled(id!);
      await world.use(id!);
      // Another launcher may be about to lock an `init` record: it has half a minute.
      await world.run(35_000);
    },
  },
  "a requestor goes while its lost request is looked at": {
    before: async (world) => {
      const id = await world.ask({ state: "pending" });
      await world.folder(paths.requestLock(id));
    },
    run: async (world) => {
      const [id] = world.children(paths.requests);
      await world.until("it is looked at", () => world.children(paths.requestLock(id!)).length > 0, 120_000);
      await world.settle(world.other.delete(paths.request(id!)));
    },
  },
  "a requestor goes without its nodes": {
    idle: 1,
    run: async (world) => {
      const id = await world.ask();
      await world.fulfilled(id);
      await world.settle(world.other.delete(paths.request(id)));
    },
  },
  "a lease is granted and released": {
    run: async (world) => {
      const handles = { tree: world.other, clock: world.clock, random: seededRandom(5) };
      const fields = { labels: ["small", "large"], owner: "me", forMs: 600_000 };
      const { id } = await world.settle(askForNodes(handles, fields));
      const lease = () => world.json(`/nodeyard/leases/${id}`);
      await world.until("granted", () => lease()?.state === "granted");
      for (const node of lease()!.nodes as string[]) expect(world.node(node)?.state).toBe("in-use");
      await world.settle(releaseLease(handles, id));
    },
  },
  "a lease cannot be served": {
    run: async (world) => {
      const handles = { tree: world.other, clock: world.clock, random: seededRandom(5) };
      const fields = { labels: ["nobody-has-it"], owner: "me", forMs: 600_000 };
      const { id } = await world.settle(askForNodes(handles, fields));
      await world.until("failed", () => world.json(`/nodeyard/leases/${id}`)?.state === "failed");
      await world.settle(releaseLease(handles, id));
    },
  },
  "hosts are registered, changed, used and taken out": {
    config: launcherConfig([staticProvider([host("127.0.0.1"), host("127.0.0.2")])]),
    idle: 1,
    run: async (world) => {
      await world.until("both stand", () => world.nodes().length === 2, 120_000);
      await live(world, ["small"]);
      await world.until("both stand again", () => world.nodes().length === 2, 120_000);
      const [member] = world.members;
      const changed = host("127.0.0.1", { "shell-type": "cmd" });
      await world.settle(member!.launcher.reconfigure(launcherConfig([staticProvider([changed])])));
      await world.until("changed", () => world.nodes().some((node) => node.shell_type === "cmd"), 120_000);
      await world.until("one went", () => world.nodes().length === 1, 120_000);
    },
  },
  "what others left behind is cleared away": {
    before: async (world) => {
      // A locker of an older kind came too late, and a request ended long ago.
      await world.folder(paths.nodeLock("0000000077"));
      await world.folder(paths.requestLock("100-0000000077"));
      await world.run(9 * 3_600_000);
    },
    run: async (world) => {
      await live(world, ["small"]);
      await world.until(
        "the empty node path and the lock parent are gone",
        () =>
          !world.children(paths.nodes).includes("0000000077") &&
          !world.children(paths.requestsLock).includes("100-0000000077"),
        300_000,
      );
    },
  },
  "a launcher stops in order": {
    run: async (world) => {
      await live(world, ["small"]);
      await world.until("the node is gone", () => world.nodes().length === 0);
      await world.settle(world.members[0]!.launcher.close(1_000));
      await world.until("its pools are gone", () => world.children("/nodepool/components/pool").length === 0);
    },
  },
};

/** Every kind of write of a launcher that the courses bring about. */
const KINDS = [
  "check nodes/#, delete nodes/#/lock, delete nodes/#",
  "check nodes/#/lock/contender, check /nodeyard/leases/#, create nodes/#/lock/contender",
  "check nodes/#/lock/contender, check /nodeyard/leases/#, set nodes/# in-use",
  "delete requests-lock/#",
  "check nodes/#/lock/contender, check nodes/#",
  "check nodes/#/lock/contender, set nodes/# building",
  "check nodes/#/lock/contender, set nodes/# deleting",
  "check nodes/#/lock/contender, set nodes/# failed",
  "check nodes/#/lock/contender, set nodes/# ready",
  "check requests-lock/#/contender, set requests/# pending",
  "create /nodepool",
  "create /nodeyard",
  "create /nodeyard/budgets",
  "create /nodeyard/budgets/label|small",
  "create /nodeyard/elections",
  "create /nodeyard/elections/inventory%3Alab",
  "create /nodeyard/elections/inventory%3Alab/contender",
  "create /nodeyard/hosts",
  "create /nodeyard/installation",
  "create /nodeyard/layout",
  "create /nodeyard/limits",
  "create /nodeyard/limits/cloud",
  "create /nodeyard/limits/cloud/main, set /nodeyard/limits",
  "create /nodeyard/members",
  "create /nodeyard/members/#",
  "create /nodeyard/standings",
  "create /nodeyard/standings/#",
  "create components",
  "create components/builder",
  "create components/launcher",
  "create components/launcher/# running",
  "create components/pool",
  "create components/pool/# running",
  "create nodes",
  "create nodes/# init, check requests-lock/#/contender",
  "create nodes/# init, check requests-lock/#/contender, create nodes/# init, check requests-lock/#/contender, set /nodeyard/limits/cloud/main",
  "create nodes/# init, check requests-lock/#/contender, set /nodeyard/limits/cloud/main",
  "create nodes/# ready, check /nodeyard/elections/inventory%3Alab/contender, create /nodeyard/hosts/#",
  "create nodes/# ready, check /nodeyard/elections/inventory%3Alab/contender, set /nodeyard/hosts/#",
  "create nodes/#/lock, create nodes/#/lock/contender",
  "create nodes/#/lock, create nodes/#/lock/contender, set nodes/# building, check requests-lock/#/contender",
  "create nodes/#/lock/contender",
  "create requests-lock",
  "create requests-lock/#, create requests-lock/#/contender, check requests/#",
  "create requests-lock/#, create requests-lock/#/contender, set requests/# pending",
  "create requests-lock/#/contender",
  "create requests/# requested",
  "delete /nodeyard/budgets/label|small",
  "delete /nodeyard/elections/inventory%3Alab/contender",
  "delete /nodeyard/leases/#",
  "delete components/launcher/#",
  "delete components/pool/#",
  "delete nodes/#/lock/contender",
  "delete nodes/#/lock/contender, set requests/# fulfilled, delete requests-lock/#/contender",
  "delete requests-lock/#/contender",
  "set /nodeyard/budgets/label|small",
  "set /nodeyard/leases/# failed, delete requests/#",
  "set /nodeyard/leases/# granted, delete requests/#",
  "set /nodeyard/standings/#",
  "set components/pool/# running",
  "set nodes/# deleted, delete nodes/#/lock/contender, delete nodes/#/lock, delete nodes/#",
  "set nodes/# deleted, delete nodes/#/lock/contender, delete nodes/#/lock, delete nodes/#, set /nodeyard/limits/cloud/main",
  "set nodes/# deleting, delete nodes/#/lock/contender",
  "set nodes/# failed, delete nodes/#/lock/contender",
  "set nodes/# ready, delete nodes/#/lock/contender",
  "set nodes/# ready, delete nodes/#/lock/contender, delete nodes/#/lock/contender, set requests/# fulfilled, delete requests-lock/#/contender",
  "set nodes/# ready, delete nodes/#/lock/contender, set requests/# fulfilled, delete requests-lock/#/contender",
  "set nodes/# ready, delete requests/#",
  "set nodes/# used, delete nodes/#/lock/contender",
  "set requests/# failed, delete requests-lock/#/contender",
  "set requests/# requested, delete requests-lock/#/contender",
];

async function play(course: Course, fault: World["fault"]): Promise<World> {
  const world = course.make?.() ?? new World();
  world.fault = fault;
  await world.folder(paths.requests);
  await course.before?.(world);
  await world.start(VICTIM, course.config ?? launcherConfig([fakeProvider()]));
  await course.run(world);
  return world;
}

const struck = new Set<string>();

async function lose(name: string, course: Course, at: number, loss: Loss): Promise<boolean> {
  const dropper = new ReplyDroppingProxy(at, loss);
  const what = () => `${name}, ${loss} of write ${at} (${dropper.struck})`;
  try {
    const world = await play(course, dropper.fault);
    await expectClean(world, what(), course);
  } catch (error) {
    throw new Error(`${what()}: ${(error as Error).message}`, { cause: error });
  }
  if (dropper.struck === undefined) return false;
  struck.add(dropper.struck);
  return true;
}

for (const [name, course] of Object.entries(COURSES)) {
  for (const loss of LOSSES) {
    test(`each write in its turn, ${loss === "lose-reply" ? "done" : "not done"}: ${name}`, async () => {
      let at = 1;
      while (await lose(name, course, at, loss)) at++;
      expect(at).toBeGreaterThan(10);
    });
  }
}

test("every kind of write that a launcher makes was lost, and no other is made", () => {
  expect([...struck].sort()).toEqual([...KINDS].sort());
});
