import fc from "fast-check";
import { expect, test } from "vitest";
import { Timers } from "../src/timers.ts";

const key = fc.constantFrom("a", "b", "c", "d", "e");
const steps = fc.array(
  fc.oneof(
    fc.record({ set: key, at: fc.integer({ min: 0, max: 30 }) }),
    fc.record({ delete: key }),
    fc.record({ take: fc.integer({ min: 0, max: 30 }) }),
  ),
  { maxLength: 400 },
);

test("the earliest of what was set last and not deleted is due first", () => {
  fc.assert(
    fc.property(steps, (all) => {
      const timers = new Timers();
      const due = new Map<string, number>();
      for (const step of all) {
        if ("set" in step) {
          timers.set("label", step.set, step.at);
          due.set(step.set, step.at);
        } else if ("delete" in step) {
          timers.delete("label", step.delete);
          due.delete(step.delete);
        } else {
          const first = Math.min(...due.values());
          const taken = timers.take(step.take)?.name;
          if (first > step.take) expect(taken).toBeUndefined();
          else expect(due.get(taken ?? "")).toBe(first);
          if (taken !== undefined) due.delete(taken);
        }
        expect(timers.next()).toBe(due.size === 0 ? undefined : Math.min(...due.values()));
        for (const name of ["a", "b", "c", "d", "e"]) expect(timers.get("label", name)).toBe(due.get(name));
      }
    }),
  );
});
