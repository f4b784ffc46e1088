import { matchesGlob } from "node:path";
import { counted } from "@nodeyard/runtime";
import { type Suite, TURNS } from "./suite.ts";
import { EVERYWHERE } from "./suites.ts";

/** What a run is chosen by. */
export interface Situation {
  /** Commits of the branch, which say whose turn it is. */
  readonly commits: number;
  /** What changed since a suite passed last; in words, if that cannot be known: then it runs. */
  readonly changedSince: (suite: string) => Changed | string;
}

export interface Changed {
  /** First letters of a commit. */
  readonly since: string;
  readonly paths: readonly string[];
}

export interface Choice {
  readonly suite: Suite;
  readonly runs: boolean;
  /** Why it runs or is left out, for a line of the log. */
  readonly why: string;
}

/** In the order of the suites. */
export function choose(suites: readonly Suite[], situation: Situation): readonly Choice[] {
  const reasons = new Map(suites.map((suite) => [suite.name, reasonToRun(suite, situation)]));
  for (const suite of suites.toReversed()) {
    if (reasons.get(suite.name) === undefined) continue;
    for (const need of suite.needs ?? []) {
      if (reasons.get(need) === undefined) reasons.set(need, `${suite.name} needs it`);
    }
  }
  return suites.map((suite) => {
    const why = reasons.get(suite.name);
    return { suite, runs: why !== undefined, why: why ?? reasonToWait(suite, situation) };
  });
}

/** Whether a change of `path` makes `suite` run. */
export function isCovered(path: string, { covers }: Suite): boolean {
  return [...EVERYWHERE, ...covers].some((pattern) => matchesGlob(path, pattern));
}

function reasonToRun(suite: Suite, { commits, changedSince }: Situation): string | undefined {
  if (suite.always) return "always";
  const changed = changedSince(suite.name);
  if (typeof changed === "string") return changed;
  const [first, ...others] = changed.paths.filter((path) => isCovered(path, suite));
  if (first !== undefined)
    return `${first}${others.length === 0 ? "" : ` and ${others.length} more`} changed`;
  return suite.turn === commits % TURNS ? `its turn at commit ${commits}` : undefined;
}

function reasonToWait({ name, turn }: Suite, { commits, changedSince }: Situation): string {
  const changed = changedSince(name);
  const since = typeof changed === "string" ? "" : ` since ${changed.since}`;
  const wait =
    turn === undefined
      ? ""
      : `; its turn in ${counted((turn - (commits % TURNS) + TURNS) % TURNS, "commit")}`;
  return `nothing that it covers changed${since}${wait}`;
}
