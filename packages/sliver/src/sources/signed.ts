import { backoff, type Clock, deadline, type Random, type Timer } from "@nodeyard/runtime";
import { parseKeySet, rotate, verifyText } from "@nodeyard/sliver-protocol";
import { z } from "zod";
import { deliverFull, readSignedDocument } from "../core/index.ts";
import { type Manager, type ManagerLog, reportOf } from "../manager/index.ts";
import { NoKeysError, SourceAnswerError, SourceUnreachableError } from "./errors.ts";
import { Failures } from "./failures.ts";

/** What was fetched; undefined: the same as what `etag` stands for. */
export interface Fetched {
  readonly text: string;
  readonly etag: string | undefined;
}

/** The place where documents for this node lie, and where its reports go. */
export interface DocumentEndpoint {
  /** Rejects with SourceUnreachableError, SourceAnswerError, and with what its certificates' files are refused with. */
  fetch(etag: string | undefined, signal: AbortSignal): Promise<Fetched | undefined>;
  /** Absent: nobody wants reports. */
  report?(text: string, signal: AbortSignal): Promise<void>;
}

export interface SignedOptions {
  readonly manager: Manager;
  readonly place: DocumentEndpoint;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: ManagerLog;
  /** Milliseconds between polls; up to half as much again is added by chance, so that nodes do not come together. */
  readonly period: number;
}

/** Of one poll with everything that follows from it. */
const POLL_MS = 60_000;
const FIRST_RETRY_MS = 1_000;
/** A site that starts as one does not ask as one. */
const MOST_STAGGER_MS = 30_000;
/** Of what is no document, in a message: characters. */
const MAX_QUOTED = 60;

const schema = z.strictObject({
  v: z.literal(1),
  /** Signed key sets, oldest first: what this node does not know of them yet it takes over first. */
  rotations: z.array(z.string()).max(64).default([]),
  /** A signed document for this node. */
  document: z.string(),
});

/**
 * Documents of a launcher that lie somewhere and are fetched. What counts is their signature, node, epoch and version; whoever serves
 * them is trusted with nothing but to serve. While nobody does, everything stays as it is.
 */
export class SignedSource {
  readonly #options: SignedOptions;
  readonly #stop = new AbortController();
  #timer: Timer | undefined;
  #polling: Promise<void> | undefined;
  #etag: string | undefined;
  readonly #told: Failures;
  /** In a row. */
  #failures = 0;
  #reported = -1;

  constructor(options: SignedOptions) {
    this.#options = options;
    this.#told = new Failures("documents", options.log);
  }

  start(): void {
    const { random, period } = this.#options;
    this.#arm(random.float() * Math.min(period, MOST_STAGGER_MS));
  }

  async close(): Promise<void> {
    this.#timer?.cancel();
    this.#stop.abort(new SourceUnreachableError("the sliver manager is stopping"));
    await this.#polling;
  }

  #arm(wait: number): void {
    if (this.#stop.signal.aborted) return;
    this.#timer = this.#options.clock.setTimer(wait, () => this.#begin(), { background: true });
  }

  #begin(): void {
    const { random, period } = this.#options;
    this.#polling = this.#poll()
      .then(
        () => {
          this.#failures = 0;
          this.#told.worked();
          return period * (1 + random.float() / 2);
        },
        (error: unknown) => {
          if (!this.#stop.signal.aborted) this.#told.failed(error);
          return Math.min(period, backoff(random, this.#failures++, FIRST_RETRY_MS, period));
        },
      )
      .then((wait) => {
        this.#polling = undefined;
        this.#arm(wait);
      });
  }

  async #poll(): Promise<void> {
    const { place, clock } = this.#options;
    const late = () => new SourceUnreachableError(`no answer within ${POLL_MS / 1000} s`);
    const limit = deadline(clock, POLL_MS, late, this.#stop.signal);
    try {
      const fetched = await place.fetch(this.#etag, limit.signal);
      if (fetched !== undefined) {
        await this.#take(fetched.text);
        // Only now: what could not be taken is fetched again.
        this.#etag = fetched.etag;
      }
      await this.#report(limit.signal);
    } finally {
      limit.cancel();
    }
  }

  async #take(text: string): Promise<void> {
    const { manager } = this.#options;
    const { rotations, document } = read(text);
    const { node, machine, capacity } = manager.options;
    for (const signed of rotations)
      await manager.change((state) => {
        const current = state.keySet;
        if (current === undefined) throw new NoKeysError();
        const next =
          versionOf(signed) > current.version
            ? parseKeySet(verifyText("key-set", signed, current, manager.now))
            : current;
        if (next === current) return { state, result: undefined };
        return { state: { ...state, keySet: rotate(current, next, manager.now) }, result: undefined };
      });
    await manager.change((state) => {
      if (state.keySet === undefined) throw new NoKeysError();
      const delivery = readSignedDocument(document, state.keySet, node, machine.policy.defaults, manager.now);
      return { state: deliverFull(state, delivery, capacity).state, result: undefined };
    });
  }

  /** Version, phases, errors and what is in force: when the machine was looked at anew. */
  async #report(signal: AbortSignal): Promise<void> {
    const { place, manager } = this.#options;
    if (place.report === undefined) return;
    const report = reportOf(manager);
    if (report.sequence === this.#reported) return;
    await place.report(JSON.stringify(report), signal);
    this.#reported = report.sequence;
  }
}

/** Without trust: only to pass over steps that were taken long ago, whose keys may be gone. 0: it says none. */
function versionOf(signed: string): number {
  try {
    const claims = JSON.parse(Buffer.from(signed.split(".")[1] ?? "", "base64url").toString()) as {
      version?: unknown;
    };
    return typeof claims.version === "number" ? claims.version : 0;
  } catch {
    return 0;
  }
}

function read(text: string): z.output<typeof schema> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    const begin = JSON.stringify(text.slice(0, MAX_QUOTED));
    throw new SourceAnswerError(`what documents.url serves is not valid JSON; it begins with ${begin}`, {
      cause,
    });
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new SourceAnswerError(
    `what documents.url serves: ${issue?.path.join(".") || "the whole"}: ${issue?.message}`,
  );
}
