import type { Clock } from "@nodeyard/runtime";
import type { ImageTrial } from "@nodeyard/sliver-protocol";
import { type ImageTrialRules, ImageTrials, type MadeOf } from "../../../core/image-trials.ts";
import { inTurn } from "../../../in-turn.ts";
import type { ImageNames, Noted } from "./image-names.ts";

/**
 * The names of the configuration, what each stood for last, and which versions of it are tried: ImageTrials, whose state `note` and
 * `count` store, one write at a time. Without rules of a trial it only notes versions.
 */
export class TriedNames {
  readonly #names: ImageNames;
  /** Undefined: a new version serves at once. */
  readonly #trials: ImageTrials | undefined;
  readonly #writing = inTurn();

  constructor(names: ImageNames, rules: ImageTrialRules | undefined, clock: Clock) {
    this.#names = names;
    this.#trials = rules === undefined ? undefined : new ImageTrials(rules, () => clock.now());
  }

  list(): Promise<string[]> {
    return this.#names.list();
  }

  /** What is stored; the first read of a name also loads its trial. */
  async read(name: string): Promise<Noted | undefined> {
    const noted = await this.#names.read(name);
    if (noted?.versions !== undefined && this.#trials?.of(name) === undefined)
      this.#trials?.load(name, noted.versions);
    return noted;
  }

  /** What the source has now. `former`: what served when nothing was tried yet. */
  async note(name: string, now: Noted, former: string | undefined): Promise<void> {
    if (former !== undefined && this.#trials?.of(name) === undefined) this.#trials?.offer(name, former);
    this.#trials?.offer(name, now.digest);
    await this.#writing(() => this.#names.write(name, { ...now, versions: this.#trials?.of(name) }));
  }

  /** As of ImageTrials; durable when it resolves. */
  async count(made: MadeOf, incarnation: number, ms: number | undefined): Promise<boolean> {
    const before = this.#trials?.of(made.name);
    if (this.#trials === undefined || before === undefined) return false;
    const again = this.#trials.count(made, incarnation, ms);
    if (this.#trials.of(made.name) !== before)
      await this.#writing(async () => {
        const noted = await this.#names.read(made.name);
        if (noted !== undefined)
          await this.#names.write(made.name, { ...noted, versions: this.#trials?.of(made.name) });
      });
    return again;
  }

  /** As of ImageTrials. */
  choose(name: string, incarnation: number): MadeOf | undefined {
    return this.#trials?.choose(name, incarnation);
  }

  /** As of ImageTrials. */
  refuse(name: string, version: string, former: string | undefined, why: string): boolean {
    if (former !== undefined && this.#trials?.of(name) === undefined) this.#trials?.offer(name, former);
    return this.#trials?.refuse(name, version, why) === true;
  }

  /** The versions that new slivers get; undefined: nothing is known of the name. */
  serving(name: string): readonly string[] | undefined {
    return this.#trials?.of(name) && this.#trials.kept(name);
  }

  /** The version that slivers outside of a trial get; undefined: nothing is known of the name. */
  proven(name: string): string | undefined {
    return this.#trials?.of(name)?.proven;
  }

  /** Whether the version was rolled back, so that nothing is made of it. */
  isRejected(name: string, version: string): boolean {
    return this.#trials?.isRejected(name, version) === true;
  }

  /** Versions whose roots must stay. */
  async kept(name: string): Promise<readonly string[]> {
    const { digest = "" } = (await this.read(name)) ?? {};
    return [...(this.isRejected(name, digest) ? [] : [digest]), ...(this.#trials?.kept(name) ?? [])];
  }

  report(): readonly ImageTrial[] {
    return this.#trials?.report() ?? [];
  }

  async remove(name: string): Promise<void> {
    this.#trials?.load(name, undefined);
    await this.#names.remove(name);
  }

  async removeAll(): Promise<void> {
    for (const name of await this.list()) await this.remove(name);
    await this.#names.removeAll();
  }
}
