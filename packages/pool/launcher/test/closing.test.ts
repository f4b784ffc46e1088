import { type Driver, DriverError, type Provider } from "@nodeyard/driver";
import { paths } from "@nodeyard/model";
import { sleep } from "@nodeyard/runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

const never = () => new Promise<never>(() => {});

/** Changes what a driver opens for provider `one`. */
const changing =
  (change: (provider: Provider) => void | Promise<void>) =>
  (driver: Driver): Driver => ({
    ...driver,
    open: async (config, context) => {
      const provider = await driver.open(config, context);
      if (config.name === "one") await change(provider);
      return provider;
    },
  });

const [one, two] = [fakeProvider("one"), fakeProvider("two")];

describe("a provider whose close never ends", () => {
  const wrap = changing((provider) => {
    provider.close = never;
  });

  test("delays no reload for longer than its limit, and is reported", async () => {
    const world = new World();
    const { launcher, counters, log } = await world.start("a", launcherConfig([one, two]), { wrap });
    void launcher.reconfigure(launcherConfig([two]));
    await world.run(1_000);
    await world.settle(launcher.reconfigure(launcherConfig([two, fakeProvider("three")])), 15_000);
    expect(world.children(paths.component("pool"))).toHaveLength(2);
    expect(counters.value("launcher.provider_silent", { provider: "one", call: "close" })).toBe(1);
    expect(log.lines.filter(({ level }) => level === "warn")).toMatchObject([{ facts: { provider: "one" } }]);
  });

  test("holds up no stop", async () => {
    const world = new World();
    const { launcher } = await world.start("a", launcherConfig([one]), { wrap });
    await world.settle(launcher.close(1_000), 15_000);
  });

  test("and that could not be asked for its quota is tried again", async () => {
    const world = new World();
    let opened = 0;
    const wrap = changing((provider) => {
      if (opened++ > 0) return;
      provider.close = never;
      provider.quota = async () => {
        throw new DriverError("transient", "503");
      };
    });
    await world.start("a", launcherConfig([one]), { wrap });
    await world.fulfilled(await world.ask(), 30_000);
  });
});

describe("a provider whose close fails", () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  const wrap = changing((provider) => {
    provider.close = () => Promise.reject(new Error("socket hang up"));
  });
  beforeEach(() => {
    unhandled.length = 0;
    process.on("unhandledRejection", note);
  });
  afterEach(() => void process.off("unhandledRejection", note));
  const quiet = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled).toEqual([]);
  };
  const failures = (log: { readonly lines: readonly { readonly facts: unknown }[] }) =>
    log.lines.filter(({ facts }) => JSON.stringify(facts).includes("socket hang up"));

  test("is reported, both when it is closed at once and when its work has ended", async () => {
    for (const createMs of [0, 10_000]) {
      const none = { minMs: 0, maxMs: 0 };
      const create = { minMs: createMs, maxMs: createMs };
      const world = new World({ latency: { create, boot: none, delete: none, read: none } });
      const { launcher, log } = await world.start("a", launcherConfig([one]), { wrap });
      const request = await world.ask();
      await world.run(2_000);
      await world.settle(launcher.reconfigure(launcherConfig([two])));
      await world.run(20_000);
      // Nothing needs the provider any more.
      await world.settle(world.other.delete(paths.request(request)));
      await world.run(240_000);
      await quiet();
      expect(failures(log)).toHaveLength(1);
      await world.fulfilled(await world.ask());
    }
  });

  test("is reported when it opened too late", async () => {
    const world = new World();
    let opened = 0;
    const late = changing(async (provider) => {
      provider.close = () => {
        // A driver need not be careful.
        throw new Error("socket hang up");
      };
      if (opened++ === 0) await sleep(world.clock, 70_000);
    });
    const { log } = await world.start("a", launcherConfig([one]), { wrap: late });
    await world.run(30_000);
    await quiet();
    expect(failures(log)).toHaveLength(1);
    await world.fulfilled(await world.ask());
  });
});
