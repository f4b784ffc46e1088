import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededRandom } from "@nodeyard/runtime";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { PowerLossFiles } from "../../../../../testing/slivers/power-loss-files.ts";
import { POLICIES } from "../../src/core/profiles.ts";
import { EMPTY_STATE, type State } from "../../src/core/record.ts";
import { nodeFiles } from "../../src/store/edge/node-files.ts";
import { encodeState, Store, seal } from "../../src/store/store.ts";
import { record, records, stateOf } from "../core/arbitrary.ts";

const NODE = "node-1";
const numbered = (number: number, more: Partial<State> = {}): State =>
  stateOf(new Map(), {
    minimum: { epoch: 1, number },
    usedTickets: new Map([["a".repeat(16), number]]),
    ...more,
  });
const load = (files: PowerLossFiles, node = NODE) => new Store(files, node).load();

describe("the store", () => {
  test("18: what is loaded is what was saved, the minimum version and all", async () => {
    await fc.assert(
      fc.asyncProperty(records, fc.nat(), async (all, number) => {
        const files = new PowerLossFiles();
        const state = stateOf(all, { minimum: { epoch: 2, number }, digest: "d" });
        await new Store(files, NODE).save(state);
        expect(await load(files)).toEqual({ state, damaged: [] });
      }),
      { numRuns: 30 },
    );
  });

  test("a record from before a resource was added has the usual amount of it", async () => {
    const files = new PowerLossFiles();
    const state = stateOf(new Map([["ada", record("ada", 1, POLICIES.r0.defaults)]]));
    const older = JSON.parse(encodeState(state));
    delete older.records[0].rspec.ioWeight;
    files.damage("state.0.json", seal(NODE, { sequence: 1, body: JSON.stringify(older) }));
    expect(await load(files)).toEqual({ state, damaged: [] });
  });

  test("what was written before tickets were forgotten for good is read: none was", async () => {
    const files = new PowerLossFiles();
    const { ticketsForgotten: _later, ...older } = JSON.parse(encodeState(numbered(7)));
    files.damage("state.0.json", seal(NODE, { sequence: 1, body: JSON.stringify(older) }));
    expect(await load(files)).toEqual({ state: numbered(7), damaged: [] });
    expect(numbered(7).ticketsForgotten).toBe(0);
  });

  test("18 and 19: the power may go at any call, and the old state or the new one is there; never less than was acknowledged", async () => {
    let calls = 0;
    let fates = 0;
    for (let fail = 1; fail <= calls || calls === 0; fail++) {
      for (let seed = 0; seed < 40; seed++) {
        const files = new PowerLossFiles();
        const store = new Store(files, NODE);
        await store.save(numbered(1));
        await store.save(numbered(2));
        const before = files.calls;
        files.failAt = before + fail;
        const acknowledged = await store.save(numbered(3)).then(
          () => true,
          () => false,
        );
        if (acknowledged) calls = files.calls - before;
        files.powerLoss(seededRandom(seed * 100 + fail));
        const { state, damaged } = await load(files);
        expect(damaged).toEqual([]);
        expect(state.safe).toBe(false);
        expect(acknowledged ? [3] : [2, 3]).toContain(state.minimum.number);
        fates += 1;
        // And it goes on from there.
        const next = new Store(files, NODE);
        await next.load();
        await next.save(numbered(4));
        files.powerLoss(seededRandom(seed));
        expect((await load(files)).state.minimum.number).toBe(4);
      }
      if (calls > 0 && fail > calls) break;
    }
    expect(calls).toBe(7);
    expect(fates).toBeGreaterThan(280);
  });

  test("a write that fails without a crash is not acknowledged, and the next one wins over whatever it left", async () => {
    for (let fail = 1; fail <= 7; fail++) {
      const files = new PowerLossFiles();
      const store = new Store(files, NODE);
      await store.save(numbered(1));
      files.faults.set(files.calls + fail, new Error("ENOSPC"));
      await expect(store.save(numbered(2))).rejects.toMatchObject({ code: "sliver.store_write" });
      await store.save(numbered(3));
      files.powerLoss(seededRandom(fail));
      expect((await load(files)).state.minimum.number).toBe(3);
    }
  });

  test("26: a store that is not there, emptied or damaged is safe mode, and the other generation is used", async () => {
    const files = new PowerLossFiles();
    expect(await load(files)).toEqual({ state: EMPTY_STATE, damaged: [] });
    const store = new Store(files, NODE);
    await store.save(numbered(1));
    await store.save(numbered(2));
    for (const bytes of ["", "{", "x\n".repeat(9)]) {
      files.damage("state.1.json", Buffer.from(bytes));
      const { state, damaged } = await load(files);
      expect(damaged).toEqual(["state.1.json"]);
      expect(state).toMatchObject({ safe: true, minimum: { number: 1 } });
    }
    files.damage("state.0.json", Buffer.from(""));
    expect((await load(files)).state).toEqual(EMPTY_STATE);
  });

  test("any bit that is changed is noticed", async () => {
    const files = new PowerLossFiles();
    await new Store(files, NODE).save(numbered(1));
    const bytes = (await files.read("state.0.json"))!;
    for (let at = 0; at < bytes.length; at += 3) {
      const bad = Uint8Array.from(bytes);
      bad[at]! ^= 1 << (at % 8);
      files.damage("state.0.json", bad);
      const loaded = await load(files).catch(() => undefined);
      if (loaded?.damaged.length === 0) expect(loaded.state).toEqual(numbered(1));
    }
  });

  test("the store of another node, and one of a later program, are refused and left alone", async () => {
    const files = new PowerLossFiles();
    await new Store(files, "node-2").save(numbered(1));
    await expect(load(files)).rejects.toMatchObject({ code: "sliver.store_foreign" });
    files.damage("state.0.json", seal("node-2", { sequence: 9, body: "{}" }, 2));
    await expect(load(files, "node-2")).rejects.toMatchObject({ code: "sliver.store_newer" });
  });
});

describe("the store on a real disk", () => {
  const folders: string[] = [];
  afterAll(() => Promise.all(folders.map((one) => rm(one, { recursive: true }))));

  test("two generations, readable by the owner only, and no draft is left", async () => {
    const folder = await mkdtemp(join(tmpdir(), "sliver-store-"));
    folders.push(folder);
    await writeFile(join(folder, "state.draft"), "of a crash");
    const store = new Store(nodeFiles(folder), NODE);
    await store.load();
    await Promise.all([1, 2, 3].map((number) => store.save(numbered(number))));
    expect((await readdir(folder)).sort()).toEqual(["state.0.json", "state.1.json"]);
    const { state } = await new Store(nodeFiles(folder), NODE).load();
    expect(state).toEqual(numbered(3));
  });
});
