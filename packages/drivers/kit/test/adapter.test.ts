import { VirtualClock } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { drive } from "../src/adapter/drive.ts";
import { adapterProvider } from "../src/adapter/provider.ts";
import {
  type Adapter,
  type AdapterResource,
  asDriverError,
  DriverError,
  type ExternalId,
  type ImageTag,
  type Instance,
  type LabelConfig,
  type MapError,
  type ProviderConfig,
  providerProblem,
  RateLimiter,
  type StateMachine,
  type Step,
  type UploadOrder,
} from "../src/index.ts";

const signal = new AbortController().signal;
const context = { signal, externalId: null };
const clock = new VirtualClock();
const limiter = new RateLimiter({ clock, intervalMs: 0 });
const pacing = { clock, limiter, paceMs: 1_000, listLagMs: 0 };
const config = { name: "lab", driver: "own", launchTimeoutMs: 60_000 } as ProviderConfig;
const tag = { installation: "i", provider: "lab", pool: "main", nodeId: "0000000007" };
const metadata = {
  nodeyard_installation: "i",
  nodepool_provider_name: "lab",
  nodepool_pool_name: "main",
  nodepool_node_id: "0000000007",
};

function instance(fields: Partial<Instance> = {}): Instance {
  const quota = { instances: 1 };
  return { externalId: "m", metadata, ready: true, deleted: false, quota, interfaceIp: null, ...fields };
}

function providerOf(adapter: Adapter, mapError: MapError = asDriverError) {
  return adapterProvider({ ...pacing, adapter, config, mapError });
}

/** An adapter of a cloud with `instances`; deleting takes them out. */
function adapter(instances: Instance[], changes: Partial<Adapter> = {}): Adapter & { deleted: ExternalId[] } {
  const deleted: ExternalId[] = [];
  return {
    deleted,
    createMachine: () => done(instance({ externalId: "new" })),
    deleteMachine: (externalId) => {
      deleted.push(externalId);
      return done(undefined, "deleting", externalId);
    },
    listInstances: async () => instances,
    ...changes,
  };
}

function done<T>(result: T, state = "done", externalId: ExternalId | null = null): StateMachine<T> {
  return { state, externalId, complete: true, advance: () => result };
}

async function all<T>(steps: AsyncGenerator<Step, T, void>): Promise<{ steps: Step[]; result: T }> {
  const seen: Step[] = [];
  for (;;) {
    const pending = steps.next();
    let settled = false;
    const settle = () => {
      settled = true;
    };
    pending.then(settle, settle);
    for (let second = 0; !settled && second < 100; second++) await clock.advance(1_000);
    const next = await pending;
    if (next.done) return { steps: seen, result: next.value };
    seen.push(next.value);
  }
}

describe("a state machine", () => {
  test("is one step per state it is seen in; an id that grows is stored as it was each time", async () => {
    const id: Record<string, string> = {};
    let turn = 0;
    const machine = {
      state: "start",
      externalId: null as ExternalId | null,
      complete: false,
      async advance() {
        turn++;
        if (turn === 1)
          Object.assign(machine, { externalId: Object.assign(id, { host: "h" }), state: "host" });
        if (turn === 3) Object.assign(id, { instance: "i" });
        if (turn === 5) machine.state = "booting";
        if (turn === 6) machine.complete = true;
        return turn === 6 ? "up" : undefined;
      },
    };
    const { steps, result } = await all(drive(pacing, machine, context, 60_000));
    expect(result).toBe("up");
    expect(steps.map(({ step, save }) => [step, save?.externalId])).toEqual([
      ["start", undefined],
      ["host", { host: "h" }],
      ["host", { host: "h", instance: "i" }],
      ["booting", undefined],
    ]);
    expect(steps[3]!.deadlineMs).toBeLessThan(steps[0]!.deadlineMs);
  });

  test("that hangs ends with the signal's reason", async () => {
    const end = new AbortController();
    const machine = { ...done(undefined), complete: false, advance: () => new Promise<undefined>(() => {}) };
    const run = drive(pacing, machine, { signal: end.signal, externalId: null }, 1_000);
    await run.next();
    const hanging = run.next();
    const reason = new DriverError("timeout", "too late");
    end.abort(reason);
    await expect(hanging).rejects.toBe(reason);
  });

  test("that makes nothing is a fault of the adapter", async () => {
    const provider = providerOf(adapter([], { createMachine: () => done(undefined as never) }));
    const steps = provider.create({ tag } as never, context);
    await expect(all(steps)).rejects.toMatchObject({ kind: "fatal" });
  });
});

describe("an adapter's provider", () => {
  test("has all methods, and only the offers that the adapter has", () => {
    const provider = providerOf(adapter([]));
    expect(providerProblem(provider)).toBeUndefined();
    expect(Object.keys(provider.offers!)).toEqual(["pace"]);
    expect(provider.offers!.pace!.now()).toBe(limiter);
  });

  test("deletes by the stored id what no list shows, and never what the list shows as another's", async () => {
    const theirs = instance({
      externalId: "theirs",
      metadata: { ...metadata, nodepool_node_id: "0000000008" },
    });
    for (const [stored, gone] of [
      ["unlisted", ["unlisted"]],
      ["theirs", []],
    ] as const) {
      const cloud = adapter([theirs]);
      const provider = providerOf(cloud);
      await all(provider.remove(tag, { signal, externalId: stored }));
      expect(cloud.deleted).toEqual(gone);
    }
  });

  test("takes not-found for the end of a deletion, whatever class it was thrown as", async () => {
    class Gone extends Error {}
    const vanished = { ...done(undefined), complete: false, advance: () => Promise.reject(new Gone("gone")) };
    const cloud = adapter([instance()], { deleteMachine: () => vanished });
    const typed = (error: unknown) => new DriverError(error instanceof Gone ? "not-found" : "fatal", "gone");
    await all(providerOf(cloud, typed).remove(tag, context));
  });

  test("lists what is listed twice once, and what is not wholly ours without a tag", async () => {
    const { nodeyard_installation: _, ...old } = metadata;
    const cloud = adapter([instance(), instance({ externalId: "python", metadata: old })], {
      listResources: async () => [
        { type: "instance", id: "m", metadata },
        { type: "port", id: "p", metadata },
      ],
    });
    const listed = await providerOf(cloud).list(signal);
    expect(listed.map(({ type, id, tag: own }) => [type, id, own?.nodeId])).toEqual([
      ["instance", "m", "0000000007"],
      ["instance", "python", undefined],
      ["port", "p", "0000000007"],
    ]);
  });

  test("takes a label out whose image is not there", async () => {
    const provider = providerOf(adapter([], { labelReady: async () => false }));
    const label = { name: "small", image: { kind: "cloud-image", name: "noble" } } as LabelConfig;
    await expect(provider.need(label, signal)).rejects.toMatchObject({
      kind: "configuration",
      message: expect.stringContaining("noble"),
    });
  });

  test("ends what is under way when it is closed, though the adapter does not", async () => {
    const provider = providerOf(adapter([], { listInstances: () => new Promise(() => {}) }));
    const steps = provider.create({ tag } as never, context);
    await steps.next();
    const pending = [steps.next(), provider.list(signal)].map((call) =>
      expect(call).rejects.toMatchObject({ kind: "transient" }),
    );
    await provider.close();
    await Promise.all(pending);
  });
});

test("an adapter's console is read from the machine of the tag", async () => {
  const read: unknown[] = [];
  const cloud = adapter([instance()], {
    consoleLog: async (id) => {
      read.push(id);
      return "panic";
    },
  });
  expect(await providerOf(cloud).offers?.console?.read(tag, { signal, externalId: "old" })).toBe("panic");
  expect(read).toEqual(["m"]);
});

describe("an adapter's images", () => {
  const image: ImageTag = {
    installation: "i",
    provider: "lab",
    image: "noble",
    buildId: "b",
    uploadId: "0000000001",
  };
  const order = { tag: image, metadata: { os: "linux" }, name: "noble-1" } as unknown as UploadOrder;

  function store(images: AdapterResource[]) {
    const deleted: ExternalId[] = [];
    let next = 0;
    const cloud = adapter([], {
      listResources: async () => [...images],
      uploadImage: async ({ metadata: own }) => {
        const id = `image-${++next}`;
        images.push({ type: "image", id, metadata: own });
        return id;
      },
      deleteImage: async (id) => {
        deleted.push(id);
        images.splice(
          images.findIndex((listed) => listed.id === id),
          1,
        );
      },
    });
    return { images: providerOf(cloud).offers!.images!, deleted };
  }

  test("carry the tag beside their own metadata; the id is stored before the upload has ended", async () => {
    const there: AdapterResource[] = [];
    const { steps, result } = await all(store(there).images.upload(order, context));
    expect(result).toBe("image-1");
    expect(steps.at(-1)?.save).toEqual({ externalId: "image-1" });
    expect(there[0]?.metadata).toMatchObject({ os: "linux", nodepool_upload_id: "0000000001" });
  });

  test("of an upload that was cut off are removed before the next; others' stay", async () => {
    const there: AdapterResource[] = [{ type: "image", id: "theirs", metadata: {} }];
    const { images, deleted } = store(there);
    await all(images.upload(order, context));
    await all(images.upload(order, context));
    expect(deleted).toEqual(["image-1"]);
    await all(images.remove(image, context));
    await all(images.remove(image, context));
    expect(there.map(({ id }) => id)).toEqual(["theirs"]);
  });
});
