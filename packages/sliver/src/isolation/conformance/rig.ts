import type { BackEnd } from "../contract.ts";

/** A machine for one test. */
export interface ConformanceRig {
  readonly backEnd: BackEnd;
  /** Image that slivers are made from, where the back end needs one. */
  readonly image?: string;
  /** A public key that may log in. */
  readonly key?: string;
  /** A new back end on the same machine, as after a restart of the manager. */
  restart(): Promise<BackEnd>;
  /** Whatever changes when the sliver is started anew: the number of its first process, say. */
  life?(index: number): Promise<unknown>;
  /** What slivers left on the machine: processes, mounts, cgroups, users, interfaces, rules, files. */
  leftovers(): Promise<readonly string[]>;
  stop(): Promise<void>;
}

interface Matchers {
  toBe(value: unknown): void;
  toEqual(value: unknown): void;
  toMatchObject(value: object): void;
  toBeUndefined(): void;
  readonly not: Matchers;
  readonly rejects: { toThrow(): Promise<void> };
}

/** The test runner's own functions; vitest's fit. */
export interface ConformanceKit {
  describe(name: string, body: () => void): void;
  test(name: string, body: () => Promise<void>): void;
  expect(value: unknown): Matchers;
}
