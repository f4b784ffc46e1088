import { NoAuth, NoNode } from "../../errors.ts";
import type { Children, Data } from "../../types.ts";
import type { Stat } from "../../wire/messages.ts";
import type { Machinery } from "./intake.ts";
import { childOf, type KnownPaths } from "./known-paths.ts";

/** How a walk ends; exactly one is called, once, unless the walk is cancelled. */
export interface WalkEnd {
  done(): void;
  failed(error: unknown): void;
  /** A path that we may not read is left out. */
  unreadable(error: NoAuth): void;
}

/**
 * Compares what is known below a path with the server: of known data the stat first and the data only where mzxid
 * differs, of everything else the data or the children at once. Reads run behind live ones, many at a time, and take
 * their places in the playback among the events.
 */
export class Walk {
  readonly #on: Machinery;
  readonly #known: KnownPaths;
  readonly #end: WalkEnd;
  #open = 0;
  #over = false;

  constructor(machinery: Machinery, known: KnownPaths, end: WalkEnd) {
    this.#on = machinery;
    this.#known = known;
    this.#end = end;
  }

  start(root: string): void {
    this.#open++;
    // No listing has shown that the root is there.
    if (this.#on.interest(root) === "name") this.#nameOfRoot(root);
    else this.#visit(root);
    this.#close();
  }

  /** No end is called after this, and no further reads are sent. */
  cancel(): void {
    this.#over = true;
  }

  #visit(path: string): void {
    const { interest, descend, effects } = this.#on;
    const wanted = interest(path);
    if (wanted === "data") {
      if (this.#known.get(path)?.stat === undefined) this.#fetch(path);
      else this.#compare(path);
      return;
    }
    if (wanted === "name") effects.name(path);
    if (descend(path)) this.#list(path);
  }

  #nameOfRoot(root: string): void {
    const { client, effects } = this.#on;
    this.#read<Stat | undefined>(
      () => client.exists(root),
      (stat) => {
        if (stat === undefined) effects.remove(root);
        else this.#visit(root);
      },
    );
  }

  #compare(path: string): void {
    const { client, effects } = this.#on;
    this.#read<Stat | undefined>(
      () => client.exists(path),
      (stat) => {
        if (stat === undefined) {
          effects.remove(path);
          return;
        }
        const known = this.#known.get(path)?.stat;
        if (known === undefined || stat.mzxid > known.mzxid) {
          this.#fetch(path);
          return;
        }
        effects.unchanged(path, stat);
        this.#below(path, stat);
      },
    );
  }

  #fetch(path: string): void {
    const { client, effects } = this.#on;
    this.#read<Data | undefined>(
      () => client.get(path).catch(noNode),
      (read) => {
        if (read === undefined) {
          effects.remove(path);
          return;
        }
        effects.data(path, read);
        this.#below(path, read.stat);
      },
    );
  }

  #below(path: string, stat: Stat): void {
    const mayHaveChildren = stat.numChildren > 0 || this.#known.children(path).size > 0;
    if (mayHaveChildren && this.#on.descend(path)) this.#list(path);
  }

  #list(path: string): void {
    const { client, effects } = this.#on;
    this.#read<Children | undefined>(
      () => client.children(path).catch(noNode),
      (listing) => {
        if (listing === undefined) {
          effects.remove(path);
          return;
        }
        const present = new Set(listing.children);
        for (const name of [...this.#known.children(path)]) {
          if (!present.has(name)) effects.remove(childOf(path, name));
        }
        for (const name of present) this.#visit(childOf(path, name));
      },
    );
  }

  #read<T>(read: () => Promise<T>, apply: (result: T) => void): void {
    const { fetches, playback } = this.#on;
    const slot = playback.reserve();
    this.#open++;
    fetches.add("background", async () => {
      if (this.#over) {
        playback.settle(slot, () => undefined);
        return;
      }
      try {
        const result = await read();
        playback.settle(slot, () => {
          if (!this.#over) apply(result);
          this.#close();
        });
      } catch (error) {
        playback.settle(slot, () => this.#failed(error));
      }
    });
  }

  #close(): void {
    this.#open--;
    if (this.#open > 0 || this.#over) return;
    this.#over = true;
    this.#end.done();
  }

  #failed(error: unknown): void {
    if (this.#over) return;
    if (error instanceof NoAuth) {
      this.#end.unreadable(error);
      this.#close();
      return;
    }
    this.#over = true;
    this.#end.failed(error);
  }
}

function noNode(error: unknown): undefined {
  if (error instanceof NoNode) return undefined;
  throw error;
}
