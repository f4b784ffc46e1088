import type { Clock, Random } from "@nodeyard/runtime";
import type { Tree } from "../contract.ts";
import type { WriteEnded } from "../under-way.ts";
import { TreeCore } from "./core.ts";
import { prepareFolder, writePid } from "./edge/state-folder.ts";
import { openWorkerStore } from "./edge/worker-store.ts";
import { SessionTree } from "./session-tree.ts";
import type { Store } from "./store.ts";

/** Where the embedded tree is stored, and its clock and randomness. */
export interface EmbeddedOptions {
  /** The state folder. It is created with mode 0700 when it does not exist. */
  readonly folder: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Called after each write of this process, of any of its sessions. */
  readonly onWrite?: (write: WriteEnded) => void;
}

/** The tree of a state folder, as the session of the process that opened it. */
export interface EmbeddedTree extends Tree {
  /** The shared core, on which the wire server is built. */
  readonly core: TreeCore;
  /** Opens a further session in this process, with its own ephemeral znodes. */
  connect(): Promise<Tree>;
  /** Writes a consistent copy of the tree to a file, while it is in use. Rejects with StoreFailed. */
  backup(path: string): Promise<void>;
}

/**
 * Opens the tree of a state folder for this process alone. Rejects with `StoreRefused` (in use, damaged, written by a later
 * release or by another program) or `StoreFailed`. The message says what to do.
 */
export async function openEmbeddedTree(options: EmbeddedOptions): Promise<EmbeddedTree> {
  const { folder, clock, random } = options;
  const { file } = prepareFolder(folder);
  const { store, snapshot } = await openWorkerStore(folder, file, clock.now());
  writePid(folder);
  const core = new TreeCore(store, snapshot, clock, random);
  const tree = new OwnerTree(core, store, options);
  try {
    await tree.ready();
  } catch (error) {
    await store.close();
    throw error;
  }
  return tree;
}

class OwnerTree extends SessionTree implements EmbeddedTree {
  readonly #store: Store;
  readonly #options: EmbeddedOptions;
  #closing: Promise<void> | undefined;

  constructor(core: TreeCore, store: Store, options: EmbeddedOptions) {
    super(core, options.clock, options.onWrite);
    this.#store = store;
    this.#options = options;
  }

  /** Resolves when the record of the session is durable. */
  ready(): Promise<void> {
    return this.sync("/");
  }

  async connect(): Promise<Tree> {
    const tree = new SessionTree(this.core, this.#options.clock, this.#options.onWrite);
    await tree.sync("/");
    return tree;
  }

  async backup(path: string): Promise<void> {
    await this.sync("/");
    await this.#store.backup(path);
  }

  /** Ends this session and closes the tree. Servers and further sessions must be closed before. */
  override close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    await super.close();
    await this.core.stop();
    await this.#store.close();
  }
}
