import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { DriverError, driverConfig, driverProblem, METHODS, providerProblem } from "../src/index.ts";

const good = {
  name: "lab",
  contract: 1,
  capabilities: { launches: true, inventory: false, probes: false, tags: true },
  config: driverConfig("lab", {}, () => undefined),
  open: async () => ({}),
};
const with_ = (fields: object) => ({ ...good, capabilities: { ...good.capabilities, ...fields } });

describe("a driver is refused for", () => {
  test("nothing, when it is right", () => expect(driverProblem(good)).toBeUndefined());

  test.each([
    [undefined, "is not an object"],
    [{ ...good, name: "Lab 1" }, 'has the name "Lab 1"; it must be lower-case letters, digits and dashes'],
    [
      { ...good, contract: 2 },
      "was written for driver contract 2, and this Nodeyard has 1; install versions that fit",
    ],
    [
      { name: "lab", open() {} },
      "was written for driver contract nothing, and this Nodeyard has 1; install versions that fit",
    ],
    [{ ...good, open: undefined }, "has no method open"],
    [{ ...good, config: {} }, "has no config.load"],
    [
      { ...good, config: { ...good.config, schema: {} } },
      "has no config.schema; make config with driverConfig() of @nodeyard/driver",
    ],
    [{ ...good, capabilities: undefined }, "declares no capabilities"],
    [with_({ tags: undefined }), "must declare capabilities.tags as true or false"],
    [with_({ launches: false }), "declares neither launches nor inventory, so it has nothing to offer"],
    [with_({ probes: true }), "declares probes without inventory, and nothing else is ever probed"],
  ])("%j", (value, why) => expect(driverProblem(value)).toBe(why));
});

test("a provider has ten methods, and each that it lacks is named", () => {
  expect(METHODS).toHaveLength(10);
  const whole = Object.fromEntries(METHODS.map((name) => [name, () => {}]));
  expect(providerProblem(whole)).toBeUndefined();
  expect(providerProblem({ ...whole, find: undefined, close: 1 })).toBe("has no method find, close");
  expect(providerProblem(null)).toBe("is not an object");
});

test("what a provider offers beyond machines is complete", () => {
  const whole = Object.fromEntries(METHODS.map((name) => [name, () => {}]));
  const method = () => {};
  for (const offers of [undefined, {}, { zones: { list: method }, console: { read: method } }])
    expect(providerProblem({ ...whole, offers })).toBeUndefined();
  expect(providerProblem({ ...whole, offers: null })).toBe("has offers that are not an object");
  expect(providerProblem({ ...whole, offers: { zones: {} } })).toBe("offers zones without a method list");
  expect(providerProblem({ ...whole, offers: { images: { upload: method } } })).toBe(
    "offers images without a method remove",
  );
  expect(providerProblem({ ...whole, offers: { handover: null } })).toBe(
    "offers handover without a method ready",
  );
  const handover = { ready: method };
  expect(providerProblem({ ...whole, offers: { handover } })).toBeUndefined();
  expect(providerProblem({ ...whole, offers: { handover: { ...handover, reconcile: 1 } } })).toBe(
    "offers handover whose reconcile is not a method",
  );
});

test("a DriverError of another copy of the package is one here; other errors are not", () => {
  const brand = Symbol.for("nodeyard.DriverError");
  const foreign = runInNewContext("Object.assign(new Error('full'), { kind: 'quota', [brand]: true })", {
    brand,
  });
  expect(foreign instanceof Error).toBe(false);
  expect(foreign instanceof DriverError).toBe(true);
  expect(new DriverError("quota", "full") instanceof DriverError).toBe(true);
  for (const other of [new Error("full"), undefined, null, "full", {}])
    expect(other instanceof DriverError).toBe(false);
});
