import fc from "fast-check";
import { expect, test } from "vitest";
import { type MachineFacts, Promises, type Stated, sharedWithSlivers } from "../../src/core/capacity.ts";
import { incoming } from "./arbitrary.ts";

const facts = { cores: 2, memory: 8_388_608, pool: 20_000_000 };

function shared(
  stated: { machine?: object; capacity?: Stated["capacity"]; caches?: object },
  found: MachineFacts,
) {
  const { machine = {}, capacity = {}, caches = {} } = stated;
  return sharedWithSlivers(
    { machine: { highestIndex: 8, ...machine }, capacity, isolation: { caches: { ...caches } } },
    found,
  );
}

test("what is not stated is found: all CPUs, memory without the machine's own, the pool without what images need", () => {
  expect(shared({}, facts)).toEqual({
    cpu: 2000,
    capacity: { cpu: 2000, memory: 7_340_032, disk: 15_000_000 },
  });
  const { pool: _, ...poolless } = facts;
  expect(shared({}, poolless).capacity).not.toHaveProperty("disk");
  // A small machine keeps enough to live on, and promises nothing that it has not.
  const small = shared({}, { ...facts, memory: 300_000 });
  expect(small.capacity.memory).toBe(300_000 - 262_144);
  expect(shared({}, { ...facts, memory: 1000 }).capacity.memory).toBe(0);
});

test("what is stated holds, each for itself, and CPU promised follows CPU shared", () => {
  expect(shared({ machine: { cpu: 500 }, capacity: { memory: 7, net: 0 } }, facts)).toEqual({
    cpu: 500,
    capacity: { cpu: 500, memory: 7, disk: 15_000_000, net: 0 },
  });
  expect(shared({ machine: { cpu: 500 }, capacity: { cpu: 1, disk: undefined } }, facts)).toMatchObject({
    cpu: 500,
    capacity: { cpu: 1, disk: 15_000_000 },
  });
});

test("devices are counted by class", () => {
  const devices = { kvm: ["/dev/kvm", "/dev/kvm"], board: ["/dev/ttyUSB0"] };
  expect(shared({ machine: { devices } }, facts).capacity).toMatchObject({
    "device.kvm": 2,
    "device.board": 1,
  });
});

test("a cache is there for every sliver of the machine", () => {
  const { capacity } = shared({ caches: { ccache: "/srv/ccache" } }, facts);
  expect(capacity["cache.ccache"]).toBe(8);
  const promises = new Promises(capacity);
  expect(promises.lacks(incoming("ada", 1, { caches: ["ccache"] }))).toBeUndefined();
  const lacked = { key: "cache.mirror", wanted: 1, free: 0 };
  expect(promises.lacks(incoming("bob", 1, { caches: ["ccache", "mirror"] }))).toEqual(lacked);
});

test("never more than there is, on any machine", () => {
  const amount = fc.integer({ min: 0, max: 2 ** 40 });
  const machines = fc.record({ cores: fc.integer({ min: 1, max: 1024 }), memory: amount, pool: amount });
  fc.assert(
    fc.property(machines, ({ cores, memory, pool }) => {
      const { cpu, capacity } = shared({}, { cores, memory, pool });
      expect(cpu).toBe(1000 * cores);
      expect(capacity.memory!).toBeLessThanOrEqual(memory);
      expect(capacity.disk!).toBeLessThanOrEqual(pool);
      for (const one of Object.values(capacity)) expect(one).toBeGreaterThanOrEqual(0);
    }),
  );
});
