import type { Clock, Timer } from "@nodeyard/runtime";
import { type ConfigDiff, diffConfig } from "../diff.ts";
import { loadConfig } from "../load.ts";
import type { Config, Finding } from "../types.ts";
import { type ConfigEnvironment, type ConfigFiles, readConfig, stampOf } from "./read.ts";

/** Between two looks at the files, milliseconds. */
const EVERY_MS = 1_000;

/** What a watch looks at, and whom it calls. Callbacks must not throw; they are not awaited. */
export interface WatchOptions extends ConfigFiles, ConfigEnvironment {
  readonly clock: Clock;
  /** The configuration in force. */
  readonly config: Config;
  /** The files were read, and could be used or not; before the calls below, also where nothing differs. `modified` as in Stamp. */
  onRead(usable: boolean, modified: number | undefined): void;
  /** A new configuration is in force. Called only when something differs. */
  onChange(config: Config, diff: ConfigDiff, findings: readonly Finding[]): void;
  /** Called when the files were read again without a difference, with their findings. */
  onSame(findings: readonly Finding[]): void;
  /** Called once for each version of the files that cannot be used; the former configuration stays in force. */
  onError(findings: readonly Finding[]): void;
}

/**
 * Looks at the files' stamps, because a watch of the operating system misses what happens behind links and on network folders.
 * Starts by looking at once: the files may have changed since they were read. One for each daemon; it holds no file open.
 */
export class ConfigWatch {
  readonly #options: WatchOptions;
  /** The one in force: the last that could be used. */
  #config: Config;
  /** Of the files as they were read last; undefined: not yet. */
  #stamp: string | undefined;
  #timer: Timer | undefined;
  #closed = false;
  /** The last look, which the next one waits for. */
  #looking: Promise<void> = Promise.resolve();

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#config = options.config;
    this.#schedule(0);
  }

  /** The configuration in force. */
  get config(): Config {
    return this.#config;
  }

  /** No callback comes after it, also of a look that is under way. */
  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  /** One look now, after those under way. `always`: reads the files also when their stamps are the same. Never rejects. */
  check(always = false): Promise<void> {
    // One after the other: of two reads at once, the older text could come into force last.
    this.#looking = this.#looking.then(() => this.#look(always));
    return this.#looking;
  }

  /** Reads the files where their stamps differ from those of the last read, and calls back. */
  async #look(always: boolean): Promise<void> {
    const { text: stamp, modified } = await stampOf(this.#options);
    if ((stamp === this.#stamp && !always) || this.#closed) return;
    const read = await readConfig(this.#options, this.#options);
    if (this.#closed) return;
    const first = this.#stamp === undefined;
    // Taken before the read, so that the next look sees a write during the read.
    this.#stamp = stamp;
    if ("unreadable" in read) {
      this.#options.onRead(false, modified);
      this.#options.onError([read.unreadable]);
      return;
    }
    const { config, findings } = loadConfig(read.input);
    this.#options.onRead(config !== undefined, modified);
    if (config === undefined) {
      this.#options.onError(findings);
      return;
    }
    const diff = diffConfig(this.#config, config);
    this.#config = config;
    if (diff.any) this.#options.onChange(config, diff, findings);
    // The first read of the files has already reported their findings.
    else if (!first) this.#options.onSame(findings);
  }

  #schedule(ms: number): void {
    if (this.#closed) return;
    const look = async () => {
      await this.check();
      this.#schedule(EVERY_MS);
    };
    this.#timer = this.#options.clock.setTimer(ms, () => void look(), { background: true });
  }
}
