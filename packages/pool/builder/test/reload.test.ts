import type { Driver, Provider } from "@nodeyard/driver";
import { fakeDriver } from "@nodeyard/driver-fake";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { Counters, Live, memoryLog } from "@nodeyard/telemetry";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ImageProviders } from "../src/control/providers.ts";
import { type Host, makeHost, openTree } from "./rig.ts";

let host: Host;

beforeEach(() => {
  host = makeHost();
});
afterEach(() => host.remove());

test("a reload leaves a provider open that has not changed, and opens one again that has", async () => {
  const calls: string[] = [];
  const driver = fakeDriver as unknown as Driver;
  const counting: Driver = {
    ...driver,
    async open(...args) {
      calls.push("open");
      const provider: Provider = await driver.open(...args);
      const close = () => {
        calls.push("close");
        return provider.close();
      };
      return { ...provider, close };
    },
  };
  const handles = { clock: systemClock, random: systemRandom, log: memoryLog(), counters: new Counters() };
  await using tree = await openTree(host);
  const scan = { scan: () => Promise.reject(new Error("nothing to scan here")) };
  const providers = new ImageProviders(
    { ...handles, tree, live: new Live(systemClock), installation: "i" },
    scan,
    async () => counting,
    () => {},
    () => {},
  );
  const read = () => host.config("  - {name: small}", "{name: small}").providers;
  await providers.apply(read());
  await providers.apply(read());
  expect(calls).toEqual(["open"]);
  expect([...providers.open.keys()]).toEqual(["cloud"]);
  await providers.apply(read().map((provider) => ({ ...provider, launchAttempts: 7 })));
  expect(calls).toEqual(["open", "close", "open"]);
  await providers.close();
  expect(calls).toEqual(["open", "close", "open", "close"]);
});
