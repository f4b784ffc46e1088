import { isDeepStrictEqual } from "node:util";
import { closeQuietly, KeyedController, observeApi, openingError } from "@nodeyard/coordination";
import { type Driver, guard, type Provider, type ProviderConfig, type Scanner } from "@nodeyard/driver";
import { backoff, inTime, messageOf } from "@nodeyard/runtime";
import { treeNow } from "@nodeyard/tree";
import { BuilderError } from "../errors.ts";
import type { BuilderContext, ImageProvider } from "./context.ts";

/** For a driver to open a provider, milliseconds. */
const OPEN_MS = 60_000;

type Handles = Pick<
  BuilderContext,
  "tree" | "clock" | "random" | "log" | "counters" | "live" | "installation"
>;

/** What it was opened with. `config` may be of an earlier reload that had the same. */
interface Opened extends ImageProvider {
  readonly config: ProviderConfig;
  readonly provider: Provider;
}

/** Why a provider could not be opened: since when, and when it is tried again; tree time, milliseconds. */
export interface ClosedImageProvider {
  readonly since: number;
  readonly error: string;
  readonly nextTry: number;
}

/**
 * Opens providers that take images, once for the whole builder, and again with back-off where that fails. Providers whose driver
 * takes no images are closed again. `onChange` is called when one has opened.
 */
export class ImageProviders {
  /** What the context shows; `#opened` has the same with what is needed to close it. */
  readonly open = new Map<string, ImageProvider>();
  /** Those that could not be opened. */
  readonly closed = new Map<string, ClosedImageProvider>();
  readonly #opened = new Map<string, Opened>();
  readonly #handles: Handles;
  readonly #scan: Scanner;
  readonly #driverOf: (name: string) => Promise<Driver>;
  readonly #onChange: () => void;
  /** Called when a provider could not be opened. */
  readonly #onStanding: () => void;
  readonly #controllers: KeyedController;
  /** By provider: why the last request of the opening that is under way had no answer. */
  readonly #lastTry = new Map<string, string>();
  #wanted: ReadonlyMap<string, ProviderConfig> = new Map();
  #closed = false;

  constructor(
    handles: Handles,
    scan: Scanner,
    driverOf: (name: string) => Promise<Driver>,
    onChange: () => void,
    onStanding: () => void,
  ) {
    this.#handles = handles;
    this.#scan = scan;
    this.#driverOf = driverOf;
    this.#onChange = onChange;
    this.#onStanding = onStanding;
    this.#controllers = new KeyedController(handles, (name) => ({
      name: `image provider ${name}`,
      site: "builder/control/providers.ts",
      reconcile: () => this.#open(name).then(() => undefined),
      failed: (error, attempt) => {
        const pause = backoff(handles.random, attempt, 1_000, 60_000);
        const cause = openingError(error, this.#lastTry.get(name));
        handles.log.warn({ provider: name, attempt, error: cause }, "cannot open a provider; will retry");
        this.#noteClosed(name, cause, pause);
        return pause;
      },
    }));
  }

  /**
   * Closes providers that changed or left; resolves when each new one was tried once. A reload makes all objects anew, so they are compared by
   * what they hold: a provider that is closed takes the uploads under way with it.
   */
  async apply(configs: readonly ProviderConfig[]): Promise<void> {
    this.#wanted = new Map(configs.map((config) => [config.name, config]));
    for (const name of this.closed.keys()) if (!this.#wanted.has(name)) this.closed.delete(name);
    for (const [name, { config, provider }] of this.#opened) {
      if (isDeepStrictEqual(this.#wanted.get(name), config)) continue;
      this.#opened.delete(name);
      this.open.delete(name);
      await this.#leave(name, provider);
    }
    await Promise.all(configs.map(({ name }) => this.#controllers.look(name)));
  }

  /** Closes all, and starts no other. Called once. */
  async close(): Promise<void> {
    this.#closed = true;
    // Not awaited: a provider that opens too late is closed by its own controller.
    void this.#controllers.close();
    await Promise.all([...this.#opened.values()].map(({ name, provider }) => this.#leave(name, provider)));
  }

  #leave(name: string, provider: Provider): Promise<void> {
    const { clock, log } = this.#handles;
    return closeQuietly({ clock, log }, name, provider);
  }

  /** Opens one provider, if it is still wanted. Rejects as its driver does, or when that takes too long; its controller tries again. */
  async #open(name: string): Promise<void> {
    const { clock, random, log, counters, installation } = this.#handles;
    const config = this.#wanted.get(name);
    if (config === undefined || this.#opened.has(name)) return;
    const driver = await this.#driverOf(config.driver);
    const timed = observeApi(counters, name);
    this.#lastTry.delete(name);
    const observe: typeof timed = (call) => {
      timed(call);
      if (call.error === undefined || this.open.has(name)) return;
      // Shown at once: the driver may try again for a minute.
      this.#lastTry.set(name, messageOf(call.error));
      this.#noteClosed(name, messageOf(call.error), 0);
    };
    const context = { clock, random, log, scan: this.#scan, installation, observe, purpose: "look" } as const;
    const opening = driver.open(config, context);
    const late = () =>
      new BuilderError("builder.provider_silent", `provider ${name} did not open within ${OPEN_MS} ms`);
    const leave = (tooLate: Provider) => void this.#leave(name, tooLate);
    const guarded = { clock, log: driver.log ?? log };
    const provider = guard(await inTime(clock, OPEN_MS, opening, late, leave), config, guarded);
    // It took so long that it is not wanted any more.
    if (this.#closed || this.#wanted.get(name) !== config) return this.#leave(name, provider);
    const store = provider.offers?.images;
    if (store === undefined) {
      log.debug({ provider: name }, "the provider does not take image uploads");
      return this.#leave(name, provider);
    }
    const list = (signal: AbortSignal) => provider.list(signal);
    const opened = { name, store, list, config, provider };
    this.#opened.set(name, opened);
    this.open.set(name, opened);
    this.closed.delete(name);
    this.#onChange();
  }

  #noteClosed(name: string, error: string, pauseMs: number): void {
    const now = Math.round(treeNow(this.#handles));
    const { since = now } = this.closed.get(name) ?? {};
    this.closed.set(name, { since, error, nextTry: now + Math.round(pauseMs) });
    this.#onStanding();
  }
}
