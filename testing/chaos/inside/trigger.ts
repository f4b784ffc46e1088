import { writeSync } from "node:fs";
import { setImmediate } from "node:timers";
import type { Effect, Moment } from "./effects.ts";

/** What the process writes to stderr right before it kills itself. */
export const LAST_WORDS = "CHAOS: killed at";

/** `NODEYARD_CHAOS_KILL=<effect>:<moment>:<n>`; absent: never. */
const [wantedEffect, wantedMoment, wantedCount] = (process.env.NODEYARD_CHAOS_KILL ?? "").split(":");
/** A new process first handles what the killed one had in flight; its own calls come later. */
const TAKING_OVER: ReadonlySet<string> = new Set<Effect>(["pool.register", "request.put-back"]);
let seen = 0;
const inFlight = { create: 0, remove: 0 };

/** Counts a call to the cloud from its start to its end. */
export function began(kind: keyof typeof inFlight): () => void {
  inFlight[kind]++;
  return () => {
    inFlight[kind]--;
  };
}

/**
 * Kills the process if this is the point that the plan names and a launch and a delete are in flight. Until both are, it waits for the next
 * time that the same effect happens.
 */
export function pass(effect: Effect, moment: Moment): void {
  if (effect !== wantedEffect || moment !== wantedMoment) return;
  if (++seen < Number(wantedCount)) return;
  if (!TAKING_OVER.has(effect) && (inFlight.create === 0 || inFlight.remove === 0)) return;
  writeSync(
    2,
    `${LAST_WORDS} ${effect} ${moment}, launches ${inFlight.create}, deletes ${inFlight.remove}\n`,
  );
  process.kill(process.pid, "SIGKILL");
}

/** Runs one effect with its three points. */
export async function perform<T>(effects: readonly Effect[], act: () => Promise<T>): Promise<T> {
  for (const effect of effects) pass(effect, "before");
  const acting = act();
  if (effects.length > 0) {
    setImmediate(() => {
      for (const effect of effects) pass(effect, "during");
    });
  }
  const result = await acting;
  for (const effect of effects) pass(effect, "after");
  return result;
}
