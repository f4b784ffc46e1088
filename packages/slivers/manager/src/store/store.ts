import { createHash } from "node:crypto";
import { Gate, jsonOrUndefined, messageOf } from "@nodeyard/runtime";
import { POLICIES } from "../core/profiles.ts";
import type { Traffic } from "../core/record.ts";
import { EMPTY_STATE, type SliverRecord, type State } from "../core/record.ts";
import { ForeignStoreError, NewerStoreError, StoreWriteError } from "../errors.ts";

/** File operations of the store. Tests simulate a loss of power at each of them. Every one may reject. */
export interface StoreFiles {
  /** Undefined when the file does not exist. */
  read(name: string): Promise<Uint8Array | undefined>;
  /** Fails when the file exists. Only the owner may read the new file. */
  create(name: string): Promise<OpenFile>;
  /** Replaces `to` atomically. */
  rename(from: string, to: string): Promise<void>;
  /** Resolves also when the file does not exist. */
  remove(name: string): Promise<void>;
  /** Makes changes of names (created, renamed, removed files) durable: fsync of the folder. */
  syncFolder(): Promise<void>;
}

/** A new file that is open for writing. */
export interface OpenFile {
  write(bytes: Uint8Array): Promise<void>;
  /** Makes the content durable, but not the name. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** Version of the content. A program that reads schema N reads all earlier ones. */
export const SCHEMA = 1;

const FORMAT = "nodeyard-sliver-store";

/** One generation of the store. */
export interface Generation {
  /** Grows with each write. The generation with the highest number counts. */
  readonly sequence: number;
  readonly body: string;
}

/** One line about the content, then the content. Both are JSON, so that a person can read the file. */
export function seal(node: string, { sequence, body }: Generation, schema = SCHEMA): Uint8Array {
  const sha256 = checksum(schema, node, sequence, body);
  const head = { format: FORMAT, schema, node, sequence, bytes: Buffer.byteLength(body), sha256 };
  return Buffer.from(`${JSON.stringify(head)}\n${body}\n`);
}

/** Undefined when the file is damaged. Throws ForeignStoreError, NewerStoreError for an intact file of another node or a newer version. */
function unseal(bytes: Uint8Array, here: string): Generation | undefined {
  const text = Buffer.from(bytes).toString("utf8");
  const end = text.indexOf("\n");
  const head = jsonOrUndefined(text.slice(0, end)) as Record<string, unknown> | null | undefined;
  if (end < 0 || head?.format !== FORMAT) return undefined;
  const { node, schema, sequence, sha256 } = head;
  if (typeof node !== "string" || typeof schema !== "number" || typeof sequence !== "number")
    return undefined;
  const body = text.slice(end + 1, -1);
  if (!text.endsWith("\n") || sha256 !== checksum(schema, node, sequence, body)) return undefined;
  if (node !== here)
    throw new ForeignStoreError(
      `the store is of node ${JSON.stringify(node)}, this is ${JSON.stringify(here)}; remove it, or name the right folder`,
    );
  if (schema > SCHEMA)
    throw new NewerStoreError(
      `the store has schema ${schema}, this program reads ${SCHEMA}; start the version that wrote it`,
    );
  return { sequence, body };
}

/** Covers the head as well as the content, so that a damaged head is not taken for that of another node or a newer version. */
function checksum(schema: number, node: string, sequence: number, body: string): string {
  return createHash("sha256").update(`${schema}\n${node}\n${sequence}\n${body}`).digest("hex");
}

/** The state as text. */
export function encodeState(state: State): string {
  const { records, usedTickets, traffic, ...rest } = state;
  return JSON.stringify({
    ...rest,
    usedTickets: [...usedTickets],
    records: [...records.values()],
    traffic: [...traffic],
  });
}

/** Decodes a state; undefined for other text. Fields that the text lacks get the values of an empty state, as after an upgrade. */
function decodeState(text: string): State | undefined {
  const value = (jsonOrUndefined(text) ?? {}) as Record<string, unknown>;
  const { records, usedTickets, traffic = [], ...rest } = value;
  if (!Array.isArray(records) || !Array.isArray(usedTickets) || !Array.isArray(traffic)) return undefined;
  return {
    ...EMPTY_STATE,
    ...(rest as Partial<State>),
    usedTickets: new Map(usedTickets as [string, number][]),
    records: new Map((records as SliverRecord[]).map((record) => [record.name, withAllResources(record)])),
    traffic: new Map(traffic as [string, Traffic][]),
  };
}

/** A record that was stored by a program with fewer resources has the usual amounts of the others. */
function withAllResources(record: SliverRecord): SliverRecord {
  return { ...record, rspec: { ...POLICIES.r0.defaults, ...record.rspec } };
}

const SLOTS = ["state.0.json", "state.1.json"] as const;
const DRAFT = "state.draft";

/** Result of loading the store. */
export interface Loaded {
  readonly state: State;
  /** Files that exist but cannot be read as a store. Their content is lost, so `state.safe` is set. */
  readonly damaged: readonly string[];
}

/**
 * Two generations in two files, written in turn: the valid one is never touched while the next is written. A file gets its name only after
 * its content is durable. A damaged file therefore means a broken disk or a manual change, never a crash.
 */
export class Store {
  readonly #files: StoreFiles;
  readonly #node: string;
  #sequence = 0;
  /** Slot of the last generation that is known to be durable. */
  #current = 1;
  readonly #turn = new Gate(1);

  constructor(files: StoreFiles, node: string) {
    this.#files = files;
    this.#node = node;
  }

  /** Throws ForeignStoreError, NewerStoreError and errors of the file system. */
  async load(): Promise<Loaded> {
    const damaged: string[] = [];
    let best: (Generation & { slot: number; state: State }) | undefined;
    for (const [slot, name] of SLOTS.entries()) {
      const bytes = await this.#files.read(name);
      if (bytes === undefined) continue;
      const generation = unseal(bytes, this.#node);
      const state = generation && decodeState(generation.body);
      if (state === undefined) damaged.push(name);
      else if (best === undefined || generation!.sequence > best.sequence)
        best = { ...generation!, slot, state };
    }
    if (best !== undefined) {
      this.#sequence = best.sequence;
      this.#current = best.slot;
    }
    const state = best?.state ?? EMPTY_STATE;
    return { state: damaged.length === 0 ? state : { ...state, safe: true }, damaged };
  }

  /**
   * Resolves when `state` survives a loss of power. Rejects with StoreWriteError when that is not certain: after a crash, either this state
   * or the one before is found. Calls are carried out one after another.
   */
  save(state: State): Promise<void> {
    return this.#turn.run(() => this.#write(encodeState(state)));
  }

  async #write(body: string): Promise<void> {
    // Every attempt gets a new number: a failed one may have reached the disk and must not win over the next.
    const sequence = ++this.#sequence;
    // The other file: `#current` is what a crash during this write falls back to.
    const slot = 1 - this.#current;
    try {
      await this.#files.remove(DRAFT);
      const file = await this.#files.create(DRAFT);
      try {
        await file.write(seal(this.#node, { sequence, body }));
        await file.sync();
      } finally {
        await file.close();
      }
      await this.#files.rename(DRAFT, SLOTS[slot]!);
      await this.#files.syncFolder();
    } catch (cause) {
      throw new StoreWriteError(`cannot write the store: ${messageOf(cause)}`, { cause });
    }
    this.#current = slot;
  }
}
