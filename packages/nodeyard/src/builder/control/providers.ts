import type { Driver, Provider, ProviderConfig, Scanner } from "@nodeyard/driver";
import { backoff, messageOf, type Timer } from "@nodeyard/runtime";
import { closeQuietly, inTime } from "../../coordination/index.ts";
import { BuilderError } from "../errors.ts";
import type { BuilderContext, ImageProvider } from "./context.ts";

const OPEN_MS = 60_000;

type Handles = Pick<BuilderContext, "clock" | "random" | "log" | "installation">;

interface Opened extends ImageProvider {
  readonly config: ProviderConfig;
  readonly provider: Provider;
}

/** Opens providers that take images, once for the whole builder, and again with back-off where that fails. */
export class ImageProviders {
  readonly open = new Map<string, ImageProvider>();
  readonly #opened = new Map<string, Opened>();
  readonly #handles: Handles;
  readonly #scan: Scanner;
  readonly #driverOf: (name: string) => Promise<Driver>;
  readonly #onChange: () => void;
  readonly #timers = new Map<string, Timer>();
  #wanted: ReadonlyMap<string, ProviderConfig> = new Map();
  #closed = false;

  constructor(
    handles: Handles,
    scan: Scanner,
    driverOf: (name: string) => Promise<Driver>,
    onChange: () => void,
  ) {
    this.#handles = handles;
    this.#scan = scan;
    this.#driverOf = driverOf;
    this.#onChange = onChange;
  }

  /** Those that changed or left are closed; resolves when each new one was tried. */
  async apply(configs: readonly ProviderConfig[]): Promise<void> {
    this.#wanted = new Map(configs.map((config) => [config.name, config]));
    for (const [name, { config, provider }] of this.#opened) {
      if (this.#wanted.get(name) === config) continue;
      this.#forget(name);
      await this.#leave(name, provider);
    }
    await Promise.all(
      configs.map((config) => (this.#opened.has(config.name) ? undefined : this.#try(config, 0))),
    );
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers.values()) timer.cancel();
    await Promise.all([...this.#opened.values()].map(({ name, provider }) => this.#leave(name, provider)));
  }

  #leave(name: string, provider: Provider): Promise<void> {
    const { clock, log } = this.#handles;
    return closeQuietly({ clock, log }, name, provider);
  }

  #forget(name: string): void {
    this.#opened.delete(name);
    this.open.delete(name);
    this.#timers.get(name)?.cancel();
  }

  async #try(config: ProviderConfig, attempt: number): Promise<void> {
    const { clock, random, log, installation } = this.#handles;
    const { name } = config;
    try {
      const driver = await this.#driverOf(config.driver);
      const opening = driver.open(config, { clock, random, log, scan: this.#scan, installation });
      const late = () =>
        new BuilderError("builder.provider_silent", `provider ${name} did not open within ${OPEN_MS} ms`);
      const provider = await inTime(
        clock,
        OPEN_MS,
        opening,
        late,
        (tooLate) => void this.#leave(name, tooLate),
      );
      if (this.#closed || this.#wanted.get(name) !== config) return await this.#leave(name, provider);
      const store = provider.offers?.images;
      if (store === undefined) {
        log.debug({ provider: name }, "the provider does not take image uploads");
        return await this.#leave(name, provider);
      }
      const list = (signal: AbortSignal) => provider.list(signal);
      const opened = { name, store, list, config, provider };
      this.#opened.set(name, opened);
      this.open.set(name, opened);
      this.#onChange();
    } catch (error) {
      log.warn({ provider: name, attempt, error: messageOf(error) }, "cannot open a provider; will retry");
      if (this.#closed || this.#wanted.get(name) !== config) return;
      const wait = backoff(random, attempt, 1_000, 60_000);
      this.#timers.set(
        name,
        clock.setTimer(wait, () => void this.#try(config, attempt + 1), { background: true }),
      );
    }
  }
}
