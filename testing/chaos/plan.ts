import type { Random } from "@nodeyard/runtime";
import { EFFECTS, MOMENTS } from "./inside/effects.ts";
import type { KillPoint } from "./victim.ts";

/** Every fifth kill comes from outside, at a random moment; the first one too, so that requests are there for the others. */
const OUTSIDE_EVERY = 5;

/** Where each process of a campaign is killed; undefined: from outside. The same seed gives the same plan. */
export function killPlan(kills: number, random: Random): readonly (KillPoint | undefined)[] {
  const plan: (KillPoint | undefined)[] = [];
  let places: Omit<KillPoint, "count">[] = [];
  for (let index = 0; index < kills; index++) {
    if (index % OUTSIDE_EVERY === 0) {
      plan.push(undefined);
      continue;
    }
    // Every point is used once before any is used twice.
    if (places.length === 0)
      places = EFFECTS.flatMap((effect) => MOMENTS.map((moment) => ({ effect, moment })));
    const [place] = places.splice(Math.floor(random.float() * places.length), 1);
    // A process registers its one pool once.
    const count = place!.effect === "pool.register" ? 1 : 1 + Math.floor(random.float() * 3);
    plan.push({ ...place!, count });
  }
  return plan;
}
