import { isDeepStrictEqual } from "node:util";
import { Batches, type Deadline } from "@nodeyard/runtime";
import type { SliverClient } from "./client.ts";
import { type DocumentInput, parseSliver, type SliverSpec, type SliverSpecInput } from "./document.ts";
import {
  SliverBusyError,
  SliverContendedError,
  SliverFaultError,
  SliverFencedError,
  SliverOwnedError,
  SliverStoreLostError,
  SliverUnreachableError,
} from "./errors.ts";
import type { NodeDocument, NodeReport } from "./report.ts";
import { type Signer, signText } from "./signed.ts";

/**
 * Changes a node's slivers in place, by name. It may be called several times for one change, each time with the present slivers. An error
 * that it throws rejects only its own change. `now` is the node's document without the changes before this one.
 */
export type Edit = (slivers: Map<string, SliverSpecInput>, now: NodeDocument) => void;

/** Options of a writer. */
export interface DocumentWriterOptions {
  readonly client: SliverClient;
  readonly signer: Signer;
  readonly node: string;
  /** Name of the writer: the same for all processes that share the node, and for no other process. */
  readonly writer: string;
  readonly epoch: number;
  /** Wall time, milliseconds since the Unix epoch. */
  readonly now: () => number;
  /** Waits before attempt number `attempt` (0 is the first retry); rejects when `signal` aborts. */
  readonly wait: (attempt: number, signal: AbortSignal) => Promise<void>;
  /** Makes the time limit of one delivery with all of its attempts. */
  readonly limit: () => Deadline;
  /** Most attempts to deliver one batch of changes. */
  readonly attempts?: number;
}

interface Waiting {
  readonly edit: Edit;
  readonly resolve: (report: NodeReport) => void;
  readonly reject: (error: unknown) => void;
}

const ATTEMPTS = 8;
/** Most changes that may wait for the node; further ones are refused. */
const MAX_WAITING = 1024;

/**
 * Changes single slivers of a node, although the node's document is always complete. Each delivery starts from the node's present
 * document and increases its version. If another process was faster, the document is read and changed again, so that no change undoes
 * another. Changes that arrive during a delivery go together with the next one.
 */
export class DocumentWriter {
  readonly #options: DocumentWriterOptions;
  readonly #batches = new Batches<Waiting>((batch) => this.#settle(batch));

  constructor(options: DocumentWriterOptions) {
    this.#options = options;
  }

  /**
   * Applies a change. When it resolves, the change is durable on the node, and the report says what the node refused. Rejects with the
   * error of `edit`, GrammarError, SliverOwnedError, SliverFencedError, SliverStoreLostError, SliverContendedError, SliverBusyError,
   * SliverFaultError, or SliverUnreachableError (then it is unknown whether the node took the change). A change that is being delivered
   * when `signal` aborts may still be applied.
   */
  change(edit: Edit, signal: AbortSignal): Promise<NodeReport> {
    signal.throwIfAborted();
    const count = this.#batches.waiting.length;
    if (count >= MAX_WAITING)
      return Promise.reject(
        new SliverBusyError(`${count} changes wait for node ${this.#options.node} already; try again`),
      );
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#batches.remove(waiting);
        reject(signal.reason);
      };
      const ends =
        <T>(end: (value: T) => void) =>
        (value: T) => {
          signal.removeEventListener("abort", onAbort);
          end(value);
        };
      const waiting: Waiting = { edit, resolve: ends(resolve), reject: ends(reject) };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#batches.add(waiting);
    });
  }

  async #settle(batch: readonly Waiting[]): Promise<void> {
    using limit = this.#options.limit();
    try {
      await this.#deliver(batch, limit.signal);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  async #deliver(batch: readonly Waiting[], signal: AbortSignal): Promise<void> {
    const { client, node, attempts = ATTEMPTS } = this.#options;
    let open = batch;
    for (let attempt = 0; attempt < attempts; attempt++) {
      if (attempt > 0) await this.#options.wait(attempt - 1, signal);
      const document = await client.document(signal);
      this.#mayWrite(document);
      const edited = edit(document, open);
      open = edited.open;
      if (open.length === 0) return;
      const report = await this.#offer(document, edited, signal);
      if (report === undefined) continue;
      for (const { resolve } of open) resolve(report);
      return;
    }
    throw new SliverContendedError(
      `the document of node ${node} was changed by others ${attempts} times in a row; try again later`,
    );
  }

  /** Throws unless this writer may replace the node's document. */
  #mayWrite(document: NodeDocument): void {
    const { node, epoch, writer } = this.#options;
    if (document.epoch > epoch) throw new SliverFencedError(node, epoch, document.epoch, document.writer);
    const foreign = document.writer !== undefined && document.writer !== writer;
    if (foreign && document.epoch === epoch)
      throw new SliverOwnedError(node, document.writer!, document.epoch, { writer, epoch });
    // A complete document ends slivers that it does not list, and after a lost store the node cannot say which slivers those are.
    if (document.safeMode && document.unlisted.length > 0)
      throw new SliverStoreLostError(
        `node ${node} lost its store and still has ${document.unlisted.length} slivers (${document.unlisted.slice(0, 5).join(", ")}): end them there or restore its store; nothing is written to it until then`,
      );
  }

  /** Undefined when another writer was faster, or when it is unknown whether the node took the document. */
  async #offer(
    document: NodeDocument,
    { slivers, changed, ends }: Edited,
    signal: AbortSignal,
  ): Promise<NodeReport | undefined> {
    const { client, epoch, signer, now } = this.#options;
    if (!changed && document.epoch === epoch) return client.status(signal);
    const version = document.epoch === epoch ? document.version + 1 : 1;
    const { node, writer } = this.#options;
    const issuedAt = Math.floor(now() / 1000);
    const head = { v: 1 as const, node, epoch, version, writer, issuedAt };
    const removes = document.guarded === true && ends > 0 ? { removes: ends } : {};
    const claims: DocumentInput = { ...head, ...removes, slivers };
    try {
      return await client.deliver(signText("document", claims, signer), signal);
    } catch (error) {
      if (signal.aborted) throw error;
      // Edits are idempotent: if the node took the document, applying them again changes nothing.
      if (error instanceof SliverUnreachableError) return undefined;
      if (!(error instanceof SliverFaultError)) throw error;
      // The fault has the same code for a version that is too old and for a document that is always refused. The node's version tells
      // which.
      const after = await client.document(signal);
      if (after.epoch === document.epoch && after.version === document.version) throw error;
      return undefined;
    }
  }
}

interface Edited {
  readonly slivers: readonly SliverSpecInput[];
  readonly changed: boolean;
  /** Slivers that the document ends. All of them were removed or replaced by name, so they are intended. */
  readonly ends: number;
  /** Changes whose edit succeeded. */
  readonly open: readonly Waiting[];
}

/** Applies all edits in order. An edit that throws changes nothing and rejects only its own change. */
function edit(document: NodeDocument, batch: readonly Waiting[]): Edited {
  let slivers = new Map<string, SliverSpecInput>(document.slivers.map((spec) => [spec.name, spec]));
  const open: Waiting[] = [];
  for (const waiting of batch) {
    const next = new Map(slivers);
    try {
      waiting.edit(next, document);
      slivers = new Map([...next].map(([name, spec]) => [name, checked(name, spec, slivers.get(name))]));
      open.push(waiting);
    } catch (error) {
      waiting.reject(error);
    }
  }
  const list = [...slivers.values()];
  const ends = document.slivers.filter(
    ({ name, generation }) => slivers.get(name)?.generation !== generation,
  );
  return { slivers: list, changed: !isDeepStrictEqual(list, document.slivers), ends: ends.length, open };
}

/** Checks a sliver by the node's own grammar, so that a malformed one is refused here, where the caller can correct it. */
function checked(name: string, spec: SliverSpecInput, before: SliverSpecInput | undefined): SliverSpec {
  if (spec === before) return spec as SliverSpec;
  const parsed = parseSliver(spec);
  if (parsed.name !== name) throw new TypeError(`sliver ${parsed.name} is entered as ${name}`);
  return parsed;
}
