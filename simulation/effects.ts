import type { Random } from "@nodeyard/runtime";
import type { Op } from "@nodeyard/tree";
import {
  EFFECTS as CHAOS,
  type Effect as ChaosEffect,
  EffectNames as ChaosNames,
  MOMENTS,
  type Moment,
} from "../testing/chaos/inside/effects.ts";
import { pick } from "./streams.ts";

export { MOMENTS, type Moment };

/** Effects that the killed processes of `testing/chaos` seldom or never reach. */
const MORE = [
  "slot.register",
  "request.fail",
  "min-ready.ask",
  "min-ready.retire",
  "slot.claim",
  "slot.free",
  "backing.ask",
  "backing.adopt",
  "backing.release",
  "breaker.open",
  "breaker.close",
  "budget.spend",
  "budget.clear",
] as const;

/** What a builder does outside of its own memory. */
const BUILDER = [
  "build.begin",
  "build.end",
  "build.remove",
  "upload.begin",
  "upload.end",
  "upload.remove",
  "image.create",
  "image.fill",
  "image.delete",
] as const;

/** What a launcher does outside of its own memory: the effects of `testing/chaos`, and more. */
export const EFFECTS = [...CHAOS, ...MORE] as const;
export type Effect = ChaosEffect | (typeof MORE)[number] | (typeof BUILDER)[number];

export interface CrashPoint {
  readonly effect: Effect;
  readonly moment: Moment;
}

export const CRASH_POINTS: readonly CrashPoint[] = EFFECTS.flatMap((effect) =>
  MOMENTS.map((moment) => ({ effect, moment })),
);

export const BUILDER_POINTS: readonly CrashPoint[] = BUILDER.flatMap((effect) =>
  MOMENTS.map((moment) => ({ effect, moment })),
);

export function pointName({ effect, moment }: CrashPoint): string {
  return `${moment} ${effect}`;
}

/** Names the effects of a process's writes. */
export class EffectNames {
  readonly #chaos = new ChaosNames();

  of(ops: readonly Op[]): readonly Effect[] {
    const found: readonly Effect[] = this.#chaos.of(ops);
    if (ops.some(({ op, path }) => op === "check" && path.startsWith("/nodeyard/elections/inventory")))
      return found.map((effect) => (effect === "node.create" ? "slot.register" : effect));
    const slot = slotEffect(ops);
    return slot === undefined ? [...found, ...ops.flatMap((op) => more(op) ?? [])] : [slot];
  }
}

/** A commit's effects on slots: it also writes the node's record, which is then no effect of its own. */
function slotEffect(ops: readonly Op[]): Effect | undefined {
  for (const { op, path } of ops) {
    if (op !== "create" && op !== "delete") continue;
    if (/^\/nodeyard\/slots\/\d+$/.test(path)) return op === "create" ? "backing.adopt" : "backing.release";
    if (/^\/nodeyard\/slots\/\d+\/\d+$/.test(path)) return op === "create" ? "slot.claim" : "slot.free";
  }
  return undefined;
}

function more(op: Op): Effect | undefined {
  if (/^\/nodeyard\/breakers\/[^/]+$/.test(op.path))
    return op.op === "delete" ? "breaker.close" : "breaker.open";
  if (op.path.startsWith("/nodeyard/budgets/")) return op.op === "delete" ? "budget.clear" : "budget.spend";
  if (op.op === "create" && op.path.startsWith("/nodepool/requests/100-")) return "backing.ask";
  if (op.path.startsWith("/nodepool/requests/900-")) {
    if (op.op === "create") return "min-ready.ask";
    if (op.op === "delete") return "min-ready.retire";
  }
  if (BUILD.test(op.path)) return lifeOf("build", op);
  if (UPLOAD.test(op.path)) return lifeOf("upload", op);
  const fails =
    op.op === "set" &&
    op.path.startsWith("/nodepool/requests/") &&
    Buffer.from(op.data).includes('"state": "failed"');
  return fails ? "request.fail" : undefined;
}

const BUILD = /^\/nodepool\/images\/[^/]+\/builds\/[0-9a-f]{32}$/;
const UPLOAD = /^\/nodepool\/images\/[^/]+\/builds\/[^/]+\/providers\/[^/]+\/images\/\d*$/;

/** Records of images are created, set once more when the work has ended, and deleted. */
function lifeOf(what: "build" | "upload", { op }: Op): Effect | undefined {
  const moments = { create: "begin", set: "end", delete: "remove", check: undefined } as const;
  const moment = moments[op];
  return moment === undefined ? undefined : `${what}.${moment}`;
}

/** Where a process dies, with the function to call then. */
export class Traps {
  readonly #crash: () => void;
  readonly #open = new Map<CrashPoint, () => void>();

  constructor(crash: () => void) {
    this.#crash = crash;
  }

  set(point: CrashPoint, onDeath: () => void): void {
    this.#open.set(point, onDeath);
  }

  clear(point: CrashPoint): void {
    this.#open.delete(point);
  }

  clearAll(): void {
    this.#open.clear();
  }

  /** Whether the process dies here; if so, it is dead. */
  springs(effects: readonly Effect[], moment: Moment): boolean {
    const point = this.waits(effects, moment);
    if (point === undefined) return false;
    const onDeath = this.#open.get(point);
    this.#open.clear();
    this.#crash();
    onDeath?.();
    return true;
  }

  waits(effects: readonly Effect[], moment: Moment): CrashPoint | undefined {
    return [...this.#open.keys()].find((point) => point.moment === moment && effects.includes(point.effect));
  }
}

/**
 * Launchers reach these so seldom, or for so short a time, that without extra turns some would have no crash in 200 seeds: fewer than six
 * processes died at each of them in 200 seeds.
 */
const RARE_MOMENTS: Readonly<Partial<Record<Effect, readonly Moment[]>>> = {
  "backing.adopt": ["during", "after"],
  "backing.ask": ["before"],
  "backing.release": ["after"],
  "breaker.close": ["during", "after"],
  "breaker.open": ["during"],
  "budget.clear": ["during", "after"],
  "budget.spend": ["before"],
  "driver.create": ["during"],
  "lease.end": ["during"],
  "lease.hold": ["after"],
  "min-ready.ask": ["after"],
  "node.create": ["after"],
  "node.deleting": ["during"],
  "node.ready": ["before"],
  "node.remove": ["before"],
  "node.reuse": ["after"],
  "request.accept": ["during"],
  "request.put-back": ["before"],
  "slot.claim": ["before", "during"],
  "slot.register": ["during", "after"],
};
const RARE = CRASH_POINTS.filter(({ effect, moment }) => RARE_MOMENTS[effect]?.includes(moment) === true);
const RARE_AT_ONCE = 2;

/** Little of what makes requests fail can be caused on purpose: these points need more than one turn. */
const RAREST = CRASH_POINTS.filter(({ effect }) => effect === "request.fail");

/** The points of a seed: all points in turn over the seeds, so that each is tried as often as any other, the rarest in between. */
export function pointsOf(seed: number, random: Random): () => CrashPoint {
  let next = seed * 5;
  return () => (random.float() < 0.9 ? CRASH_POINTS[next++ % CRASH_POINTS.length]! : pick(random, RAREST));
}

/** Points with a permanent trap, in turn over the seeds. */
export function rarePointsOf(seed: number): readonly CrashPoint[] {
  return Array.from({ length: RARE_AT_ONCE }, (_, at) => RARE[(seed * RARE_AT_ONCE + at) % RARE.length]!);
}
