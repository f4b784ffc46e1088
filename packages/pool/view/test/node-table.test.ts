import fc from "fast-check";
import { expect, test } from "vitest";
import { poolKey, poolOf } from "../src/index.ts";
import { NodeTable } from "../src/node-table.ts";

const change = fc.record({
  id: fc.constantFrom("0000000001", "0000000002", "0000000003"),
  what: fc.oneof(
    fc.record({
      state: fc.constantFrom("init", "building", "ready", "used"),
      provider: fc.constantFrom("a", "b", null),
      pool: fc.constantFrom("p", "q"),
      type: fc.uniqueArray(fc.constantFrom("x", "y", "z")),
      allocated_to: fc.constantFrom(null, "100-0000000001"),
    }),
    fc.constantFrom("remove" as const, "lock" as const, "unlock" as const, "empty" as const),
  ),
});

test("after any course of changes the indexes are those of the records that are left", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      const table = new NodeTable();
      let version = 0;
      for (const { id, what } of changes) {
        if (what === "remove") table.remove(id);
        else if (what === "lock") table.putContender(id, "c");
        else if (what === "unlock") table.removeContender(id, "c");
        else if (what === "empty") table.put(id, new Uint8Array(0), version++);
        else table.put(id, Buffer.from(JSON.stringify({ state_time: 1, ...what })), version++);
      }
      const expected = {
        state: new Set<string>(),
        pool: new Set<string>(),
        label: new Set<string>(),
        request: new Set<string>(),
        lock: new Set<string>(),
      };
      for (const { id, record, contenders } of table.byId.values()) {
        expected.state.add(`${record.state} ${id}`);
        expected.pool.add(`${poolKey(record.provider, record.pool)} ${id}`);
        for (const label of record.type) expected.label.add(`${label} ${id}`);
        if (record.allocatedTo !== null) expected.request.add(`${record.allocatedTo} ${id}`);
        if (contenders.length > 0) expected.lock.add(`locked ${id}`);
      }
      const found = {
        state: table.byState,
        pool: table.byPool,
        label: table.byLabel,
        request: table.byRequest,
        lock: table.byLock,
      };
      for (const name of ["state", "pool", "label", "request", "lock"] as const) {
        const entries = [...found[name].keys()].flatMap((key) =>
          [...found[name].get(key)].map((id) => `${key} ${id}`),
        );
        expect(new Set(entries)).toEqual(expected[name]);
      }
    }),
  );
});

test("a pool's key tells provider and pool, whatever they are called", () => {
  const name = fc.string({ unit: fc.constantFrom("a", "/", "%", "2", "F", "ü", " ") });
  fc.assert(
    fc.property(name, name, (provider, pool) => {
      expect(poolOf(poolKey(provider, pool))).toEqual([provider, pool]);
    }),
  );
  expect(poolKey("cloud", "main")).toBe("cloud/main");
});
