import type { Disk, FileFacts, Intent, LocalBuild, Running } from "@nodeyard/builder";
import type { Clock, Random, Timer } from "@nodeyard/runtime";
import { between } from "../streams.ts";

/** A build's command takes this long, milliseconds. */
const BUILD_MS = [200, 3_000] as const;
const FAILS = 0.1;
/** Share of builds whose machines never answer. */
const BAD = 0.3;
/** Sum of a file whose machines never answer. */
const BAD_SUM = "bad";
const BYTES = 1_000;

/** Whether machines of an image with these contents never answer. */
export function isBadSum(sha256: string): boolean {
  return sha256.startsWith(BAD_SUM);
}

interface Command {
  readonly build: string;
  readonly timer: Timer;
  readonly stop: () => void;
}

/**
 * The disk of one builder's machine, and the commands that run on it. Both outlive the builder's process, as on a real machine: a command
 * that was running when the builder died continues and writes its files, unless it is killed by its mark.
 */
export class SimulatedDisk implements Disk {
  readonly folder = "/images";
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #onFailure: () => void;
  /** By file name: the checksum of its contents, or undefined if it is truncated. */
  readonly #files = new Map<string, string | undefined>();
  readonly #intents = new Map<string, Intent>();
  readonly #commands = new Set<Command>();
  #builderId: string | undefined;
  #sums = 0;

  /** `onFailure` is called for each command that fails by itself. */
  constructor(clock: Clock, random: Random, onFailure: () => void) {
    this.#clock = clock;
    this.#random = random;
    this.#onFailure = onFailure;
  }

  /** The truth, for checks: builds with files here. */
  inspect(): { readonly builds: readonly string[]; readonly running: readonly string[] } {
    const builds = new Set([...this.#intents.values()].map(({ build }) => build));
    for (const name of this.#files.keys()) builds.add(/-([0-9a-f]+)\.[a-z0-9]+$/.exec(name)?.[1] ?? name);
    return { builds: [...builds], running: [...this.#commands].map(({ build }) => build) };
  }

  async builderId(random: { uuid(): string }): Promise<string> {
    this.#builderId ??= random.uuid();
    return this.#builderId;
  }

  async list(): Promise<readonly LocalBuild[]> {
    return [...this.#intents].map(([base, intent]) => ({ base, intent, formats: this.#formats(base) }));
  }

  async begin(intent: Intent): Promise<void> {
    this.#intents.set(baseOf(intent), intent);
  }

  async adopt(): Promise<boolean> {
    return false;
  }

  async sources(): Promise<string> {
    return "unchanged";
  }

  async start(
    { env }: { readonly env: Readonly<Record<string, string | undefined>> },
    intent: Intent,
  ): Promise<Running> {
    const { promise: ended, resolve } = Promise.withResolvers<{ readonly code: number }>();
    const formats = (env.NODEYARD_IMAGE_FORMATS ?? "").split(" ");
    const [fails, bad, ms] = [
      this.#random.float() < FAILS,
      this.#random.float() < BAD,
      between(this.#random, ...BUILD_MS),
    ];
    const end = (code: number) => {
      this.#commands.delete(command);
      command.timer.cancel();
      resolve({ code });
    };
    const command: Command = {
      build: intent.build,
      // A killed command leaves the files that it had written by then.
      stop: () => {
        if (this.#random.float() < 0.5) this.#write(baseOf(intent), formats, undefined);
        end(-9);
      },
      timer: this.#clock.setTimer(ms, () => {
        const sum = (++this.#sums).toString(16).padStart(61, "0");
        if (fails) this.#onFailure();
        else this.#write(baseOf(intent), formats, `${bad ? BAD_SUM : "900"}${sum}`);
        end(fails ? 1 : 0);
      }),
    };
    this.#commands.add(command);
    return { ended, kill: () => this.#commands.has(command) && command.stop() };
  }

  async settle(base: string, formats: readonly string[]): Promise<readonly string[]> {
    return formats.filter((format) => this.#files.get(`${base}.${format}`) === undefined);
  }

  async reclaim({ build }: Intent): Promise<void> {
    for (const command of [...this.#commands]) if (command.build === build) command.stop();
  }

  async remove(base: string): Promise<void> {
    for (const name of [...this.#files.keys()]) if (name.startsWith(`${base}.`)) this.#files.delete(name);
    this.#intents.delete(base);
  }

  async removeFormats(base: string, formats: readonly string[]): Promise<void> {
    for (const format of formats) this.#files.delete(`${base}.${format}`);
  }

  async describe(base: string, format: string): Promise<FileFacts> {
    const sha256 = this.#files.get(`${base}.${format}`);
    if (sha256 === undefined) throw new Error(`ENOENT: no such file, open ${base}.${format}`);
    return { path: `${this.folder}/${base}.${format}`, size: BYTES, md5: sha256.slice(0, 32), sha256 };
  }

  async used(intent: Intent): Promise<number> {
    return this.#formats(baseOf(intent)).length * BYTES;
  }

  async allocated(): Promise<number> {
    return BYTES;
  }

  async free(): Promise<number> {
    return 2 ** 40;
  }

  async newLog(folder: string, image: string, build: string): Promise<string> {
    return `${folder}/${image}-${build}.log`;
  }

  async appendLog(): Promise<void> {}

  async tail(): Promise<string> {
    return "";
  }

  async hook(): Promise<{ readonly code: number; readonly output: string }> {
    return { code: 0, output: "" };
  }

  #write(base: string, formats: readonly string[], sum: string | undefined): void {
    for (const format of formats) this.#files.set(`${base}.${format}`, sum);
  }

  #formats(base: string): readonly string[] {
    return [...this.#files.keys()]
      .filter((name) => name.startsWith(`${base}.`))
      .map((name) => name.slice(base.length + 1));
  }
}

function baseOf({ image, build }: Intent): string {
  return `${image}-${build}`;
}
