import { type Clock, Gate } from "@nodeyard/runtime";
import { type ImageTrialRules, ImageTrials, type MadeOf } from "../../../core/image-trials.ts";
import { ImageNames, type Noted } from "./image-names.ts";

/**
 * The names of the configuration, what each stood for last, and which versions of it are tried: ImageTrials, whose state `note` and
 * `count` store, one write at a time. Without rules of a trial it only notes versions.
 */
export class TriedNames extends ImageNames {
  /** Undefined: a new version serves at once. */
  readonly trials: ImageTrials | undefined;
  readonly #writing = new Gate(1);

  constructor(folder: string, rules: ImageTrialRules | undefined, clock: Clock) {
    super(folder);
    this.trials = rules && new ImageTrials(rules, () => clock.now());
  }

  /** What is stored; the first read of a name also loads its trial. */
  override async read(name: string): Promise<Noted | undefined> {
    const noted = await super.read(name);
    if (noted?.versions !== undefined && this.trials?.of(name) === undefined)
      this.trials?.load(name, noted.versions);
    return noted;
  }

  /** What the source has now. `former`: what served when nothing was tried yet. */
  async note(name: string, now: Noted, former: string | undefined): Promise<void> {
    this.#serve(name, former);
    this.trials?.offer(name, now.digest);
    await this.#writing.run(() => this.write(name, { ...now, versions: this.trials?.of(name) }));
  }

  /** As of ImageTrials; durable when it resolves. */
  async count(made: MadeOf, incarnation: number, ms: number | undefined): Promise<boolean> {
    const before = this.trials?.of(made.name);
    if (this.trials === undefined || before === undefined) return false;
    const again = this.trials.count(made, incarnation, ms);
    if (this.trials.of(made.name) !== before)
      await this.#writing.run(async () => {
        const noted = await this.read(made.name);
        if (noted !== undefined)
          await this.write(made.name, { ...noted, versions: this.trials?.of(made.name) });
      });
    return again;
  }

  /** As of ImageTrials. `former`: as for `note`. */
  refuse(name: string, version: string, former: string | undefined, why: string): boolean {
    this.#serve(name, former);
    return this.trials?.refuse(name, version, why) === true;
  }

  /** Versions whose roots must stay. */
  async kept(name: string): Promise<readonly string[]> {
    const { digest = "" } = (await this.read(name)) ?? {};
    const rejected = this.trials?.isRejected(name, digest) === true;
    return [...(rejected ? [] : [digest]), ...(this.trials?.kept(name) ?? [])];
  }

  override async remove(name: string): Promise<void> {
    this.trials?.load(name, undefined);
    await super.remove(name);
  }

  #serve(name: string, former: string | undefined): void {
    if (former !== undefined && this.trials?.of(name) === undefined) this.trials?.offer(name, former);
  }
}
