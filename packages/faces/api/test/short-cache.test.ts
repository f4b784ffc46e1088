import { VirtualClock } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { ShortCache } from "../src/http/short-cache.ts";

describe("answers that stay good for a second", () => {
  test("one second, from when it was computed", async () => {
    const clock = new VirtualClock();
    const cache = new ShortCache<number>(clock, 1_000, 10);
    let made = 0;
    const ask = () => cache.get("a", async () => ++made);
    expect(await ask()).toBe(1);
    await clock.advance(999);
    expect(await ask()).toBe(1);
    await clock.advance(1);
    expect(cache.size).toBe(0);
    expect(await ask()).toBe(2);
  });

  test("callers during a computation wait for its one result, however long it takes", async () => {
    const clock = new VirtualClock();
    const cache = new ShortCache<string>(clock, 1_000, 10);
    const slow = Promise.withResolvers<string>();
    let made = 0;
    const make = () => {
      made++;
      return slow.promise;
    };
    const first = cache.get("a", make);
    await clock.advance(5_000);
    const second = cache.get("a", make);
    slow.resolve("done");
    expect([await first, await second, made]).toEqual(["done", "done", 1]);
  });

  test("a failure is not kept", async () => {
    const cache = new ShortCache<string>(new VirtualClock(), 1_000, 10);
    await expect(cache.get("a", () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(await cache.get("a", async () => "yes")).toBe("yes");
  });

  test("distinct questions never make it grow beyond its bound", async () => {
    const cache = new ShortCache<number>(new VirtualClock(), 1_000, 3);
    for (let key = 0; key < 100; key++) await cache.get(String(key), async () => key);
    expect(cache.size).toBe(3);
    let made = false;
    await cache.get("99", async () => {
      made = true;
      return 0;
    });
    expect(made).toBe(false);
  });
});
