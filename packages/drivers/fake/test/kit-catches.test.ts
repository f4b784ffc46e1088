import type { ImageStore, Offers, Provider } from "@nodeyard/driver";
import { driverConformance } from "@nodeyard/driver-testkit";
import { describe, expect, test } from "vitest";
import { INSTANT } from "../src/index.ts";
import { type FakeRig, fakeRig } from "./rig.ts";

/** Runs the suite over a spoilt driver and returns the names of the tests that failed. */
async function failuresOf(spoil: (provider: Provider, rig: FakeRig) => Provider): Promise<readonly string[]> {
  const tests: { readonly name: string; readonly body: () => Promise<void> }[] = [];
  const collect = {
    describe: (_name: string, body: () => void) => body(),
    test: (name: string, body: () => Promise<void>) => void tests.push({ name, body }),
    expect,
  };
  const capabilities = { launches: true, inventory: false, probes: false, tags: true };
  const setup = async () => {
    const rig = await fakeRig(INSTANT);
    return { ...rig, open: async (installation: string) => spoil(await rig.open(installation), rig) };
  };
  driverConformance("spoilt", { capabilities }, setup, collect);
  const failed: string[] = [];
  for (const { name, body } of tests) await body().catch(() => failed.push(name));
  return failed;
}

/** The provider with some methods replaced. */
function spoilt(provider: Provider, changes: Partial<Provider>): Provider {
  const base: Provider = {
    create: (order, context) => provider.create(order, context),
    remove: (tag, context) => provider.remove(tag, context),
    find: (tag, signal, stored) => provider.find(tag, signal, stored),
    list: (signal) => provider.list(signal),
    removeResource: (resource, signal) => provider.removeResource(resource, signal),
    quota: (signal) => provider.quota(signal),
    need: (label, signal) => provider.need(label, signal),
    inventory: () => provider.inventory(),
    probe: (item, signal) => provider.probe(item, signal),
    close: () => provider.close(),
    ...(provider.offers && { offers: provider.offers }),
    ...(provider.place && { place: () => provider.place?.() ?? {} }),
  };
  return { ...base, ...changes };
}

/** The provider with some of what it offers replaced. */
function offering(provider: Provider, changes: Partial<Offers>): Provider {
  return spoilt(provider, { offers: { ...provider.offers, ...changes } });
}

function store(provider: Provider, changes: Partial<ImageStore>): Provider {
  const inner = provider.offers!.images!;
  const base: ImageStore = {
    formats: inner.formats,
    upload: (order, context) => inner.upload(order, context),
    remove: (tag, context) => inner.remove(tag, context),
  };
  return offering(provider, { images: { ...base, ...changes } });
}

describe("the conformance kit fails a driver that", () => {
  test("is sound: none of its tests", async () => {
    expect(await failuresOf((provider) => provider)).toEqual([]);
  });

  test("makes a second machine when it is entered again", async () => {
    let count = 0;
    const failed = await failuresOf((provider, { cloud }) =>
      spoilt(provider, {
        async *create(order, context) {
          yield { step: "server", deadlineMs: 1_000 };
          // A cloud without idempotency tokens: each entry that does not look first makes one more.
          const tag = { ...order.tag, provider: `again-${count++}` };
          await cloud.create({ ...SPARE, tag }, context.signal);
          return yield* provider.create(order, context);
        },
      }),
    );
    expect(failed.join("\n")).toMatch(/a second create of the same tag/);
    expect(failed.join("\n")).toMatch(/a crash at every yield/);
  });

  test("gives a partial list", async () => {
    const failed = await failuresOf((provider) =>
      spoilt(provider, { list: async (signal) => (await provider.list(signal)).slice(1) }),
    );
    expect(failed).toContain("a list is complete, or it rejects");
  });

  test("deletes by the stored id alone, without checking the owner of the machine", async () => {
    const failed = await failuresOf((provider, { cloud }) =>
      spoilt(provider, {
        async *remove(tag, context) {
          if (typeof context.externalId === "string") {
            yield { step: "delete", deadlineMs: 1_000 };
            await cloud.delete(context.externalId, context.signal).catch(() => {});
          }
          yield* provider.remove(tag, context);
        },
      }),
    );
    expect(failed).toContain("removing by an id that belongs to another node leaves that node alone");
    expect(failed.join("\n")).toMatch(/two installations/);
  });

  test("removes nothing when it was given no id", async () => {
    const failed = await failuresOf((provider) =>
      spoilt(provider, {
        async *remove(tag, context) {
          if (context.externalId !== null) yield* provider.remove(tag, context);
        },
      }),
    );
    expect(failed.join("\n")).toMatch(/cancelled within any step/);
  });

  test("takes what an empty list leaves out for gone", async () => {
    const failed = await failuresOf((provider) =>
      spoilt(provider, { find: (tag, signal) => provider.find(tag, signal) }),
    );
    expect(failed.join("\n")).toMatch(/in no list any more/);
  });

  test("does not read the installation back from its tags", async () => {
    const failed = await failuresOf((provider) =>
      spoilt(provider, {
        list: async (signal) =>
          (await provider.list(signal)).map((resource) => ({
            ...resource,
            tag: resource.tag && { ...resource.tag, installation: "c2c4f8d0-3b7a-4d0e-8e0f-2a4f4f0b9e02" },
          })),
      }),
    );
    expect(failed.join("\n")).toMatch(/an empty tree/);
  });

  test("saves nothing before the machine is up", async () => {
    const failed = await failuresOf((provider) =>
      spoilt(provider, {
        async *create(order, context) {
          const steps = provider.create(order, context);
          for (;;) {
            const next = await steps.next();
            if (next.done) return next.value;
            yield { step: next.value.step, deadlineMs: next.value.deadlineMs };
          }
        },
      }),
    );
    expect(failed.join("\n")).toMatch(/saved before it is up/);
  });

  test("throws errors without a type", async () => {
    const failed = await failuresOf((provider) =>
      spoilt(provider, {
        list: (signal) =>
          provider.list(signal).catch((error: Error) => Promise.reject(new Error(error.message))),
      }),
    );
    expect(failed.join("\n")).toMatch(/closing twice/);
  });
});

describe("the conformance kit fails what a driver offers when", () => {
  test.each([
    ["unsorted", ["az2", "az1"]],
    ["named twice", ["az1", "az1"]],
    ["none", []],
  ])("zones are %s", async (_how, names) => {
    const failed = await failuresOf((provider) => offering(provider, { zones: { list: async () => names } }));
    expect(failed.join("\n")).toMatch(/^zones, if offered/m);
  });

  test("a console outlives its machine", async () => {
    const console = { read: async () => "Booting" };
    const failed = await failuresOf((provider) => offering(provider, { console }));
    expect(failed.join("\n")).toMatch(/^a console, if offered/m);
  });

  test("an upload that is entered again makes one more image", async () => {
    let count = 0;
    const failed = await failuresOf((provider, { cloud }) =>
      store(provider, {
        async *upload(order, context) {
          yield { step: "image", deadlineMs: 1_000 };
          const tag = { ...order.tag, buildId: `again-${count++}` };
          await cloud.createImage({ name: "again", tag }, context.signal);
          return yield* provider.offers!.images!.upload(order, context);
        },
      }),
    );
    expect(failed.join("\n")).toMatch(/a second upload of one tag/);
    expect(failed.join("\n")).toMatch(/a crash at every yield of an upload/);
  });

  test("an upload says neither its id nor how far it is before its end", async () => {
    const failed = await failuresOf((provider) =>
      store(provider, {
        async *upload(order, context) {
          const steps = provider.offers!.images!.upload({ ...order, progress: () => {} }, context);
          for (;;) {
            const next = await steps.next();
            if (next.done) return next.value;
            yield { step: next.value.step, deadlineMs: next.value.deadlineMs };
          }
        },
      }),
    );
    expect(failed.join("\n")).toMatch(/^an uploaded image is listed/m);
  });

  test("an image is removed by the stored id alone without checking its owner, and not at all without an id", async () => {
    const failed = await failuresOf((provider, { cloud }) =>
      store(provider, {
        async *remove(_tag, { externalId, signal }) {
          yield { step: "delete", deadlineMs: 1_000 };
          if (typeof externalId === "string") await cloud.deleteImage(externalId, signal).catch(() => {});
        },
      }),
    );
    expect(failed.join("\n")).toMatch(/^images of another installation/m);
    expect(failed.join("\n")).toMatch(/^an upload that is cancelled/m);
  });

  test("images are not listed", async () => {
    const failed = await failuresOf((provider) =>
      spoilt(provider, {
        list: async (signal) => (await provider.list(signal)).filter(({ type }) => type !== "image"),
      }),
    );
    expect(failed.join("\n")).toMatch(/^an uploaded image is listed/m);
  });

  test("a leaked image is left alone", async () => {
    const failed = await failuresOf((provider) =>
      spoilt(provider, {
        removeResource: async (resource, signal) => {
          if (resource.type !== "image") await provider.removeResource(resource, signal);
        },
      }),
    );
    expect(failed).toEqual(["a leaked image is removed as a resource, twice"]);
  });
});

const SPARE = {
  name: "spare",
  az: null,
  resources: { instances: 1 },
  networks: [],
  imageProperties: {},
};
