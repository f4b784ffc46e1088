import type { Random } from "@nodeyard/runtime";
import type { OpenFile, StoreFiles } from "@nodeyard/sliver";

/** A file on the disk: the synced content, and what was written since. */
interface Inode {
  data: Uint8Array;
  durable: Uint8Array;
}

type Change = (names: Map<string, Inode>) => void;

/** Thrown by the call during which the power is lost, and by every call after it. */
export class PowerLostError extends Error {}

/**
 * A folder on a disk that keeps only what was synced. After `powerLoss`, changes of names that were not synced
 * are kept or lost, each independently; unsynced content is complete, torn, zeroed or lost.
 */
export class PowerLossFiles implements StoreFiles {
  #names = new Map<string, Inode>();
  #durable = new Map<string, Inode>();
  #pending: Change[] = [];
  #calls = 0;
  /** The call, counted from 1, during which the power is lost; 0: never. */
  failAt = 0;
  /** Calls that fail with this error, once each, without any effect. */
  readonly faults = new Map<number, Error>();

  get calls(): number {
    return this.#calls;
  }

  /** The content after power is restored. The count starts again at 0. */
  powerLoss(random: Random): void {
    const names = new Map(this.#durable);
    for (const change of this.#pending) if (random.float() < 0.5) change(names);
    for (const inode of new Set(names.values())) {
      inode.durable = wreck(inode, random);
      inode.data = inode.durable;
    }
    this.#names = names;
    this.#durable = new Map(names);
    this.#pending = [];
    this.#calls = 0;
    this.failAt = 0;
  }

  /** Overwrites the file, as a faulty disk does. */
  damage(name: string, bytes: Uint8Array): void {
    const inode = { data: bytes, durable: bytes };
    this.#names.set(name, inode);
    this.#durable.set(name, inode);
  }

  names(): string[] {
    return [...this.#names.keys()];
  }

  async read(name: string): Promise<Uint8Array | undefined> {
    return this.#names.get(name)?.data;
  }

  async create(name: string): Promise<OpenFile> {
    this.#call();
    if (this.#names.has(name)) throw new Error(`EEXIST ${name}`);
    const inode: Inode = { data: new Uint8Array(), durable: new Uint8Array() };
    this.#change((names) => names.set(name, inode));
    return {
      write: async (bytes) => {
        // The power may be lost while the bytes are being written.
        inode.data = Buffer.concat([inode.data, bytes]);
        this.#call();
      },
      sync: async () => {
        this.#call();
        inode.durable = inode.data;
      },
      close: async () => this.#call(),
    };
  }

  async rename(from: string, to: string): Promise<void> {
    const inode = this.#names.get(from);
    if (inode === undefined) throw new Error(`ENOENT ${from}`);
    this.#change((names) => {
      if (names.get(from) === inode) names.delete(from);
      names.set(to, inode);
    });
    this.#call();
  }

  async remove(name: string): Promise<void> {
    this.#change((names) => names.delete(name));
    this.#call();
  }

  async syncFolder(): Promise<void> {
    this.#call();
    this.#durable = new Map(this.#names);
    this.#pending = [];
  }

  #change(change: Change): void {
    change(this.#names);
    this.#pending.push(change);
  }

  #call(): void {
    this.#calls += 1;
    if (this.failAt !== 0 && this.#calls >= this.failAt) throw new PowerLostError("the power is off");
    const fault = this.faults.get(this.#calls);
    if (fault !== undefined) throw fault;
  }
}

function wreck({ data, durable }: Inode, random: Random): Uint8Array {
  if (data === durable) return data;
  const kind = Math.floor(random.float() * 4);
  if (kind === 0) return durable;
  if (kind === 1) return data;
  const cut = Math.floor(random.float() * data.length);
  return kind === 2 ? data.slice(0, cut) : new Uint8Array(data.length);
}
