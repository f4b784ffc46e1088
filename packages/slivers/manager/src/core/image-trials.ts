import { isDrawn, judgeTrial, noBoots, type Trial, type TrialRules, withBoot } from "@nodeyard/runtime";
import type { ImageTrial } from "@nodeyard/sliver-protocol";

/** How new versions of images are tried. */
export interface ImageTrialRules extends TrialRules {
  /** Part of new slivers that get the version on trial, 0 to 1. */
  readonly share: number;
}

/** The versions of an image under one name. A version is the digest of its root. */
export interface ImageVersions {
  /** What all slivers get that do not get the version on trial. */
  readonly proven: string;
  readonly trial?: Trial & {
    readonly version: string;
    /** Incarnations whose start it failed: they are made again of the proven version. */
    readonly failed: readonly number[];
  };
  /** Versions that were rolled back, the newest last. */
  readonly rejected: readonly string[];
  /** How the last trial ended. */
  readonly last?: ImageTrial;
}

/** What a sliver was made of. */
export interface MadeOf {
  /** Of the image. */
  readonly name: string;
  /** The version. */
  readonly digest: string;
  /** The version was on trial then. */
  readonly tried: boolean;
}

/** Rolled back versions that are remembered; a source does not return to older ones. */
const MOST_REJECTED = 16;

/**
 * Trials of images on one machine: which version a new sliver gets, and what becomes of a new version. It holds the state in memory; the
 * caller stores `of(name)` after each change.
 */
export class ImageTrials {
  readonly #rules: ImageTrialRules;
  readonly #now: () => number;
  readonly #byName = new Map<string, ImageVersions>();

  /** `now`: milliseconds since the Unix epoch. */
  constructor(rules: ImageTrialRules, now: () => number) {
    this.#rules = rules;
    this.#now = now;
  }

  /** What is known of a name. A new object after each change, so that a caller sees by it whether to store. */
  of(name: string): ImageVersions | undefined {
    return this.#byName.get(name);
  }

  /** Sets what was stored of a name; undefined: the name is gone. */
  load(name: string, stored: ImageVersions | undefined): void {
    if (stored === undefined) this.#byName.delete(name);
    else this.#byName.set(name, stored);
  }

  /** Whether this version was rolled back under this name; another name may still use it. */
  isRejected(name: string, version: string): boolean {
    return this.of(name)?.rejected.includes(version) === true;
  }

  /** Versions that a sliver may get or that may return. */
  kept(name: string): readonly string[] {
    const { proven, trial } = this.of(name) ?? {};
    return [proven, trial?.version].filter((one) => one !== undefined);
  }

  /** The source of the image has this version now: the first one serves, a later one is tried. */
  offer(name: string, version: string): void {
    const before = this.#judged(name);
    if (before === undefined) this.#byName.set(name, { proven: version, rejected: [] });
    else if (version !== before.trial?.version) {
      const dropped = this.#end(name, "dropped", "its source has another version now") ?? before;
      if (version !== before.proven && !dropped.rejected.includes(version))
        this.#begin(name, dropped, version);
    }
  }

  /** A version of which no image can be made. False: there is no other one, so it is the caller's error. */
  refuse(name: string, version: string, why: string): boolean {
    const before = this.of(name);
    if (before === undefined || before.proven === version) return false;
    if (before.trial?.version !== version) this.offer(name, version);
    this.#end(name, "rolled-back", why);
    return true;
  }

  /** The version for a sliver. Undefined: nothing is known of the name. */
  choose(name: string, incarnation: number): MadeOf | undefined {
    const versions = this.of(name);
    if (versions === undefined) return undefined;
    const { proven, trial } = versions;
    const tried =
      trial !== undefined && !trial.failed.includes(incarnation) && isDrawn(incarnation, this.#rules.share);
    return { name, digest: tried ? trial.version : proven, tried };
  }

  /**
   * Counts the first start of a sliver. `ms`: until it answered; undefined: it did not. True: it failed with a version that is not proven,
   * so it should be made again, of another one.
   */
  count({ name, digest, tried }: MadeOf, incarnation: number, ms: number | undefined): boolean {
    const before = this.of(name);
    const { trial } = before ?? {};
    if (before !== undefined && trial !== undefined && !before.rejected.includes(digest)) {
      const side = digest === trial.version ? "candidate" : "stable";
      const tallies = { ...trial.tallies, [side]: withBoot(trial.tallies[side], ms) };
      const failed = side === "candidate" && ms === undefined ? [...trial.failed, incarnation] : trial.failed;
      this.#byName.set(name, { ...before, trial: { ...trial, tallies, failed } });
      this.#judged(name);
    }
    return tried && ms === undefined && before?.proven !== digest;
  }

  /** For operators: the trials of all images, and how those ended that have none now. */
  report(): readonly ImageTrial[] {
    return [...this.#byName].flatMap(([image, { trial, last }]) => {
      if (trial === undefined) return last ?? [];
      const { version, since } = trial;
      const { why } = judgeTrial(trial, this.#rules, this.#now());
      return { image, version, verdict: "on-trial" as const, why, at: since };
    });
  }

  /** Starts a trial with empty counts on both sides. */
  #begin(name: string, before: ImageVersions, version: string): void {
    const tallies = { candidate: noBoots, stable: noBoots };
    this.#byName.set(name, { ...before, trial: { version, since: this.#now(), tallies, failed: [] } });
  }

  /** Ends the trial if its counts or its age say so, and returns what is known after that. */
  #judged(name: string): ImageVersions | undefined {
    const versions = this.of(name);
    if (versions?.trial === undefined) return versions;
    const { verdict, why } = judgeTrial(versions.trial, this.#rules, this.#now());
    return verdict === "wait" ? versions : this.#end(name, verdict, why);
  }

  /** Ends the trial, if there is one. A version that was rolled back is not tried again. */
  #end(
    name: string,
    verdict: "promoted" | "rolled-back" | "dropped",
    why: string,
  ): ImageVersions | undefined {
    const { trial, ...before } = this.of(name) ?? {};
    if (trial === undefined) return undefined;
    const { version } = trial;
    const last = { image: name, version, verdict, why, at: this.#now() };
    const { proven, rejected } = before as ImageVersions;
    const after = {
      proven: verdict === "promoted" ? version : proven,
      rejected: verdict === "rolled-back" ? [...rejected, version].slice(-MOST_REJECTED) : rejected,
      last,
    };
    this.#byName.set(name, after);
    return after;
  }
}
