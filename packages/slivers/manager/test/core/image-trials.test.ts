import { describe, expect, test } from "vitest";
import { ImageTrials, type ImageVersions } from "../../src/core/image-trials.ts";

const RULES = { share: 0.25, launches: 5, maxAgeMs: 60_000 };
const [OLD, NEW, NEXT] = ["old", "new", "next"];

class Lab {
  now = 1_000;
  trials = new ImageTrials(RULES, () => this.now);
  #incarnation = 0;

  constructor(...versions: readonly string[]) {
    for (const version of versions) this.trials.offer("job", version);
  }

  /** Starts slivers until `count` of them were of the version on trial, or the trial has ended; `fails`: of which versions none answers. */
  start(count: number, fails: readonly string[] = []): void {
    for (let tried = 0; tried < count && this.trials.of("job")?.trial !== undefined; ) {
      const made = this.trials.choose("job", ++this.#incarnation)!;
      if (made.tried) tried++;
      this.trials.count(made, this.#incarnation, fails.includes(made.digest) ? undefined : 1_000);
    }
  }

  /** What the next hundred slivers get, in steps of five. */
  get served(): Readonly<Record<string, number>> {
    const got: Record<string, number> = {};
    for (let next = 1; next <= 100; next++) {
      const { digest } = this.trials.choose("job", this.#incarnation + next)!;
      got[digest] = (got[digest] ?? 0) + 1;
    }
    return Object.fromEntries(Object.entries(got).map(([name, count]) => [name, Math.round(count / 5) * 5]));
  }

  get last(): string {
    const [one] = this.trials.report();
    return one === undefined ? "" : `${one.version} ${one.verdict}: ${one.why}`;
  }
}

describe("a new version of an image", () => {
  test("serves all where there is no other, and its share where there is", () => {
    const lab = new Lab(OLD);
    expect([lab.served, lab.last]).toEqual([{ old: 100 }, ""]);
    lab.trials.offer("job", NEW);
    expect(lab.served).toEqual({ old: 75, new: 25 });
    expect(lab.last).toBe("new on-trial: 0 of 0 launches failed; decided after 5 launches");
    expect(lab.trials.choose("other", 1)).toBe(undefined);
  });

  test("takes over when enough slivers of it have answered", () => {
    const lab = new Lab(OLD, NEW);
    lab.start(4);
    expect(lab.served.old).toBe(75);
    lab.start(1);
    expect(lab.served).toEqual({ new: 100 });
    expect(lab.last).toMatch(/^new promoted: 0 of 5 launches failed, against 0 of \d+ of the others$/);
  });

  test("is rolled back when its slivers do not answer, and is not tried again, but the one after it is", () => {
    const lab = new Lab(OLD, NEW);
    lab.start(5, [NEW]);
    expect(lab.last).toMatch(/^new rolled-back: \d of \d launches failed/);
    for (let look = 0; look < 3; look++) lab.trials.offer("job", NEW);
    expect([lab.served, lab.trials.kept("job")]).toEqual([{ old: 100 }, [OLD]]);
    lab.trials.offer("job", NEXT);
    expect([lab.served, lab.trials.kept("job")]).toEqual([{ old: 75, next: 25 }, [OLD, NEXT]]);
  });

  test("that a sliver failed with is not given to that sliver again", () => {
    const { trials } = new Lab(OLD, NEW);
    const drawn = Array.from({ length: 20 }, (_, at) => at + 1).find(
      (one) => trials.choose("job", one)?.tried,
    )!;
    const made = trials.choose("job", drawn)!;
    expect(made).toEqual({ name: "job", digest: NEW, tried: true });
    expect(trials.count(made, drawn, undefined)).toBe(true);
    const again = trials.choose("job", drawn)!;
    expect(again).toEqual({ name: "job", digest: OLD, tried: false });
    // A sliver of the proven one stays as it is: another root would not help it.
    expect(trials.count(again, drawn, undefined)).toBe(false);
  });

  test("of which no image can be made is rolled back at once; the first one is the caller's own trouble", () => {
    const lab = new Lab();
    expect(lab.trials.refuse("job", OLD, "no archive")).toBe(false);
    lab.trials.offer("job", OLD);
    expect(lab.trials.refuse("job", OLD, "no archive")).toBe(false);
    expect(lab.trials.refuse("job", NEW, "no archive")).toBe(true);
    expect([lab.served, lab.last]).toEqual([{ old: 100 }, "new rolled-back: no archive"]);
  });

  test("that is replaced before its trial ends was dropped, and is tried when its source has it again", () => {
    const lab = new Lab(OLD, NEW, NEXT);
    expect(lab.served).toEqual({ old: 75, next: 25 });
    lab.trials.offer("job", OLD);
    expect([lab.served, lab.last]).toEqual([
      { old: 100 },
      "next dropped: its source has another version now",
    ]);
    lab.trials.offer("job", NEXT);
    expect(lab.served).toEqual({ old: 75, next: 25 });
  });

  test("that is rarely started is decided by age: without a failure it takes over", () => {
    const [good, bad] = [new Lab(OLD, NEW), new Lab(OLD, NEW)];
    good.start(1);
    bad.start(1, [NEW]);
    for (const [lab, version] of [
      [good, NEW],
      [bad, OLD],
    ] as const) {
      lab.now += RULES.maxAgeMs;
      lab.trials.offer("job", NEW);
      expect(lab.served).toEqual({ [version!]: 100 });
    }
  });

  test("is on trial as before after a restart", () => {
    const lab = new Lab(OLD, NEW);
    lab.start(3);
    const stored = JSON.parse(JSON.stringify(lab.trials.of("job"))) as ImageVersions;
    const again = new ImageTrials(RULES, () => lab.now);
    again.load("job", stored);
    expect(again.report()).toEqual(lab.trials.report());
    lab.trials = again;
    lab.start(2);
    expect(lab.served).toEqual({ new: 100 });
    again.load("job", undefined);
    expect(again.report()).toEqual([]);
  });
});
