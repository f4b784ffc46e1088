import { mayAct } from "@nodeyard/coordination";
import { type Resource, runSteps } from "@nodeyard/driver";
import { deadline, messageOf } from "@nodeyard/runtime";
import { leakedImages } from "../core/leaked-images.ts";
import { uploadKey } from "../core/retire.ts";
import { BuilderError } from "../errors.ts";
import type { BuilderContext, ImageProvider } from "./context.ts";
import { imageUploadOf } from "./janitor.ts";

/** For one cloud to list or to delete, milliseconds. */
const ANSWER_MS = 120_000;
/** Between two looks at one cloud, milliseconds: it lists all that it has, for what seldom happens. */
const LOOK_MS = 5 * 60_000;

/**
 * Deletes images in clouds that are ours and have no record (rule 5), as a builder leaves them whose upload record another kind
 * of janitor dropped. Suspected by two looks in a row, from a complete view, within the brake. Every builder looks: deletions are
 * idempotent.
 */
export class LeakedImages {
  readonly #context: BuilderContext;
  /** Images that the last look found without a record, by provider. */
  readonly #suspects = new Map<string, ReadonlySet<string>>();
  /** Monotonic time of the next look, by provider. */
  readonly #next = new Map<string, number>();

  constructor(context: BuilderContext) {
    this.#context = context;
  }

  /** Checks every cloud that is due. Failures are logged; the next check retries. */
  async look(signal: AbortSignal): Promise<undefined> {
    if (!mayAct(this.#context)) return;
    const { providers, view } = this.#context;
    for (const name of this.#suspects.keys()) if (!providers.has(name)) this.#suspects.delete(name);
    const answers: { readonly provider: ImageProvider; readonly resources: readonly Resource[] }[] = [];
    for (const provider of this.#due())
      await this.#patiently(provider, signal, async (own) => {
        answers.push({ provider, resources: await provider.list(own) });
      });
    if (answers.length === 0 || signal.aborted) return;
    // A record is written before its image exists, so after this resync the view has the records of all listed images.
    await view.resync();
    for (const { provider, resources } of answers)
      await this.#patiently(provider, signal, (own) => this.#remove(provider, resources, own));
  }

  /** Providers whose turn it is; their next turn is set at once, whether they answer or not. */
  #due(): readonly ImageProvider[] {
    const { providers, clock } = this.#context;
    const now = clock.monotonic();
    const due = [...providers.values()].filter(({ name }) => (this.#next.get(name) ?? 0) <= now);
    for (const { name } of due) this.#next.set(name, now + LOOK_MS);
    return due;
  }

  /** Never rejects: a cloud that does not answer must not keep the others waiting. */
  async #patiently(
    { name: provider }: ImageProvider,
    parent: AbortSignal,
    work: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const { clock, log } = this.#context;
    const late = () =>
      new BuilderError(
        "builder.provider_silent",
        `provider ${provider} did not answer within ${ANSWER_MS} ms`,
      );
    using limit = deadline(clock, ANSWER_MS, late, parent);
    try {
      await work(limit.signal);
    } catch (error) {
      const about = { provider, error: messageOf(error) };
      log.warn(about, "cannot search a cloud for images without a record; will retry");
    }
  }

  async #remove(
    { name, store }: ImageProvider,
    resources: readonly Resource[],
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, installation, counters, log } = this.#context;
    if (!mayAct(this.#context)) return;
    const known = new Set(this.#uploadsAt(name));
    const previous = this.#suspects.get(name) ?? new Set();
    const sweep = leakedImages(resources, known, { installation, provider: name, previous });
    this.#suspects.set(name, sweep.suspects);
    if (sweep.braked) {
      counters.add("builder.leak_brake", 1, { provider: name });
      log.error(
        { provider: name, wouldDelete: sweep.wouldRemove },
        `too many images without a record: nothing is deleted; is this the right tree for this cloud? "nodeyard alien-image-list" shows them`,
      );
    }
    for (const tag of sweep.remove) {
      if (!mayAct(this.#context)) return;
      await runSteps((step) => store.remove(tag, step), {
        clock,
        signal,
        externalId: null,
        save: async () => {},
      });
      counters.add("builder.retired", 1, { kind: "leaked-image" });
      log.warn({ ...tag }, "deleted an image without a record");
    }
  }

  /** Keys of all uploads to a provider. Records that cannot be read count by their paths: their images are not without a record. */
  *#uploadsAt(provider: string): Iterable<string> {
    const { images, unreadable } = this.#context.view;
    for (const { path, kind } of unreadable.byPath.values()) {
      const upload = kind === "image-upload" ? imageUploadOf(path) : undefined;
      if (upload !== undefined) yield upload.slice(upload.indexOf("/") + 1);
    }
    for (const image of images.names())
      for (const upload of images.uploads(image))
        if (upload.provider === provider) yield uploadKey(upload.build, provider, upload.record.id);
  }
}
