import { ApiError, type CreateOrder, machineSteps, type Step } from "@nodeyard/driver";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { type Call, type Connection, type KubeObject, ObjectWatch } from "../src/client/index.ts";
import type { Cluster } from "../src/cluster.ts";
import { markOf } from "../src/nodes/about.ts";
import { objectsIn } from "../src/nodes/machines.ts";

const TAG = { installation: "i", provider: "kube", pool: "main", nodeId: "0000000001" };
const LABELS = {
  nodeyard_installation: TAG.installation,
  nodepool_provider_name: TAG.provider,
  nodepool_pool_name: TAG.pool,
  nodepool_node_id: TAG.nodeId,
};
const { signal } = new AbortController();

function object(name: string, version?: number, more: object = {}): KubeObject {
  const resourceVersion = version === undefined ? undefined : String(version);
  return {
    metadata: { name, uid: `uid-${name}`, labels: LABELS, ...more, ...(version && { resourceVersion }) },
  } as KubeObject;
}

/** An API server with one collection, whose watches say what `emit` is given, and nothing else. */
function server(
  there: readonly KubeObject[] = [],
  { versioned = true, held }: { readonly versioned?: boolean; readonly held?: string } = {},
) {
  const clock = new VirtualClock();
  const objects = new Map(there.map((one) => [one.metadata.name, one]));
  const calls: string[] = [];
  let version = 100;
  let deletions = 0;
  const watches = new Set<(line: unknown) => void>();
  const connection = {
    async get({ path, query }: Call) {
      if (query === undefined) {
        calls.push("read");
        const found = objects.get(path.slice(path.lastIndexOf("/") + 1));
        if (found === undefined) throw new ApiError(path, { status: 404, text: "{}" });
        return found;
      }
      calls.push("list");
      return {
        metadata: versioned ? { resourceVersion: String(version) } : {},
        items: [...objects.values()],
      };
    },
    async delete({ path }: Call) {
      calls.push("delete");
      deletions++;
      // The first answer is wrong: the object is there.
      if (deletions === 1) throw new ApiError(path, { status: 404, text: "{}" });
      if (held === undefined) return objects.clear();
      const conditions = [{ type: "NamespaceFinalizersRemaining", status: "True", message: held }];
      for (const [name, one] of objects) {
        const metadata = { ...one.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" };
        objects.set(name, { ...one, metadata, status: { conditions } } as KubeObject);
      }
    },
    async *lines({ query, signal: end }: Call) {
      calls.push(`watch ${query?.resourceVersion}`);
      const queue: unknown[] = [];
      let wake = Promise.withResolvers<unknown>();
      const tell = (line: unknown) => {
        queue.push(line);
        wake.resolve(undefined);
      };
      watches.add(tell);
      const over = clock.setTimer(Number(query?.timeoutSeconds) * 1000, () => tell("end"));
      // As the server does for watches that resume.
      const beat = () => {
        if (versioned) tell({ type: "BOOKMARK", object: object("", version) });
        bookmark = clock.setTimer(60_000, beat);
      };
      let bookmark = clock.setTimer(60_000, beat);
      end.addEventListener("abort", () => wake.reject(end.reason));
      try {
        for (;;) {
          while (queue.length > 0) {
            const line = queue.shift();
            if (line === "end") return;
            yield line;
          }
          await wake.promise;
          wake = Promise.withResolvers();
        }
      } finally {
        over.cancel();
        bookmark.cancel();
        watches.delete(tell);
      }
    },
  } as unknown as Connection;
  const failures: unknown[] = [];
  const watch = new ObjectWatch({
    connection,
    clock,
    random: seededRandom(1),
    path: "/api/things",
    onFailure: (error) => failures.push(error),
  });
  void watch.look(signal);
  const emit = async (type: string, what: KubeObject) => {
    for (const tell of watches) tell({ type, object: what });
    await clock.advance(10);
  };
  const restore = (to: number) => {
    version = to;
  };
  return { clock, objects, calls, watch, emit, failures, connection, restore };
}

describe("a watch", () => {
  test("of a collection without versions sees the end of an object of which only the name is told, and lists before each watch", async () => {
    const { clock, objects, watch, emit, calls, failures } = server([object("a", 5)], { versioned: false });
    await clock.advance(10);
    await watch.look(signal);
    expect(watch.get("a")).toBeDefined();
    const ended = watch.wait({ name: "a" }, (one) => (one === undefined ? true : undefined), signal);
    objects.delete("a");
    await emit("DELETED", { metadata: { name: "a" } } as KubeObject);
    expect(await ended).toBe(true);
    // What no event said is seen when the watch has ended.
    objects.set("b", object("b", 7));
    await clock.advance(130_000);
    expect(watch.get("b")).toBeDefined();
    objects.delete("b");
    await clock.advance(130_000);
    expect(watch.get("b")).toBeUndefined();
    expect(failures).toEqual([]);
    expect(calls.filter((call) => call === "list").length).toBeGreaterThan(2);
    expect(calls).toContain("watch 0");
    watch.close();
  });

  test("lists again after ten minutes, and believes a server that was restored to an older state", async () => {
    const { clock, objects, watch, restore } = server([object("a", 90), object("kept", 95)]);
    await clock.advance(10);
    expect(watch.get("a")).toBeDefined();
    objects.delete("a");
    objects.set("kept", object("kept", 30));
    objects.set("b", object("b", 40));
    restore(50);
    await clock.advance(1_200_000);
    expect([watch.get("a"), watch.get("b")?.metadata.name]).toEqual([undefined, "b"]);
    expect(watch.get("kept")?.metadata.resourceVersion).toBe("30");
    watch.close();
  });
});

describe("a deletion", () => {
  /** Runs the steps to their end, in virtual time. */
  async function removed(there: ReturnType<typeof server>, stored: string | null = null): Promise<unknown> {
    const { clock, connection, watch } = there;
    const site = { cluster: connection as Cluster, clock, installation: TAG.installation };
    const collection = {
      ...({ path: "/api/things", namespace: "", what: "namespace", isProject: false } as const),
      watch: async (own: AbortSignal) => watch.look(own),
      nameOf: () => "never",
      make: async () => object("never", 1),
    };
    const { machines } = objectsIn(site, collection, signal);
    const provider = { name: TAG.provider, launchTimeoutMs: 1 };
    const never = () => Promise.reject(new Error("nothing is made"));
    const { remove } = machineSteps(provider, { machines, make: never, describe: never });
    let ended = false;
    const run = async () => {
      for await (const _ of remove(TAG, { signal, externalId: stored }));
    };
    const work = run().then(
      () => undefined,
      (error: unknown) => error,
    );
    void work.then(() => {
      ended = true;
    });
    for (let at = 0; !ended && at < 120_000; at += 100) await clock.advance(100);
    expect(ended).toBe(true);
    watch.close();
    return work;
  }

  test("that was answered with not found, for an object that is there, is repeated within seconds, though no event comes", async () => {
    const site = server([object("main-0000000001", 90)]);
    await site.clock.advance(10);
    expect(await removed(site)).toBeUndefined();
    expect(site.objects.size).toBe(0);
    expect(site.calls.filter((call) => call === "delete")).toHaveLength(2);
  });

  test("of a namespace that somebody keeps from ending fails with what the namespace says", async () => {
    const held = "Some content in the namespace has finalizers remaining: job/keep in 1 resource instances";
    const error = String(await removed(server([object("main-0000000001", 90)], { held })));
    expect(error).toContain(`namespace main-0000000001 does not end: ${held}`);
  });

  test("finds an object that lost its labels by the name in the record, and leaves one alone that says nothing of the node", async () => {
    const annotations = { "nodeyard/node": JSON.stringify(LABELS) };
    const kept = server();
    await kept.clock.advance(10);
    kept.objects.set("main-0000000001", object("main-0000000001", 110, { labels: {}, annotations }));
    expect(await removed(kept, "main-0000000001")).toBeUndefined();
    expect(kept.objects.size).toBe(0);
    const bare = server();
    await bare.clock.advance(10);
    bare.objects.set("main-0000000001", object("main-0000000001", 110, { labels: {} }));
    expect(String(await removed(bare, "main-0000000001"))).toContain("does not carry our metadata");
    expect(bare.objects.size).toBe(1);
  });
});

describe("a claim", () => {
  const FIRST = "main-0000000001";
  const order = { tag: TAG, label: { name: "small" }, attempt: 1 } as unknown as CreateOrder;

  /**
   * The steps of a node's namespace, whose server refuses names that are taken; `fails` are names that it refuses for another reason, `isTaken`
   * says that it refuses a name of nothing.
   */
  function steps(there: ReturnType<typeof server>, fails: readonly string[] = [], isTaken = () => false) {
    const { clock, connection, objects, watch } = there;
    const collection = {
      ...({ path: "/api/things", namespace: "", what: "namespace", isProject: false } as const),
      watch: async (own: AbortSignal) => watch.look(own),
      nameOf: () => FIRST,
      async make(_: unknown, name: string) {
        if (fails.includes(name)) throw new ApiError(name, { status: 403, text: "{}" });
        if (isTaken() || objects.has(name))
          throw new ApiError(name, { status: 409, text: "{}" }, { codes: ["AlreadyExists"] });
        const made = object(name, 200, { uid: `new-${name}` });
        objects.set(name, made);
        return made;
      },
    };
    const site = { cluster: connection as Cluster, clock, installation: TAG.installation };
    const describe = async () => ({ externalId: "", interfaceIp: null });
    return machineSteps(
      { name: TAG.provider, launchTimeoutMs: 1_000 },
      { ...objectsIn(site, collection, signal), describe },
    );
  }

  /** Runs steps in virtual time. What they save, or their error. */
  async function ran(there: ReturnType<typeof server>, all: AsyncGenerator<Step, unknown, void>) {
    const saved: unknown[] = [];
    let ended: unknown;
    const run = async () => {
      for await (const { save } of all) if (save !== undefined) saved.push(save.externalId);
      return saved;
    };
    void run().then(
      (value) => {
        ended = value;
      },
      (error: unknown) => {
        ended = { error, saved };
      },
    );
    for (let at = 0; ended === undefined && at < 120_000; at += 100) await there.clock.advance(100);
    there.watch.close();
    return ended;
  }

  test("of a name that another Nodepool has leaves it in no record, whatever becomes of the second name", async () => {
    const { nodeyard_installation: _, ...labels } = LABELS;
    const there = server([object(FIRST, 90, { labels })]);
    await there.clock.advance(10);
    const { create } = steps(there, [markedName()]);
    expect(await ran(there, create(order, { signal, externalId: null }))).toMatchObject({ saved: [] });
    const again = server([object(FIRST, 90, { labels })]);
    await again.clock.advance(10);
    await ran(again, steps(again).remove(TAG, { signal, externalId: null }));
    expect(again.objects.has(FIRST)).toBe(true);
  });

  test("waits for an own object that ends, and takes the same name again", async () => {
    const ending = object(FIRST, 90, { deletionTimestamp: "2026-01-01T00:00:00Z" });
    const there = server();
    await there.clock.advance(10);
    there.objects.set(FIRST, ending);
    const run = ran(there, steps(there).create(order, { signal, externalId: null }));
    await there.clock.advance(1_000);
    there.objects.delete(FIRST);
    expect(await run).toEqual([FIRST]);
  });

  test("of a name that is taken by nothing tries once a second", async () => {
    const there = server();
    await there.clock.advance(10);
    const tries: number[] = [];
    const phantom = steps(there, [], () => tries.push(there.clock.monotonic()) <= 5);
    expect(await ran(there, phantom.create(order, { signal, externalId: null }))).toEqual([FIRST]);
    expect(tries.slice(1).map((at, index) => at - tries[index]!)).toEqual([
      1_000, 1_000, 1_000, 1_000, 1_000,
    ]);
  });

  test("that took both names is removed whole", async () => {
    const there = server([object(FIRST, 90), object(markedName(), 91)]);
    await there.clock.advance(10);
    await ran(there, steps(there).remove(TAG, { signal, externalId: null }));
    expect([...there.objects.keys()]).toEqual([]);
    expect(there.watch.get(markedName())).toBeUndefined();
    expect(there.calls.filter((call) => call === "delete").length).toBeGreaterThan(2);
  });

  function markedName() {
    return `${FIRST}-${markOf(TAG)}`;
  }
});
