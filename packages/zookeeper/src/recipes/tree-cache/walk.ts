import type { Reads } from "./reads.ts";
import type { ReportedState } from "./reported-state.ts";
import type { Source, TreeCacheOptions } from "./types.ts";

/**
 * Compares the subtree with what was reported. For a known path the walk reads the stat, and the data only when the stat changed; a new
 * path is read at once. It lists children only where a stat shows some, or where no stat was read.
 */
export class Walk {
  /** Callers that wait for the end of this walk. */
  waiters: PromiseWithResolvers<void>[] = [];
  readonly #source: Source;
  readonly #reported: ReportedState;
  readonly #reads: Reads;
  readonly #options: Pick<TreeCacheOptions, "descend" | "only">;
  readonly #onError: (error: Error) => void;

  constructor(
    source: Source,
    reported: ReportedState,
    reads: Reads,
    options: Pick<TreeCacheOptions, "descend" | "only">,
    onError: (error: Error) => void,
  ) {
    this.#source = source;
    this.#reported = reported;
    this.#reads = reads;
    this.#options = options;
    this.#onError = onError;
  }

  begin(root: string): void {
    this.#reported.beginWalk();
    const interest = this.#reported.interest(root);
    if (interest === "data") this.#compare(root);
    else if (interest === "name" || this.#options.only?.(root) === undefined) this.#list(root, true);
    else {
      // As a read of the walk, so that it ends also if none of these names needs one.
      this.#reads.walk((done) => {
        this.#below(root);
        done();
      });
    }
    this.#reads.pump();
  }

  #visit(path: string): void {
    switch (this.#reported.interest(path)) {
      case "data":
        this.#compare(path);
        return;
      case "name":
        this.#reported.name(path);
        this.#below(path);
        return;
      case "none":
        this.#below(path);
    }
  }

  #compare(path: string): void {
    this.#reads.walk((done) => {
      if (this.#reported.has(path)) this.#stat(path, done);
      else this.#get(path, done, true);
    });
  }

  #stat(path: string, done: () => void): void {
    this.#source.stat(path, (error, stat) => {
      if (this.#broken(error)) return done();
      if (stat !== undefined) {
        if (stat.numChildren > 0) this.#below(path);
        if (!this.#reported.isCurrent(path, stat)) this.#reads.walk((end) => this.#get(path, end, false));
      }
      done();
    });
  }

  #get(path: string, done: () => void, descend: boolean): void {
    this.#source.get(path, (error, found) => {
      if (this.#broken(error)) return done();
      if (found !== undefined) {
        this.#reported.put(path, found.data, found.stat);
        if (descend && found.stat.numChildren > 0) this.#below(path);
      }
      done();
    });
  }

  #below(path: string): void {
    if (this.#options.descend?.(path) === false) return;
    const only = this.#options.only?.(path);
    if (only === undefined) this.#list(path, false);
    else for (const name of only) this.#visit(path === "/" ? `/${name}` : `${path}/${name}`);
  }

  #list(path: string, isRoot: boolean): void {
    this.#reads.walk((done) => {
      this.#source.children(path, (error, names) => {
        if (this.#broken(error)) return done();
        if (names !== undefined) {
          if (isRoot && this.#reported.interest(path) === "name") this.#reported.name(path);
          const prefix = path === "/" ? "/" : `${path}/`;
          for (const name of names) this.#visit(prefix + name);
        }
        done();
      });
    });
  }

  #broken(error: Error | undefined): boolean {
    if (error !== undefined) this.#onError(error);
    return error !== undefined;
  }
}
