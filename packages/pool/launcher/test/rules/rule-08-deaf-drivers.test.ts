import type { Driver, Provider } from "@nodeyard/driver";
import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { fakeProvider, type Json, launcherConfig, type Member, World } from "./world.ts";

const STEPS: readonly string[] = ["create", "remove"];
/** Longer than any one question to a driver may wait. */
const ANSWER_MS = 130_000;

/** Methods of provider "cloud" that never answer and do not heed their signals either, for as long as they stand in it. */
class Deafness extends Set<keyof Provider | "open"> {
  readonly calls = new Map<string, number>();

  readonly wrap = (driver: Driver): Driver => ({
    ...driver,
    open: async (config, context) => {
      if (config.name === "cloud") await this.#hear("open");
      const provider = await driver.open(config, context);
      if (config.name !== "cloud") return provider;
      return new Proxy(provider, {
        get: (target, name: keyof Provider) => {
          const value: unknown = target[name];
          if (typeof value !== "function") return value;
          const method: (...args: unknown[]) => unknown = value.bind(target);
          if (name === "inventory" || name === "close") return method;
          if (STEPS.includes(name)) return (...args: unknown[]) => this.#steps(name, () => method(...args));
          return async (...args: unknown[]) => {
            await this.#hear(name);
            return method(...args);
          };
        },
      });
    },
  });

  async *#steps(name: keyof Provider, inner: () => unknown): AsyncGenerator {
    await this.#hear(name);
    return yield* inner() as AsyncGenerator;
  }

  async #hear(name: keyof Provider | "open"): Promise<void> {
    this.calls.set(name, (this.calls.get(name) ?? 0) + 1);
    if (this.has(name)) await new Promise(() => {});
  }
}

/** Provider "cloud" has what nobody else has (large), and shares what everybody has. */
const both = () =>
  launcherConfig([
    fakeProvider("more", {}, { labels: [LABEL("small")] }),
    fakeProvider("cloud", { "launch-retries": 2 }, { labels: [LABEL("large")] }),
  ]);
const LABEL = (name: string) => ({ name, "cloud-image": "image", "flavor-name": "Fake Flavor" });

const lines = ({ log }: Member, text: string) => log.lines.filter((line) => line.text.startsWith(text));

/** Others are served as if nothing was the matter: a request and a lease's worth of it, from start to the node's end. */
async function othersAreServed(world: World): Promise<void> {
  const id = await world.ask();
  await world.fulfilled(id, 5_000);
  const [node] = world.request(id)!.nodes as string[];
  await world.use(id);
  await world.until("its node is gone", () => world.node(node!) === undefined, 5_000);
}

async function deafFrom(
  start: readonly (keyof Provider | "open")[],
): Promise<{ world: World; member: Member; deafness: Deafness }> {
  const world = new World();
  const deafness = new Deafness(start);
  const launched = world.launch("launcher-a", both(), { wrap: deafness.wrap });
  if (start.length > 0) {
    await world.until("the other provider serves", () => pools(world).length === 1, 5_000);
    await othersAreServed(world);
  }
  const member = await world.settle(launched.starting, ANSWER_MS);
  return { world, member, deafness };
}

const pools = (world: World) => world.children("/nodepool/components/pool");

describe("rule 8: a driver that does not answer when it is opened", () => {
  test.each(["open", "quota", "need"] as const)(
    "%s: the provider is left out, the others serve, it is tried again",
    async (method) => {
      const { world, member, deafness } = await deafFrom([method]);
      expect(lines(member, "cannot open a provider")[0]?.facts).toMatchObject({
        provider: "cloud",
        error: expect.stringMatching(/did not answer within 60000 ms/),
      });
      expect(pools(world)).toHaveLength(1);
      await othersAreServed(world);
      deafness.clear();
      await world.until("it serves", () => pools(world).length === 2, 2 * ANSWER_MS);
      await world.fulfilled(await world.ask({ node_types: ["large"] }), 5_000);
    },
  );

  test("list, where the quota depends on it", async () => {
    const world = new World({ quota: { instances: 5 } });
    const deafness = new Deafness(["list"]);
    const { starting } = world.launch("launcher-a", both(), { wrap: deafness.wrap });
    await world.until("the other provider serves", () => pools(world).length === 1, 5_000);
    await othersAreServed(world);
    const member = await world.settle(starting, ANSWER_MS);
    expect(lines(member, "cannot open a provider")[0]?.facts).toMatchObject({ provider: "cloud" });
    expect(member.counters.value("launcher.provider_silent", { provider: "cloud", call: "list" })).toBe(1);
    deafness.clear();
    await world.until("it serves", () => pools(world).length === 2, 2 * ANSWER_MS);
    await world.fulfilled(await world.ask({ node_types: ["large"] }), 5_000);
  });
});

describe("rule 8: a driver that stops answering", () => {
  test.each(["quota", "need"] as const)(
    "%s: the last answer stays in force, and it is asked again",
    async (method) => {
      const { world, member, deafness } = await deafFrom([]);
      deafness.add(method);
      const before = deafness.calls.get(method)!;
      await world.until("it is reported", () => lines(member, "cannot read a provider's quota")[0], 400_000);
      await othersAreServed(world);
      await world.fulfilled(await world.ask({ node_types: ["large"] }), 5_000);
      expect(member.counters.value("launcher.provider_silent", { provider: "cloud", call: method })).toBe(1);
      await world.until("it is asked again", () => deafness.calls.get(method)! >= before + 2, 400_000);
    },
  );

  test.each(["list", "removeResource"] as const)(
    "%s: what leaked goes once it answers again",
    async (method) => {
      const { world, member, deafness } = await deafFrom([]);
      await world.machine("leak", { nodeId: "0000004711" });
      deafness.add(method);
      await world.until(
        "it is counted",
        () => member.counters.value("launcher.provider_silent", { provider: "cloud", call: method }) === 1,
        600_000,
      );
      await othersAreServed(world);
      expect(
        lines(member, method === "list" ? "a controller failed" : "cannot delete a leaked resource"),
      ).toHaveLength(1);
      deafness.clear();
      await world.until("it goes", () => world.cloud.inspect().length === 0, 600_000);
    },
  );

  test("find: a node whose machine is gone is taken out once it answers again", async () => {
    const { world, member, deafness } = await deafFrom([]);
    const id = await world.ask({ node_types: ["large"] });
    await world.fulfilled(id);
    const [node] = world.request(id)!.nodes as string[];
    await world.settle(world.other.delete(paths.request(id)));
    await world.until("it is free", () => world.node(node!)?.allocated_to === null);
    deafness.add("find");
    const [machine] = world.cloud.inspect();
    await world.cloud.delete(machine!.id, new AbortController().signal);
    await world.until(
      "it is reported",
      () => lines(member, "cannot delete a node whose machine is gone")[0],
      600_000,
    );
    expect(member.counters.value("launcher.provider_silent", { provider: "cloud", call: "find" })).toBe(1);
    await othersAreServed(world);
    expect(world.node(node!)).toBeDefined();
    deafness.clear();
    await world.until("it is taken out", () => world.node(node!) === undefined, 600_000);
  });

  test("remove: the node is deleted once it answers again, and until then it says why it stands", async () => {
    const { world, member, deafness } = await deafFrom([]);
    const id = await world.ask({ node_types: ["large"] });
    await world.fulfilled(id);
    const [node] = world.request(id)!.nodes as string[];
    deafness.add("remove");
    await world.use(id);
    await world.until(
      "it is reported",
      () => lines(member, "an attempt to delete a node failed")[0],
      700_000,
    );
    expect(lines(member, "an attempt to delete a node failed")[0]?.facts).toMatchObject({
      node,
      error: expect.stringMatching(/took longer than 60000 ms/),
    });
    expect(member.counters.value("launcher.deletes", { provider: "cloud", result: "failed" })).toBe(1);
    await othersAreServed(world);
    deafness.clear();
    await world.until("it goes", () => world.node(node!) === undefined, 600_000);
    await world.until("its machine too", () => world.cloud.inspect().length === 0);
  });

  test("create: the launch fails, and so does the request when no try is left", async () => {
    const { world, member, deafness } = await deafFrom([]);
    deafness.add("create");
    const id = await world.ask({ node_types: ["large"] });
    await world.run(1_000);
    await othersAreServed(world);
    await world.until("it failed", () => world.request(id)?.state === "failed", 300_000);
    const failures = member.journal.events.filter(({ event }) => event === "node.launch-failed");
    expect(failures.map(({ facts }) => (facts as Json).error)).toEqual([
      expect.stringMatching(/took longer than 60000 ms/),
      expect.stringMatching(/took longer than 60000 ms/),
    ]);
    deafness.clear();
    await world.fulfilled(await world.ask({ node_types: ["large"] }), 60_000);
  });
});
