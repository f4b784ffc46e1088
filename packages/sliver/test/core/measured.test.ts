import fc from "fast-check";
import { expect, test } from "vitest";
import { sharedWithSlivers } from "../../src/core/capacity.ts";

const facts = { cores: 2, memory: 8_388_608, pool: 20_000_000 };

test("what is not stated is found: all CPUs, memory without the machine's own, the pool without what images need", () => {
  expect(sharedWithSlivers({ machine: {}, capacity: {} }, facts)).toEqual({
    cpu: 2000,
    capacity: { cpu: 2000, memory: 7_340_032, disk: 15_000_000 },
  });
  const { pool: _, ...poolless } = facts;
  expect(sharedWithSlivers({ machine: {}, capacity: {} }, poolless).capacity).not.toHaveProperty("disk");
  // A small machine keeps enough to live on, and promises nothing that it has not.
  const small = sharedWithSlivers({ machine: {}, capacity: {} }, { ...facts, memory: 300_000 });
  expect(small.capacity.memory).toBe(300_000 - 262_144);
  expect(sharedWithSlivers({ machine: {}, capacity: {} }, { ...facts, memory: 1000 }).capacity.memory).toBe(
    0,
  );
});

test("what is stated holds, each for itself, and CPU promised follows CPU shared", () => {
  expect(sharedWithSlivers({ machine: { cpu: 500 }, capacity: { memory: 7, net: 0 } }, facts)).toEqual({
    cpu: 500,
    capacity: { cpu: 500, memory: 7, disk: 15_000_000, net: 0 },
  });
  expect(
    sharedWithSlivers({ machine: { cpu: 500 }, capacity: { cpu: 1, disk: undefined } }, facts),
  ).toMatchObject({
    cpu: 500,
    capacity: { cpu: 1, disk: 15_000_000 },
  });
});

test("devices are counted by class", () => {
  const devices = { kvm: ["/dev/kvm", "/dev/kvm"], board: ["/dev/ttyUSB0"] };
  expect(sharedWithSlivers({ machine: { devices }, capacity: {} }, facts).capacity).toMatchObject({
    "device.kvm": 2,
    "device.board": 1,
  });
});

test("never more than there is, on any machine", () => {
  const amount = fc.integer({ min: 0, max: 2 ** 40 });
  const machines = fc.record({ cores: fc.integer({ min: 1, max: 1024 }), memory: amount, pool: amount });
  fc.assert(
    fc.property(machines, ({ cores, memory, pool }) => {
      const { cpu, capacity } = sharedWithSlivers({ machine: {}, capacity: {} }, { cores, memory, pool });
      expect(cpu).toBe(1000 * cores);
      expect(capacity.memory!).toBeLessThanOrEqual(memory);
      expect(capacity.disk!).toBeLessThanOrEqual(pool);
      for (const one of Object.values(capacity)) expect(one).toBeGreaterThanOrEqual(0);
    }),
  );
});
