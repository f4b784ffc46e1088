import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import { Counters, createLog, FileJournal, JOURNAL } from "@nodeyard/telemetry";

const STEP_MS = 300_000;
const STEPS = 287;
/** Labels of the pool by provider, and how many nodes each has at most. */
const POOLS = { east: ["debian-small", 8], lab: ["arm-board", 3], rack: ["slice", 4] } as const;

/**
 * Writes the points of the last day into the journal of a state folder, as a launcher that ran would have: busy by day, and twice with more
 * requests than nodes.
 */
export async function writeLastDay(folder: string): Promise<void> {
  const end = systemClock.now();
  let at = end;
  const clock = { ...systemClock, now: () => at };
  const log = createLog({ levels: {}, format: "text", to: { descriptor: process.stderr.fd } });
  const journal = new FileJournal({ file: join(folder, JOURNAL) }, { clock, log, counters: new Counters() });
  for (let step = STEPS; step > 0; step--) {
    at = end - step * STEP_MS;
    journal.write({ event: "counts.noted", facts: countsAt(at) });
  }
  await journal.close();
}

function countsAt(at: number): Readonly<Record<string, unknown>> {
  const hour = (at / 3_600_000) % 24;
  // Between 0 at night and 1 in the afternoon, with waves of two hours on it.
  const load = Math.max(0, Math.sin(((hour - 7) / 14) * Math.PI)) * (0.85 + 0.15 * Math.cos(hour * Math.PI));
  const peak = Math.exp(-((hour - 10.5) ** 2)) + Math.exp(-((hour - 15) ** 2) * 2);
  const labels: Record<string, object> = {};
  const providers: Record<string, object> = {};
  const nodes: Record<string, number> = {};
  let waiting = 0;
  for (const [provider, [label, most]] of Object.entries(POOLS)) {
    const busy = Math.round(most * load);
    const states = {
      "in-use": busy,
      building: Math.min(most - busy, Math.round(2 * load)),
      ready: busy < most ? 2 : 0,
    };
    const queued = Math.round(most * peak * load * 0.6);
    labels[label] = { ...states, waiting: queued };
    providers[provider] = states;
    for (const [state, count] of Object.entries(states)) nodes[state] = (nodes[state] ?? 0) + count;
    waiting += queued;
  }
  return { nodes, waiting, labels, providers };
}
