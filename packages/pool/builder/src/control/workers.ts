import type { ImageSettings } from "@nodeyard/config";
import { Controller, mayAct } from "@nodeyard/coordination";
import { jitter, messageOf } from "@nodeyard/runtime";
import { logEvent } from "@nodeyard/telemetry";
import { FenceLost, isInterrupted, treeNow } from "@nodeyard/tree";
import type { LocalBuild } from "../runs/disk.ts";
import { type BuildOutcome, buildImage } from "./build.ts";
import { buildChoice, uploadChoice } from "./choices.ts";
import type { BuilderContext } from "./context.ts";
import type { PutOff } from "./outlook.ts";
import { BUSY_MS } from "./records.ts";
import { uploadImage } from "./upload.ts";

/** The pause after an unexpected error, milliseconds. */
const TROUBLE_MS = 60_000;
/** It looks this often at least, milliseconds: everything that makes work due is an event or a time that it knows. */
const RESYNC_MS = 60 * 60_000;
/** It does not look sooner again by time alone, milliseconds: a time that is over must not make it spin. */
const SOONEST_MS = 50;

/** `builds` and `uploads`: the most at once. `signal`: aborts work in progress. */
export interface WorkersOptions {
  readonly builds: number;
  readonly uploads: number;
  readonly signal: AbortSignal;
  /** Called when a build or upload has ended. */
  onEnd(): void;
}

/**
 * Starts builds and uploads when they are due, no more at once than there are workers. Reacts to events; polls nothing. It
 * chooses by the view, and the work decides again under its lock.
 */
export class Workers {
  readonly #context: BuilderContext;
  readonly #options: WorkersOptions;
  /** Builds under way, by image. */
  readonly #builds = new Map<string, Promise<void>>();
  /** Uploads under way, by `<image>/<provider>`. */
  readonly #uploads = new Map<string, { readonly build: string; readonly done: Promise<void> }>();
  /** By image, or by image and provider, until when by the clock that never jumps. */
  readonly #putOff = new Map<string, { readonly until: number; readonly why: string }>();
  readonly #controller: Controller;
  #isOpen = false;

  constructor(context: BuilderContext, options: WorkersOptions) {
    this.#context = context;
    this.#options = options;
    this.#controller = new Controller(context, {
      name: "builds and uploads",
      site: "builder/control/workers.ts",
      resyncMs: RESYNC_MS,
      reconcile: () => this.#look(),
      failed: (error) => {
        context.log.error({ error: messageOf(error) }, "cannot check images; will retry");
        return TROUBLE_MS;
      },
    });
  }

  /** Lets work begin: called when the records that a former process left are settled. */
  open(): void {
    this.#isOpen = true;
    this.turn();
  }

  /** Starts no more work; resolves when the work in progress has ended. */
  async drain(): Promise<void> {
    this.#isOpen = false;
    await this.#controller.close();
    await Promise.all([...this.#builds.values(), ...[...this.#uploads.values()].map(({ done }) => done)]);
  }

  /** Whether the files of a build are in use: from before its intent is written until its record says how it ended. */
  isBusy(build: string): boolean {
    if ([...this.#uploads.values()].some((upload) => upload.build === build)) return true;
    return this.#context.progress.list().some((one) => one.build === build);
  }

  /** An image has changed: work on it that was put off is judged again. */
  changed(image: string): void {
    for (const key of this.#putOff.keys())
      if (key === image || key.startsWith(`${image}/`)) this.#putOff.delete(key);
    this.turn();
  }

  /** Why an image, or an upload of it (`<image>/<provider>`), that is due is not begun now. */
  putOff(key: string): PutOff | undefined {
    const found = this.#putOff.get(key);
    const left = (found?.until ?? 0) - this.#context.clock.monotonic();
    return found !== undefined && left > 0 ? { at: this.#now() + left, why: found.why } : undefined;
  }

  /** Puts work off, by the monotonic clock, so that a clock that is set does not hold it up. */
  #setAside(key: string, ms: number, why: string): void {
    this.#putOff.set(key, { until: this.#context.clock.monotonic() + ms, why });
  }

  /** Looks at every image soon, once for any number of calls. */
  turn(): void {
    if (this.#isOpen) this.#controller.wake();
  }

  /** One look at all images: starts what is due, and resolves with the milliseconds until something else is. */
  async #look(): Promise<number | undefined> {
    const { settings, disk } = this.#context;
    if (!this.#isOpen || this.#options.signal.aborted || !mayAct(this.#context)) return undefined;
    const wakes: number[] = [];
    for (const image of settings.images.keys()) wakes.push(this.#lookAtBuild(image));
    const local = await disk.list();
    for (const [provider, { images }] of settings.uploads)
      for (const image of images.keys()) wakes.push(this.#lookAtUpload(provider, image, local));
    return Math.max(SOONEST_MS, Math.min(...wakes) - this.#now());
  }

  /** When to look again, milliseconds of tree time. */
  #lookAtBuild(name: string): number {
    const held = this.putOff(name);
    const now = this.#now();
    if (held !== undefined) return held.at;
    if (this.#builds.has(name)) return Number.POSITIVE_INFINITY;
    const image = this.#context.settings.images.get(name)!;
    const choice = buildChoice(this.#context, image, now);
    if (!choice.build) return choice.at ?? Number.POSITIVE_INFINITY;
    if (this.#builds.size < this.#options.builds) this.#startBuild(image);
    return Number.POSITIVE_INFINITY;
  }

  /** Not awaited: the controller goes on looking. When it ends, another look follows. */
  #startBuild(image: ImageSettings): void {
    const { name } = image;
    const work = buildImage(this.#context, image, this.#options.signal).then(
      (outcome: BuildOutcome) => {
        if (outcome.ended !== "not-now") return;
        const { at, why } = outcome;
        this.#setAside(name, at === undefined ? TROUBLE_MS : at - this.#now(), why);
      },
      (error: unknown) => this.#failed("build", name, error),
    );
    this.#builds.set(
      name,
      work.finally(() => this.#ended(() => this.#builds.delete(name))),
    );
  }

  /** As for builds: starts the upload where it is due, and says when to look again, milliseconds of tree time. */
  #lookAtUpload(provider: string, image: string, all: readonly LocalBuild[]): number {
    const { settings, providers } = this.#context;
    const [open, upload] = [providers.get(provider), settings.uploads.get(provider)!];
    const key = `${image}/${provider}`;
    const held = this.putOff(key);
    const now = this.#now();
    if (held !== undefined) return held.at;
    if (open === undefined || this.#uploads.has(key)) return Number.POSITIVE_INFINITY;
    const choice = uploadChoice(this.#context, provider, image, all, now);
    if (choice === undefined) return Number.POSITIVE_INFINITY;
    if (!choice.upload) return choice.at ?? Number.POSITIVE_INFINITY;
    // The end of one of them causes another look.
    if (this.#uploads.size >= this.#options.uploads) return Number.POSITIVE_INFINITY;
    const { build, format } = choice;
    const job = { image, build, format, provider: open, settings: upload };
    const done = uploadImage(this.#context, job, this.#options.signal).then(
      (outcome) => {
        if (outcome === "busy") this.#setAside(key, BUSY_MS, outcome);
      },
      (error: unknown) => this.#failed("upload", key, error),
    );
    this.#uploads.set(key, {
      build,
      done: done.finally(() => this.#ended(() => this.#uploads.delete(key))),
    });
    return Number.POSITIVE_INFINITY;
  }

  /** Logs why work did not end, and puts it off: with jitter, so that builders do not meet at the lock again. */
  #failed(what: "build" | "upload", key: string, error: unknown): void {
    const { log, counters, random } = this.#context;
    const about = { [what]: key, error: messageOf(error) };
    // What does not end in time when the builder stops loses its tree.
    const stops = this.#options.signal.aborted;
    if (stops || error instanceof FenceLost || isInterrupted(error))
      logEvent(log, { event: `${what}.given-up`, ...about });
    else {
      counters.add("builder.unexpected", 1, { place: what });
      logEvent(log, { event: `${what}.aborted`, ...about });
    }
    this.#setAside(key, jitter(random, TROUBLE_MS), messageOf(error));
  }

  /** A worker is free, and the sweep may have files to remove. */
  #ended(forget: () => void): void {
    forget();
    this.turn();
    this.#options.onEnd();
  }

  #now(): number {
    return treeNow(this.#context);
  }
}
