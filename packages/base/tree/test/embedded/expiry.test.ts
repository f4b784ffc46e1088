import { type Clock, VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { Expiry } from "../../src/embedded/expiry.ts";

test("a session expires when its client was silent for its timeout, and not before", async () => {
  const clock = new VirtualClock();
  const gone: bigint[] = [];
  const expiry = new Expiry(clock, (id) => gone.push(id));
  expiry.start(1n, 1_000);
  expiry.start(2n, 1_000);
  expiry.start(3n, 300);
  expiry.stop(3n);
  await clock.advance(900);
  expiry.touch(2n);
  await clock.advance(50);
  expect(gone).toEqual([]);
  await clock.advance(150);
  expect(gone).toEqual([1n]);
  clock.jump(1_000_000);
  await clock.advance(700);
  expect(gone).toEqual([1n]);
  await clock.advance(200);
  expect(gone).toEqual([1n, 2n]);
  expect(clock.pending).toBe(0);
});

test("a process that stood still counts the timeouts of its sessions anew", async () => {
  const inner = new VirtualClock();
  let stoodStill = 0;
  const clock: Clock = {
    now: () => inner.now(),
    monotonic: () => inner.monotonic() + stoodStill,
    setTimer: (ms, fn) => inner.setTimer(ms, fn),
  };
  const gone: bigint[] = [];
  const expiry = new Expiry(clock, (id) => gone.push(id));
  expiry.start(1n, 1_000);
  await inner.advance(500);
  stoodStill = 60_000;
  await inner.advance(500);
  // Its ping was in the socket all the time.
  expect(gone).toEqual([]);
  expiry.touch(1n);
  await inner.advance(900);
  expect(gone).toEqual([]);
  await inner.advance(300);
  expect(gone).toEqual([1n]);
});

test("a process that is always late still ends sessions of silent clients", async () => {
  const inner = new VirtualClock();
  // Every timer fires 400 ms after its time.
  const clock: Clock = {
    now: () => inner.now(),
    monotonic: () => inner.monotonic(),
    setTimer: (ms, fn) => inner.setTimer(ms + 400, fn),
  };
  const gone: bigint[] = [];
  const expiry = new Expiry(clock, (id) => gone.push(id));
  expiry.start(1n, 1_000);
  expiry.start(2n, 1_000);
  for (let i = 0; i < 20; i++) {
    await inner.advance(500);
    expiry.touch(2n);
  }
  expect(gone).toEqual([1n]);
});
