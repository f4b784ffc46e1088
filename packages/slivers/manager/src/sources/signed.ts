import { jsonOrUndefined } from "@nodeyard/runtime";
import { parseKeySet, rotate, verifyText } from "@nodeyard/sliver-protocol";
import { z } from "zod";
import type { State } from "../core/record.ts";
import { readSignedDocument } from "../core/signed-document.ts";
import { MassRemovalError, NoKeysError, SourceAnswerError, SourceUnreachableError } from "../errors.ts";
import { takeDocument } from "../manager/documents.ts";
import type { Manager } from "../manager/manager.ts";
import { reportOf } from "../manager/report.ts";
import { readJson } from "../read-json.ts";
import { Poller, type PollerTools } from "./poller.ts";

/** A fetched text. `fetch` resolves to undefined instead when the text still has the given `etag` (HTTP 304). */
export interface Fetched {
  readonly text: string;
  readonly etag: string | undefined;
}

/** The server of this node's documents and receiver of its reports. */
export interface DocumentEndpoint {
  /** Rejects with SourceUnreachableError, SourceAnswerError, and with DaemonConfigError when the file of a certificate cannot be used. */
  fetch(etag: string | undefined, signal: AbortSignal): Promise<Fetched | undefined>;
  /** Absent: no reports are sent. */
  report?(text: string, signal: AbortSignal): Promise<void>;
}

/** Options of `SignedSource`. */
export interface SignedOptions extends PollerTools {
  readonly manager: Manager;
  readonly place: DocumentEndpoint;
}

/** Milliseconds. */
const POLL_MS = 60_000;
const FIRST_RETRY_MS = 1_000;
/** Random delay of the first poll. Machines of a site that boot together would otherwise poll together. */
const MOST_STAGGER_MS = 30_000;
/** Characters of an invalid answer that an error message quotes. */
const MAX_QUOTED = 60;

const schema = z.strictObject({
  v: z.literal(1),
  /** Signed key sets, oldest first. Those that this node has not applied yet are applied before the document. */
  rotations: z.array(z.string()).max(64).default([]),
  /** A signed document for this node. */
  document: z.string(),
});

/**
 * Polls the signed documents of a launcher. A document counts by its signature, node, epoch and version, so the server that has it needs no
 * trust. While it cannot be fetched, slivers stay as they are.
 */
export class SignedSource extends Poller {
  readonly #manager: Manager;
  readonly #place: DocumentEndpoint;
  /** How long a document that ends most slivers must stay the same before it is believed, milliseconds. */
  readonly #agreeAfter: number;
  /** Of the last document that was applied. */
  #etag: string | undefined;
  /** Sequence of the last report that arrived; -1 before the first, which is always sent. */
  #reported = -1;

  constructor({ manager, place, ...times }: SignedOptions) {
    super({
      ...times,
      name: "documents",
      first: times.random.float() * Math.min(times.period, MOST_STAGGER_MS),
      retry: FIRST_RETRY_MS,
      limit: POLL_MS,
      aborted: (message) => new SourceUnreachableError(message),
      poll: (signal) => this.#fetch(signal),
    });
    this.#manager = manager;
    this.#place = place;
    this.#agreeAfter = times.period / 2;
  }

  /** One poll: fetch, apply, report. The report is sent also when the document was withheld, because it says so. */
  async #fetch(signal: AbortSignal): Promise<void> {
    const fetched = await this.#place.fetch(this.#etag, signal);
    let withheld: MassRemovalError | undefined;
    if (fetched !== undefined) {
      try {
        await this.#take(fetched.text);
        // Set only after success: a document that could not be applied is fetched again.
        this.#etag = fetched.etag;
      } catch (error) {
        if (!(error instanceof MassRemovalError)) throw error;
        withheld = error;
      }
    }
    await this.#report(signal);
    if (withheld !== undefined) throw withheld;
  }

  /** Applies the rotations of keys in their order, then the document, which may be signed with the newest key. */
  async #take(text: string): Promise<void> {
    const manager = this.#manager;
    const { rotations, document } = readJson(schema, text, (what, cause) => {
      const begin =
        cause === undefined ? "" : `; it begins with ${JSON.stringify(text.slice(0, MAX_QUOTED))}`;
      return new SourceAnswerError(`what documents.url serves${what}${begin}`, { cause });
    });
    const { node, machine } = manager.options;
    for (const signed of rotations)
      await manager.change((state) => {
        const current = state.keySet;
        if (current === undefined) throw new NoKeysError();
        if (versionOf(signed) <= current.version) return { state, result: undefined };
        const next = parseKeySet(verifyText("key-set", signed, current, manager.now));
        return { state: { ...state, keySet: rotate(current, next, manager.now) }, result: undefined };
      });
    const read = (state: State) => {
      if (state.keySet === undefined) throw new NoKeysError();
      return readSignedDocument(document, state, node, machine.policy.defaults, manager.now);
    };
    await takeDocument(manager, read, this.#agreeAfter);
  }

  /** Sends a report when the machine has been inspected since the last report. */
  async #report(signal: AbortSignal): Promise<void> {
    if (this.#place.report === undefined) return;
    const report = reportOf(this.#manager);
    if (report.sequence === this.#reported) return;
    await this.#place.report(JSON.stringify(report), signal);
    this.#reported = report.sequence;
  }
}

/**
 * The version without a check of the signature: only for skipping rotations that were applied long ago, whose keys may be gone. 0 when
 * there is none.
 */
function versionOf(signed: string): number {
  const text = Buffer.from(signed.split(".")[1] ?? "", "base64url").toString();
  const { version } = (jsonOrUndefined(text) ?? {}) as { readonly version?: unknown };
  return typeof version === "number" ? version : 0;
}
