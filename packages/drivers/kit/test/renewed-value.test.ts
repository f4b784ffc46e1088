import { VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { RenewedValue, renewedWire } from "../src/index.ts";

function rig(end: () => number | null = () => null, more: { early?: number } = {}) {
  const clock = new VirtualClock();
  const file = { text: "first", broken: false, reads: 0 };
  const value = new RenewedValue({
    ...{ clock, ...more },
    load: async () => {
      file.reads++;
      if (file.broken) throw new Error("half written");
      return file.text;
    },
    endOf: end,
    loadMs: 60_000,
    late: () => new Error("late"),
  });
  return { clock, file, value };
}

test("a value without an end is read again each minute, and at once when it was refused", async () => {
  const { clock, file, value } = rig();
  expect(await Promise.all([value.get(), value.get()])).toEqual(["first", "first"]);
  file.text = "second";
  await clock.advance(59_000);
  expect([await value.get(), file.reads]).toEqual(["first", 1]);
  await clock.advance(1_000);
  expect([await value.get(), file.reads]).toEqual(["second", 2]);
  file.text = "third";
  value.refused();
  expect(await value.get()).toBe("third");
});

test("a value that does not serve any more is replaced, but one that came for it only after a second", async () => {
  const { clock, file, value } = rig();
  expect(value.replace(await value.get())).toBe(true);
  const second = await value.get();
  expect([second, file.reads]).toEqual(["first", 2]);
  expect([value.replace(second), value.replace("another")]).toEqual([false, true]);
  expect([await value.get(), file.reads]).toEqual(["first", 2]);
  await clock.advance(1_000);
  expect(value.replace(second)).toBe(true);
  file.broken = true;
  await expect(value.get()).rejects.toThrow("half written");
});

test("while a new one cannot be had, the last one serves until its end, and not beyond", async () => {
  const { clock, file, value } = rig(() => start + 600_000);
  const start = clock.now();
  await value.get();
  file.broken = true;
  await clock.advance(539_000);
  expect([await value.get(), file.reads]).toEqual(["first", 1]);
  await clock.advance(2_000);
  expect([await value.get(), await value.get(), file.reads]).toEqual(["first", "first", 2]);
  await clock.advance(60_000);
  await expect(value.get()).rejects.toThrow("half written");
});

test("without a last one the error is the caller's, and the next call reads again", async () => {
  const { file, value } = rig();
  file.broken = true;
  await expect(value.get()).rejects.toThrow("half written");
  file.broken = false;
  expect(await value.get()).toBe("first");
});

test("a share of its life is left to what goes on with the value after a call", async () => {
  const { clock, file, value } = rig(() => start + 3_600_000, { early: 0.2 });
  const start = clock.now();
  await value.get();
  await clock.advance(2_879_000);
  await value.get();
  expect(file.reads).toBe(1);
  await clock.advance(2_000);
  await value.get();
  expect(file.reads).toBe(2);
});

test.each([401, 403])("certificates are read again after an answer of %i", async (refused) => {
  const clock = new VirtualClock();
  const used: string[] = [];
  let file = "old";
  const wire = renewedWire({
    clock,
    read: () => file,
    connect: (certificate) => ({
      async send() {
        used.push(certificate);
        return { status: certificate === "old" ? refused : 200, headers: {}, text: "" };
      },
      close: async () => {},
    }),
  });
  const call = () =>
    wire.send({ method: "GET", url: "https://cloud", headers: {}, signal: new AbortController().signal });
  await call();
  file = "new";
  expect((await call()).status).toBe(200);
  expect(used).toEqual(["old", "new"]);
});
