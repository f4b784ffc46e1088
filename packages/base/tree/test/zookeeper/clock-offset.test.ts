import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ClockOffset } from "../../src/zookeeper/clock-offset.ts";

/** A process and a tree whose clocks are `off` apart; calls take as long there and back as the test says. */
class Pair {
  readonly offset = new ClockOffset();
  /** Of the tree. */
  now = 1_700_000_000_000;
  monotonic = 5_000;
  off: number;

  constructor(off: number) {
    this.off = off;
  }

  pass(ms: number): void {
    this.now += ms;
    this.monotonic += ms;
  }

  /** `putRight`: our wall clock is put right by so much after the tree answered. */
  write(there: number, back: number, putRight = 0): void {
    const sent = this.#reading();
    this.pass(there);
    const reported = Math.floor(this.now);
    this.off -= putRight;
    this.pass(back);
    this.offset.learn(reported, sent, this.#reading());
  }

  get error(): number {
    return Math.abs(this.offset.value - this.off);
  }

  #reading() {
    return { wall: this.now - this.off, monotonic: this.monotonic };
  }
}

describe("the offset to the tree's clock", () => {
  test("is 0 before the first write, and anything may be true", () => {
    const { offset } = new Pair(500);
    expect(offset.value).toBe(0);
    expect(offset.errorAt(0)).toBe(Number.POSITIVE_INFINITY);
  });

  test("is that of the fastest of recent writes, however slow the others are", () => {
    const pair = new Pair(-750);
    pair.write(2_000, 10);
    expect(pair.error).toBeGreaterThan(900);
    pair.write(2, 2);
    expect(pair.error).toBeLessThanOrEqual(1);
    for (const [there, back] of [
      [3_000, 5],
      [5, 3_000],
      [300, 0],
    ] as const) {
      pair.write(there, back);
      expect(pair.error).toBeLessThanOrEqual(1);
    }
  });

  test("follows clocks that drift: a good write of long ago is worth no more than a fair one of now", () => {
    const pair = new Pair(0);
    pair.write(1, 1);
    // 50 ppm over ten minutes, told by writes that take 40 ms.
    for (let minute = 0; minute < 10; minute++) {
      pair.pass(60_000);
      pair.off += 3;
      pair.write(20, 20);
    }
    expect(pair.error).toBeLessThanOrEqual(6);
  });

  test.each([40_000, -40_000, 250])(
    "is learnt anew when a clock was put right by %i ms, from the first write that shows it",
    (ms) => {
      const pair = new Pair(100);
      pair.write(1, 1);
      pair.off += ms;
      pair.write(80, 10);
      expect(pair.error).toBeLessThanOrEqual(46);
      pair.write(1, 1);
      expect(pair.error).toBeLessThanOrEqual(1);
    },
  );

  test.each([40_000, -40_000])(
    "is right by a round trip when our clock was put right by %i ms in the midst of a write",
    (ms) => {
      const pair = new Pair(100);
      pair.write(1, 1);
      pair.write(60, 40, ms);
      expect(pair.error).toBeLessThanOrEqual(101);
      pair.write(1, 1);
      expect(pair.error).toBeLessThanOrEqual(1);
    },
  );

  test("is never further off than it says, nor than half of the best round trip and what has drifted", () => {
    const call = fc.record({ pause: fc.nat(5_000), there: fc.nat(2_000), back: fc.nat(2_000) });
    fc.assert(
      fc.property(
        fc.array(call, { minLength: 1, maxLength: 40 }),
        fc.integer({ min: -1e6, max: 1e6 }),
        (calls, off) => {
          const pair = new Pair(off);
          let best = Number.POSITIVE_INFINITY;
          for (const { pause, there, back } of calls) {
            pair.pass(pause);
            best += pause * 1e-4 + (there + back) * 1e-4;
            pair.write(there, back);
            best = Math.min(best, (there + back) / 2 + 1);
            expect(pair.error).toBeLessThanOrEqual(pair.offset.errorAt(pair.monotonic) + 1e-6);
            expect(pair.offset.errorAt(pair.monotonic)).toBeLessThanOrEqual(best + 1e-6);
          }
        },
      ),
    );
  });
});
