/** One part of `.ci/run`. */
export interface Suite {
  readonly name: string;
  readonly command: readonly string[];
  /** Glob patterns below the root: product and tests that this suite, before others, shows to work. Only these make it run. */
  readonly covers: readonly string[];
  /** In each run. Without it: when something that it covers changed, and in its turn. */
  readonly always?: true;
  /** Which of TURNS runs has it, whatever changed: the number of commits modulo TURNS. */
  readonly turn?: number;
  readonly takes: {
    /** On two cores, and how many processors it keeps busy meanwhile, as runs showed them last. */
    readonly seconds: number;
    readonly processors: number;
    /** For what hangs: minutes after which it is ended, on a machine that does nothing else. */
    readonly limit: number;
  };
  /** Suites that run in each run that has this one, and end before it begins. */
  readonly needs?: readonly string[];
  /** Suites that end before it begins, where both run. */
  readonly after?: readonly string[];
  /** Nothing runs beside it: it measures, or its limits are of time. */
  readonly alone?: true;
}

/** Runs after which each suite has had its turn. */
export const TURNS = 6;
